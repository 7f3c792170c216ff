"""Noise addresses: known answers of Philox, batch equals single, NumPy equals Torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.rng import (
    SEED_REGIONS,
    Noise,
    check_seed,
    generator,
    name_word,
    philox,
    region_seed,
)

# Random123's published test vectors for philox4x32-10: counter, key, words.
ONES = 0xFFFFFFFF
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def noise(n=5, torch_arrays=False):
    arrays = [np.arange(n) * 7, np.arange(n) % 3, np.arange(n) + 2]
    return Noise(*(torch.tensor(a) if torch_arrays else a for a in arrays))


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_gives_the_published_words(counter, key, words):
    as_arrays = (
        [np.array([v], dtype=np.int64) for v in counter],
        [np.array([v], dtype=np.int64) for v in key],
    )
    assert tuple(int(w[0]) for w in philox(*as_arrays)) == words


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**63 - 1), episode=st.integers(0, 2**31), step=st.integers(0, 2**31))
def test_a_batch_draw_equals_the_single_draws(seed, episode, step):
    seeds = np.array([seed, 3, 2**40 + 1])
    batch = Noise(seeds, np.array([episode, 0, 1]), np.array([step, 1, 2]))
    alone = Noise.single(seed=seed, episode=episode, step=step)
    for draw in (
        lambda n: n.uniform("x", (3, 2)),
        lambda n: n.normal("x", (5,)),
        lambda n: n.integers("x", 7, (4,)),
        lambda n: n.uniforms(["a", "b"], 3),
    ):
        assert draw(batch)[0].tobytes() == draw(alone)[0].tobytes()


def test_numpy_and_torch_draw_the_same():
    a, b = noise(), noise(torch_arrays=True)
    assert np.array_equal(a.uniform("x", (6,)), b.uniform("x", (6,)).numpy())
    assert np.allclose(a.normal("x", (6,)), b.normal("x", (6,)).numpy(), atol=1e-12, rtol=0)


def test_every_part_of_the_address_matters():
    base = Noise.single(seed=1, episode=2, step=3).uniform("x")
    others = [
        Noise.single(seed=2, episode=2, step=3).uniform("x"),
        Noise.single(seed=1 + 2**32, episode=2, step=3).uniform("x"),
        Noise.single(seed=1, episode=3, step=3).uniform("x"),
        Noise.single(seed=1, episode=2, step=4).uniform("x"),
        Noise.single(seed=1, episode=2, step=3).uniform("y"),
    ]
    assert all(base != other for other in others)


def test_a_longer_draw_begins_with_the_shorter_one():
    short, long = noise().uniform("x", (3,)), noise().uniform("x", (9,))
    assert np.array_equal(short, long[:, :3])


def test_draws_follow_their_distributions():
    n = 20_000
    many = Noise(np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))
    assert stats.kstest(many.uniform("x"), "uniform").pvalue > 1e-3
    assert stats.kstest(many.normal("x"), "norm").pvalue > 1e-3
    counts = np.bincount(many.integers("x", 6), minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_generator_stands_at_its_address():
    a = noise().generator("goal", world=1)
    b = generator(seed=7, name="goal", episode=1, step=3)
    assert a.random() == b.random()


@pytest.mark.parametrize("bad", [-1, 2**63, 1.5, "7", True, None])
def test_a_bad_seed_is_refused(bad):
    with pytest.raises(InvalidValueError, match="seed must be a whole number"):
        check_seed(bad)


def test_names_of_all_variables_have_different_words():
    names = [f"{a}_{i}/{b}" for a in ("block", "goal", "object") for i in range(50) for b in "xyz"]
    assert len({name_word(n) for n in names}) == len(names)


def test_uniform_numbers_are_made_of_53_bits_of_the_words():
    """The formula of Matsumoto and Nishimura's genrand_res53, in whole numbers."""
    some = noise()
    words = some.words(["block_0/mass"], 6)[:, 0].tolist()
    found = some.uniforms(["block_0/mass"], 3)[:, 0].tolist()
    for row, drawn in zip(words, found, strict=True):
        wanted = [(row[i] // 2**5 * 67108864 + row[i + 1] // 2**6) / 2**53 for i in (0, 2, 4)]
        assert drawn == wanted


def test_uniform_numbers_stay_what_they_are():
    """Golden values: seeds, episodes and steps of three worlds."""
    three = Noise(np.array([0, 7, 2**40 + 3]), np.array([0, 2, 1]), np.array([0, 5, 9]))
    found = three.uniforms(["block_0/mass"], 2)[:, 0].tolist()
    assert [[number.hex() for number in row] for row in found] == [
        ["0x1.d86188f6e363cp-2", "0x1.9add49e58fce7p-1"],
        ["0x1.6eaa49370e142p-1", "0x1.617b59f0575a0p-4"],
        ["0x1.09fdc6446e4f0p-1", "0x1.297fb7f1ec77ep-1"],
    ]
    assert three.integers("k", 1000).tolist() == [318, 740, 708]


def test_a_generator_stands_at_seed_episode_and_step_in_this_order():
    assert generator(seed=0, name="goal", episode=1, step=2).random() == 0.16887977697296874
    assert generator(seed=0, name="goal", episode=2, step=1).random() == 0.6864411939691499


def test_noise_at_another_step_is_that_of_the_step_alone():
    later = Noise.single(seed=3, episode=1, step=5)
    asked = Noise.single(seed=3, episode=1, step=2)
    assert later.at(2).uniform("goal") == asked.uniform("goal")


def test_further_draws_of_a_moment_are_no_later_steps_draws():
    steps = np.arange(1000)
    moments = Noise(steps * 0, steps * 0, steps)
    draws = np.stack([moments.again(number).uniform("goal") for number in range(4)])
    assert np.array_equal(draws[0], moments.uniform("goal"))
    assert len(np.unique(draws)) == draws.size


def test_normals_are_box_and_mullers_of_the_uniforms_at_their_address():
    noise = Noise(np.array([0, 1, 2]), np.array([0, 1, 0]), np.array([3, 0, 5]))
    u = noise.uniform("wind", (4, 2))
    expected = np.sqrt(-2 * np.log1p(-u[..., 0])) * np.cos(2 * np.pi * u[..., 1])
    np.testing.assert_allclose(noise.normal("wind", (4,)), expected, rtol=1e-12)


def test_regions_of_seeds_do_not_meet_and_hold_every_run():
    firsts = list(SEED_REGIONS.values())
    for purpose, end in zip(list(SEED_REGIONS)[1:], [*firsts[2:], 2**63], strict=True):
        runs = [region_seed(purpose, seed) for seed in (0, 1, 2**40 - 1)]
        assert SEED_REGIONS[purpose] == runs[0] < runs[1] < runs[2] <= end - 2**20
    with pytest.raises(UnknownNameError, match="unknown purpose 'test'"):
        region_seed("test", 0)
    with pytest.raises(InvalidValueError, match="seed is 1099511627776"):
        region_seed("training", 2**40)
