"""Effects that take time: fades, delays, and the original's defects behind the legacy switch."""

import numpy as np
import pytest
from scipy import stats

import interverse as iv
from interverse.worlds.chemistry import cpt, delayed
from tests.worlds.chemistry.cases import mechanisms

SIZES = cpt.CptSizes(objects=3, features=3, hidden=12, colors=5)
PALETTE = np.array(
    [[0, 0, 255], [0, 255, 0], [255, 255, 0], [128, 128, 128], [255, 0, 0]], dtype=np.int64
)


def rules(count, graph="chain", delay=4, *, legacy=False):
    weights = cpt.draw_weights([np.random.default_rng(0)], SIZES, "orthogonal")
    return delayed.FadeRules(
        mechanisms=mechanisms(count, graph, weights),
        palette=np.repeat(PALETTE[None], count, axis=0),
        delay=np.full((count, 3, 3), delay),
        legacy=legacy,
    )


def painted(fade, objects, paints, given, seed=0):
    count = given.palette.shape[0]
    uniforms = np.random.default_rng(seed).random((count, 3))
    which, paint = np.full(count, objects), np.full(count, paints)
    return delayed.propagate(fade, which, paint, given, uniforms)


def resting(count=1, color=(0, 1, 2)):
    return delayed.settled(np.repeat(np.array([color]), count, axis=0))


@pytest.mark.parametrize("delay", [1, 2, 3, 7])
def test_an_effect_stands_after_its_delay_along_a_straight_line(delay):
    given = rules(1, "0->1", delay)
    fade = painted(resting(), 0, 4, given)
    aim, frames = PALETTE[fade.color[0, 1]], []
    for _ in range(delay):
        frames.append(delayed.shown(fade, given.palette)[0, 1])
        fade = painted(fade, 2, 2, given)  # paints an object without effects
    line = [PALETTE[1] + (aim - PALETTE[1]) * t / delay for t in range(1, delay + 1)]
    np.testing.assert_array_equal(frames, np.trunc(line))
    np.testing.assert_array_equal(frames[-1], aim)


def test_the_original_needs_a_step_less_and_a_delay_of_one_has_no_effect():
    for delay in (2, 4):
        slow, quick = rules(1, "0->1", delay - 1), rules(1, "0->1", delay, legacy=True)
        ours, theirs = painted(resting(), 0, 4, slow), painted(resting(), 0, 4, quick)
        for _ in range(delay):
            shown = [delayed.shown(f, slow.palette) for f in (ours, theirs)]
            np.testing.assert_array_equal(*shown)
            ours, theirs = painted(ours, 2, 2, slow), painted(theirs, 2, 2, quick)
    never = rules(40, "0->1", 1, legacy=True)
    after = painted(resting(40), 0, 4, never)
    np.testing.assert_array_equal(delayed.shown(after, never.palette)[:, 1], [PALETTE[1]] * 40)
    assert np.any(painted(resting(40), 0, 4, rules(40, "0->1", 1)).color[:, 1] != 1)


def test_painting_a_fading_object_ends_its_fade_but_not_in_the_original():
    for legacy in (False, True):
        given = rules(1, "0->1", 5, legacy=legacy)
        fade = painted(resting(), 0, 4, given)
        fade = painted(fade, 1, 2, given)
        shown = delayed.shown(fade, given.palette)[0, 1]
        assert np.array_equal(shown, PALETTE[2]) != legacy
        assert (fade.elapsed[0, 1] < fade.duration[0, 1]) == legacy


def test_a_new_effect_replaces_the_fade_from_where_it_stands():
    given = rules(1, "0->1", 5)
    fade = painted(resting(), 0, 4, given)
    halfway = delayed.shown(fade, given.palette)[0, 1]
    fade = painted(fade, 0, 0, given, seed=3)
    np.testing.assert_array_equal(fade.origin[0, 1], halfway)
    assert fade.elapsed[0, 1] == 1


def test_the_delay_is_that_of_the_first_reached_parent():
    given = rules(1, "0->1,0->2,1->2")
    given.delay[0, 1, 0], given.delay[0, 2, 0], given.delay[0, 2, 1] = 2, 6, 9
    fade = painted(resting(), 0, 4, given)
    assert fade.duration[0].tolist() == [1, 2, 6]
    assert painted(resting(), 1, 4, given).duration[0, 2] == 9


def test_all_are_drawn_from_what_was_shown_before_the_paint():
    """Object 2 reads object 1's old colour, though object 1 is redrawn in the same step."""
    given = rules(300, "0->1,1->2", 1)
    uniforms = np.random.default_rng(0).random((300, 3))
    zero, red = np.zeros(300, np.int64), np.full(300, 4)
    fade = delayed.propagate(resting(300), zero, red, given, uniforms)
    shown = np.repeat(PALETTE[[[4, 1, 2]]], 300, axis=0).astype(float)
    sums = cpt.first_layer_dense(given.mechanisms, 2, shown)
    expected = cpt.pick(cpt.cumulative(given.mechanisms, 2, sums), uniforms[:, 2])
    np.testing.assert_array_equal(fade.color[:, 2], expected)


def test_colours_match_within_the_tolerance():
    target = np.array([[[100, 100, 100]]] * 3)
    shown = target + np.array([[[74, 0, 0]], [[75, 0, 0]], [[25, 25, -25]]])
    np.testing.assert_array_equal(delayed.matches(shown, target), [1.0, 0.0, 0.0])


def test_random_delays_are_one_more_than_poisson():
    drawn = delayed.random_delays(np.random.default_rng(0).random(20_000), 64)
    counts = np.bincount(drawn, minlength=10)
    chances = stats.poisson(3).pmf(np.arange(8))
    expected = 20_000 * np.array([*chances, 1 - chances.sum()])
    observed = np.array([*counts[1:9], counts[9:].sum()])
    assert counts[0] == 0
    assert stats.chisquare(observed, expected).pvalue > 1e-4


# ---------------------------------------------------------------------------- as a world


def make(**options):
    return iv.make("chemistry/custom-v1", mode="delayed", objects=3, graph="0->1->2", **options)


def test_the_world_shows_fades_as_variables_pixels_and_rewards():
    env = make(delay=4)
    env.reset(seed=1)
    color = int(env.values["object_0/color"])
    observation, reward, *_ = env.step((color + 1) % 5)
    assert env.values["object_1/fade"] == 3
    rgb = env.values["object_1/rgb"]
    np.testing.assert_array_equal(np.rint(255 * rgb), observation["state"][1])
    assert observation["image"][5:10, 45].max(axis=0).tolist() == observation["state"][1].tolist()
    assert 0.0 <= reward <= 1.0
    outcome = env.unwrapped.do({"object_1/color": 3})
    assert {"object_1/fade", "object_1/rgb"} >= set(outcome.changed) - {"object_1/color"}
    assert env.values["object_1/fade"] == 0
    np.testing.assert_allclose(env.values["object_1/rgb"], 128 / 255)


def test_delays_are_variables():
    env = make(delay=2)
    assert env.values["edge_0_1/delay"] == 2
    env.reset(seed=0, options={"do": {"edge_0_1/delay": 9}})
    env.step(3)
    assert env.values["object_1/fade"] == 8

    edges = [(0, 1), (0, 2), (1, 2)]
    drawn = {
        tuple(int(make(graph_seed=s).values[f"edge_{j}_{i}/delay"]) for j, i in edges)
        for s in range(6)
    }
    assert len(drawn) == 6


def test_the_original_carries_the_targets_fades_into_the_world():
    for legacy in (False, True):
        env = make(delay=60, legacy=legacy)
        pending = 0
        for seed in range(5):
            env.reset(seed=seed)
            pending += sum(int(env.values[f"object_{i}/fade"]) for i in range(3))
        assert (pending > 0) == legacy


def test_a_goal_can_be_set_and_reached():
    env = make(delay=1)
    env.reset(seed=0)
    now = {f"goal_{i}/rgb": env.values[f"object_{i}/rgb"] for i in range(3)}
    env.unwrapped.do(now)
    last = int(env.values["object_2/color"])
    _, reward, _, _, info = env.step(10 + last)
    assert reward == 1.0
    assert info["success"]
