"""Representation metrics: known answers, and what SciPy and scikit-learn give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.cross_decomposition import CCA
from sklearn.metrics import adjusted_rand_score, mutual_info_score, r2_score

from interverse.core.errors import InvalidValueError
from interverse.metrics import REPRESENTATIONS
from interverse.metrics import disentanglement as dis
from interverse.metrics import representation as rep
from interverse.metrics import segmentation as seg


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def grid() -> np.ndarray:
    """Three factors that are exactly independent: every combination, equally often."""
    rows = list(itertools.product(range(4), range(3), range(2)))
    return np.array(rows * 20, dtype=float)


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return rng(1).normal(size=(600, 3))


# ------------------------------------------------------------- identity, permutation, nothing


def _every(latents, factors):
    found = dis.dci(latents, factors, rng=rng())
    return {
        "mcc": rep.mcc(latents, factors),
        "spearman": rep.mcc(latents, factors, "spearman"),
        "canonical": rep.canonical_mcc(latents, factors, rng=rng()),
        "block_mcc": rep.block_mcc(latents, factors, rng=rng()),
        "dci_d": found.disentanglement,
        "dci_c": found.completeness,
        "dci_i": found.informativeness,
        "mig": dis.mig(latents, factors),
        "modularity": dis.modularity(latents, factors),
    }


def test_the_factors_themselves_are_perfect(grid):
    for name, value in _every(grid, grid).items():
        assert value == pytest.approx(1.0, abs=1e-9), name


def test_order_sign_and_scale_do_not_matter(grid):
    moved = grid[:, [2, 0, 1]] * [-3.0, 0.1, 7.0] + 5
    for name, value in _every(moved, grid).items():
        assert value == pytest.approx(1.0, abs=1e-9), name


def test_noise_holds_nothing(numbers):
    noise = rng(2).normal(size=(600, 3))
    for name, value in _every(noise, numbers).items():
        if name in ("dci_d", "dci_c", "modularity"):  # of no information, shares mean little
            assert value < 0.7, name
        else:
            assert value < 0.15, name


def test_a_mixture_is_found_by_the_linear_map_alone(numbers):
    turned = numbers @ stats.special_ortho_group.rvs(3, random_state=3)
    assert rep.canonical_mcc(turned, numbers, rng=rng()) == pytest.approx(1.0)
    assert rep.mcc(turned, numbers) < 0.95
    found = dis.dci(turned, numbers, rng=rng())
    assert found.informativeness > 0.8
    assert found.disentanglement < 0.6


def test_two_copies_of_a_factor_close_the_gaps(grid):
    doubled = np.concatenate([grid, grid], axis=1)
    assert dis.mig(doubled, grid) == pytest.approx(0.0, abs=1e-12)
    assert dis.sap(doubled, grid) == pytest.approx(0.0, abs=1e-12)
    assert dis.modularity(doubled, grid) == pytest.approx(1.0)
    assert rep.mcc(doubled, grid) == pytest.approx(1.0)


def test_sap_of_numbers_is_the_gap_of_squared_correlations():
    u = np.linspace(-1, 1, 101)
    factors = np.stack([u, u**2 - np.mean(u**2)], axis=1)  # exactly uncorrelated
    assert dis.sap(factors, factors) == pytest.approx(1.0)


def test_categories_need_not_be_whole_numbers(grid):
    scaled = grid * 0.8
    for name, value in _every(grid, scaled).items():
        assert value == pytest.approx(1.0, abs=1e-9), name
    assert dis.sap(scaled[:, 2:], scaled[:, 2:]) == pytest.approx(1.0)
    assert dis.explicitness(scaled, scaled[:, 2:], rng=rng()) == pytest.approx(1.0)


def test_explicitness_of_binary_factors():
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=2)) * 50)
    assert dis.explicitness(bits, bits, rng=rng()) == pytest.approx(1.0)
    mixed = bits @ [[1.0, 1.0], [1.0, -1.0]]  # a linear probe sees through it
    assert dis.explicitness(mixed, bits, rng=rng()) == pytest.approx(1.0)
    assert (
        abs(dis.explicitness(rng(4).normal(size=(400, 2)), np.tile(bits, (2, 1)), rng=rng())) < 0.2
    )


@pytest.mark.parametrize("trees", ["forest", "boosting"])
def test_dci_of_numbers(trees, numbers):
    found = dis.dci(numbers, numbers, rng=rng(), trees=trees)
    assert found.disentanglement > 0.95
    assert found.completeness > 0.95
    assert found.informativeness > 0.95
    np.testing.assert_allclose(found.importance.sum(0), 1.0)


# ----------------------------------------------------------------- against others' numbers


def test_correlations_are_scipys(numbers):
    other = rng(5).normal(size=(600, 2)) + numbers[:, :2]
    for i, j in itertools.product(range(3), range(2)):
        pair = numbers[:, i], other[:, j]
        expected = abs(stats.pearsonr(*pair)[0]), abs(stats.spearmanr(*pair)[0])
        found = [rep.correlations(numbers, other, m)[i, j] for m in ("pearson", "spearman")]
        assert found == pytest.approx(expected)


def test_canonical_correlations_are_sklearns(numbers):
    other = numbers @ rng(6).normal(size=(3, 2)) + rng(7).normal(size=(600, 2))
    fit, test = rep.halves(600, rng())
    theirs = CCA(n_components=2, max_iter=5000, tol=1e-12).fit(numbers[fit], other[fit])
    x, y = theirs.transform(numbers[test], other[test])
    expected = np.mean([abs(np.corrcoef(x[:, i], y[:, i])[0, 1]) for i in range(2)])
    assert rep.canonical_mcc(numbers, other, rng=rng()) == pytest.approx(expected, abs=1e-4)


def test_canonical_correlations_are_held_out(copies):
    noise = rng(14).normal(size=(60, 82))
    assert rep.canonical_mcc(noise[:, 2:], noise[:, :2], rng=rng()) < 0.4  # 1 where it was fitted
    latents, factors, pairs = copies
    assert rep.canonical_mcc(latents, factors, rng=rng(), groups=pairs) < 0.2
    constant = np.full((100, 1), 0.1)
    assert rep.canonical_mcc(3 * constant, constant, rng=rng()) == 0.0


def test_r2_is_sklearns(numbers):
    guess = numbers + rng(8).normal(size=numbers.shape)
    expected = r2_score(numbers, guess, multioutput="raw_values")
    np.testing.assert_allclose(rep.r2(guess, numbers), expected)


def test_mutual_information_is_sklearns(grid):
    latent = grid[:, [0]] + 2 * grid[:, [2]]
    for j in range(3):
        whole = stats.entropy(np.unique(grid[:, j], return_counts=True)[1])
        expected = mutual_info_score(latent[:, 0], grid[:, j]) / whole
        assert dis.mutual_information(latent, grid)[0, j] == pytest.approx(expected, abs=1e-12)


def test_modularity_is_ridgeway_and_mozers():
    """By information as it is: a half-known factor of ten values outweighs a known bit."""
    draw = rng(12)
    bit, ten = draw.integers(2, size=4000), draw.integers(10, size=4000)
    guessed = np.where(draw.random(4000) < 0.7, ten, draw.integers(10, size=4000))
    latents = np.stack([10 * bit + guessed, draw.integers(10, size=4000)], axis=1)
    factors = np.stack([bit, ten], axis=1)
    shared = np.array([[mutual_info_score(z, f) for f in factors.T] for z in latents.T])
    assert shared[0].argmax() == 1  # over entropies it would be the bit
    other, best = np.sort(shared, axis=1).T
    expected = np.mean(1 - (other / best) ** 2)  # of two factors
    assert dis.modularity(latents, factors) == pytest.approx(expected, abs=1e-9)


def test_a_latent_that_never_changes_has_no_modularity(grid):
    dead = np.concatenate([grid, np.ones((len(grid), 1))], axis=1)
    assert dis.modularity(dead, grid) == pytest.approx(3 / 4)
    assert dis.modularity(dead[:, 3:], grid) == 0.0


def test_adjusted_rand_is_sklearns():
    draw = rng(9)
    for _ in range(20):
        a, b = draw.integers(4, size=50), draw.integers(3, size=50)
        assert seg.adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b))


# ------------------------------------------------------------------------------- the rest


def test_angles_go_round():
    true = np.array([[3.1], [-3.1], [0.0], [1.5]])
    nearly = np.array([[-3.1], [3.1], [0.0], [1.5]])
    assert rep.r2(nearly, true, "angle")[0] > 0.99
    assert rep.r2(nearly, true)[0] < 0


def test_angles_in_degrees_are_told():
    degrees = np.array([[350.0], [10.0], [90.0]])
    with pytest.raises(InvalidValueError, match=r"350 radians, 55.7 turns.*np.radians"):
        rep.r2(degrees, degrees, "angle")
    assert rep.r2(np.radians(degrees), np.radians(degrees), "angle") == [1.0]


def test_angles_are_compared_with_the_best_constant():
    true = np.concatenate([np.zeros(60), np.full(40, 0.99 * np.pi)])[:, None]
    constants = np.linspace(-np.pi, np.pi, 2001)
    found = [rep.r2(np.full_like(true, value), true, "angle")[0] for value in constants]
    assert max(found) == pytest.approx(0.0, abs=1e-4)
    assert max(found) <= 1e-12
    drawn = rng(13).uniform(-4, 4, (25, 3))
    best = np.max([rep.r2(np.full_like(drawn, v), drawn, "angle") for v in constants], axis=0)
    np.testing.assert_allclose(best, 0.0, atol=1e-3)
    assert (best <= 1e-12).all()


def test_pi_and_minus_pi_are_one_angle():
    assert rep.r2([[0.0], [0.0]], [[np.pi], [-np.pi]], "angle").tolist() == [0.0]


def test_many_samples_far_from_zero_correlate_as_few(numbers):
    column = np.tile(numbers[:, :1], (200, 1))
    assert rep.mcc(1e6 + 1e-4 * column, column) == pytest.approx(1.0, abs=1e-6)
    assert rep.mcc(np.full_like(column, 0.1), column) == 0.0


def test_categories_are_compared_with_the_commonest():
    true = np.array([[0], [0], [0], [1]])
    assert rep.r2(true, true, "categorical")[0] == 1
    assert rep.r2(np.zeros((4, 1)), true, "categorical")[0] == 0


def test_r2_matrix_knows_its_blocks(numbers):
    latents = np.stack([numbers[:, 0] + numbers[:, 1], numbers[:, 1], numbers[:, 2]], axis=1)
    table = rep.r2_matrix(latents, numbers, [0, 0, 1], rng=rng())
    np.testing.assert_allclose(table, [[1, 1, 0], [0, 0, 1]], atol=0.03)
    told = rep.r2_summary(table, [0, 0, 1])
    assert told["diagonal"] > 0.99
    assert told["off_diagonal"] < 0.03


def test_a_constant_column_counts_nothing(numbers):
    flat = np.concatenate([numbers[:, :2], np.full((600, 1), 0.1)], axis=1)
    assert rep.mcc(flat, numbers) == pytest.approx(2 / 3, abs=0.05)
    assert rep.mcc(numbers, flat) == pytest.approx(2 / 3, abs=1e-9)
    assert rep.r2(flat, flat).tolist() == [1.0, 1.0, 0.0]
    assert dis.mig(flat, flat) < 1


def test_fewer_latents_than_factors(grid):
    assert rep.mcc(grid[:, :2], grid) == pytest.approx(2 / 3)


def test_segments():
    given = np.array([[0, 0, 1, 1], [0, 0, 2, 2]])
    assert seg.foreground_ari(given, given) == 1
    assert seg.mean_iou(given + 5, given) == 1
    halved = np.array([[0, 0, 1, 3], [0, 0, 2, 2]])
    assert seg.mean_iou(halved, given) == pytest.approx((0.5 + 1) / 2)
    assert seg.mean_best_overlap(halved, given) == pytest.approx(0.75)
    one = np.zeros_like(given)
    assert seg.mean_iou(one, given) == pytest.approx(0.125)  # one segment, two objects
    assert np.isnan(seg.mean_iou(given, np.zeros_like(given)))
    assert np.isnan(seg.foreground_ari(given, np.zeros_like(given)))


@pytest.mark.parametrize(
    "name", [n for n in REPRESENTATIONS if "representation" in REPRESENTATIONS[n].tags]
)
def test_bad_arrays_are_refused(name, numbers):
    metric = REPRESENTATIONS.load(name)
    more = {} if name in ("mcc", "mig", "sap", "modularity") else {"rng": rng()}
    with pytest.raises(InvalidValueError, match="latents are"):
        metric(numbers, numbers[:-1], **more)
    with pytest.raises(InvalidValueError, match="NaN"):
        metric(numbers * np.nan, numbers, **more)


def test_bad_segments_and_blocks_are_refused(numbers):
    with pytest.raises(InvalidValueError, match="segments are"):
        seg.mean_iou([0, 1], [0, 1, 2])
    with pytest.raises(InvalidValueError, match="blocks name"):
        rep.r2_matrix(numbers, numbers, [0, 1], rng=rng())
    with pytest.raises(InvalidValueError, match="only one"):
        dis.modularity(numbers, numbers[:, :1])


# ------------------------------------------------------------------- near copies of a sample


@pytest.fixture(scope="module")
def copies() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latents that say which pair a sample is of, and nothing else; two factors; the pairs."""
    draw = rng(11)
    latents = draw.normal(size=(250, 16)).repeat(2, axis=0) + 0.05 * draw.normal(size=(500, 16))
    return latents, draw.normal(size=(250, 2)).repeat(2, axis=0), np.repeat(np.arange(250), 2)


def test_a_group_lies_in_one_half():
    groups = np.array(["a", "b", "c", "d"]).repeat([1, 2, 3, 4])
    fit, test = rep.halves(10, rng(), groups)
    assert sorted([*fit, *test]) == list(range(10))
    assert not set(groups[fit]) & set(groups[test])
    with pytest.raises(InvalidValueError, match="groups are"):
        rep.halves(10, rng(), np.zeros(10))
    with pytest.raises(InvalidValueError, match="groups are"):
        rep.halves(10, rng(), groups[:9])


def test_readers_do_not_know_the_copies_of_what_they_are_judged_by(copies):
    latents, factors, pairs = copies
    assert dis.dci(latents, factors, rng=rng()).informativeness > 0.25  # copies in both halves
    assert dis.dci(latents, factors, rng=rng(), groups=pairs).informativeness < 0.05
    median = (factors > 0).astype(float)
    assert abs(dis.explicitness(latents, median, rng=rng(), groups=pairs)) < 0.2
    assert rep.r2_matrix(latents, factors, [0] * 16, rng=rng(), groups=pairs).max() < 0.05
    assert rep.block_mcc(latents, factors, [0] * 16, rng=rng(), groups=pairs) < 0.2
