"""States: counterfactual scores by hand and in worlds with exact twins; causes from transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.models.state_graphs import (
    StateNetworks,
    StateTransitions,
    candidates,
    graph_by_masks,
    graph_by_tests,
    local_graphs,
)
from interverse.models.states import (
    LinearStates,
    StateTrials,
    score_states,
    state_trials,
)
from interverse.worlds.tutorial.world import Slider

SLIDER = "tutorial/slider-v1"


def by_hand(rng: np.random.Generator, count: int = 40) -> StateTrials:
    """A linear world in which x never touches y: x' = 2 x + action, y' = y."""
    before = rng.normal(size=(count, 2))
    twins = before.copy()
    twins[:, 0] += rng.uniform(0.5, 1.0, count)
    actions = rng.normal(size=(count, 1, 1))

    def after(states):
        return np.stack([2 * states[:, 0] + actions[:, 0, 0], states[:, 1]], axis=1)

    return StateTrials(
        columns={"x": slice(0, 1), "y": slice(1, 2)},
        altered="x",
        before=before,
        twins=twins,
        actions=actions,
        after=after(before),
        truth=after(twins),
    )


def score_true(trials):
    return score_states((trials.after, trials.truth), trials)


def score_copied(trials):
    return score_states((trials.after, trials.after), trials)


def test_ceiling_and_copy_are_exact():
    trials = by_hand(np.random.default_rng(0))
    best = score_true(trials)
    assert (best.hits, best.mrr, best.ranked) == (100.0, 100.0, 40)
    assert best.effect_errors == {"x": 0.0, "y": 0.0}
    copied = score_copied(trials)
    assert copied.hits == 0.0
    effect = 2 * (trials.twins - trials.before)[:, 0].mean() / trials.units[0]
    assert copied.effect_errors == {"x": pytest.approx(effect), "y": 0.0}
    assert (copied.missed["x"], copied.spurious["x"]) == (copied.effect_errors["x"], None)
    assert (copied.missed["y"], copied.spurious["y"]) == (None, 0.0)


def test_a_column_far_from_zero_in_its_units_hides_no_small_effect():
    trials = by_hand(np.random.default_rng(0))
    far = np.array([0.0, 1e4]) * trials.units  # as a height that hardly ever changes
    moved = replace(trials, after=trials.after + far, truth=trials.truth + far)
    assert score_true(moved).hits == 100.0


def test_a_linear_world_is_known_to_a_linear_model():
    rng = np.random.default_rng(1)
    model = LinearStates(by_hand(rng, 200), ridge=1e-9)
    asked = by_hand(rng)
    score = score_states(model.answers(asked), asked)
    assert score.hits == 100.0
    assert max(score.effect_errors.values()) < 1e-6


def test_the_slider_is_its_own_ceiling():
    trials = state_trials(
        "tutorial/slider-v1", "box/mass", ["box/position", "box/velocity"], worlds=16
    )
    assert (trials.before[:, trials.columns["box/position"]] == 0).mean() < 1
    start = np.delete(trials.before - trials.twins, trials.columns["box/mass"], axis=1)
    assert not start.any()  # before the actions only the mass differs
    assert score_true(trials).hits == 100.0


def pasted(trials: StateTrials):
    """Copies the fact and writes the value that was set into it."""
    out, columns = trials.after.copy(), trials.columns[trials.altered]
    out[:, columns] = trials.twins[:, columns]
    return trials.after, out


@pytest.mark.parametrize("altered", ["box/color", "box/mass"])
def test_writing_down_the_value_that_was_set_is_worth_nothing(altered):
    tracked = ["box/position", "box/velocity"]
    trials = state_trials("tutorial/slider-v1", altered, tracked, worlds=64)
    moves = np.abs(trials.truth - trials.after)[:, :6].max(axis=1) > 1e-9
    for twin in (trials.truth, trials.after, pasted(trials)[1]):
        score = score_states((trials.after, twin), trials)
        assert score.ranked == moves.sum()
        assert list(score.effect_errors) == tracked
    assert score == score_copied(trials)
    if altered == "box/color":  # which nothing that is tracked depends on
        assert (score.ranked, score.hits, score.mrr) == (0, None, None)
        itself = state_trials("tutorial/slider-v1", altered, [altered], worlds=64)
        assert score_states(pasted(itself), itself).hits == 100.0


@pytest.mark.slow
def test_trifinger_states_have_exact_twins():
    trials = state_trials(
        "trifinger/pushing-v1",
        "block_0/mass",
        ["joint_positions", "block_0/cartesian_position"],
        worlds=12,
        steps=3,
    )
    best, copied = score_true(trials), score_copied(trials)
    assert set(best.effect_errors.values()) == {0.0}
    assert copied.effect_errors["block_0/cartesian_position"] > 0.0


def test_unknown_variables_are_named():
    with pytest.raises(UnknownNameError, match="box/mas"):
        state_trials("tutorial/slider-v1", "box/mas", ["box/position"], worlds=2)


TRACKED = ["box/position", "box/velocity"]


@pytest.mark.parametrize("max_steps", [9, 8, 5, 4])
def test_horizons_that_are_too_short_for_the_trials_are_refused(max_steps):
    with pytest.raises(InvalidValueError, match=rf"has {max_steps} steps, 10 are needed.*max_step"):
        state_trials(SLIDER, "box/friction", TRACKED, worlds=4, max_steps=max_steps)


def test_a_horizon_that_just_suffices_changes_no_trial():
    short, usual = (
        state_trials(SLIDER, "box/friction", TRACKED, worlds=8, seed=2, max_steps=max_steps)
        for max_steps in (10, 100)
    )
    assert score_copied(short).ranked == 8
    for name in ("before", "twins", "after", "truth"):
        assert np.array_equal(getattr(short, name), getattr(usual, name))


def ending(monkeypatch, over: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> None:
    """Lets episodes of the slider end where a function of the positions says so."""
    score = Slider.score

    def ends(self: Slider) -> Any:
        held = np.array(self.read("box/position")).reshape(self.num_worlds, -1)
        return score(self)._replace(terminated=over(held))

    monkeypatch.setattr(Slider, "score", ends)


def test_trials_that_an_end_cuts_short_are_left_out(monkeypatch):
    free = state_trials(SLIDER, "box/mass", TRACKED, worlds=64, seed=2)
    ending(monkeypatch, lambda held: np.abs(held[:, 0]) > 0.15)
    cut = state_trials(SLIDER, "box/mass", TRACKED, worlds=64, seed=2)
    assert 0 < len(cut.before) < len(free.before) == 64
    rows = {row.tobytes(): at for at, row in enumerate(free.before)}
    same = [rows[row.tobytes()] for row in cut.before]  # the world itself goes on as it did
    assert np.array_equal(cut.truth, free.truth[same])
    assert np.array_equal(cut.actions, free.actions[same])
    assert (np.abs(cut.before[:, 0]) <= 0.15).all()
    ending(monkeypatch, lambda held: np.ones(len(held), dtype=bool))
    with pytest.raises(InvalidValueError, match="every trial of box/mass ended before 10 steps"):
        state_trials(SLIDER, "box/mass", TRACKED, worlds=4)


def test_options_of_the_vector_are_no_options_of_a_world():
    with pytest.raises(UnknownNameError, match="autoreset_mode"):
        state_trials(SLIDER, "box/mass", TRACKED, worlds=2, autoreset_mode="next_step")


GRAPH = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])  # a diamond


@pytest.fixture(scope="module")
def diamond() -> StateTransitions:
    """A diamond of three colours: a child is the sum of its parents, one time in five anything."""
    rng, rows = np.random.default_rng(0), 4000
    before = np.zeros((rows, 4), dtype=np.int64)
    before[:, 0] = rng.integers(3, size=rows)
    anything = rng.integers(3, size=(2, rows, 4))
    loud = rng.random((2, rows, 4)) < 0.2
    for i in (1, 2, 3):
        before[:, i] = np.where(loud[0][:, i], anything[0][:, i], before @ GRAPH[i] % 3)
    acted, after = rng.integers(4, size=rows), before.copy()
    after[np.arange(rows), acted] = rng.integers(3, size=rows)
    touched = acted[:, None] == np.arange(4)
    for i in (1, 2, 3):
        hit = (touched & GRAPH[i].astype(bool)).any(1)
        new = np.where(loud[1][:, i], anything[1][:, i], after @ GRAPH[i] % 3)
        after[:, i] = np.where(hit, new, after[:, i])
        touched[:, i] |= hit
    return StateTransitions(before=before, acted=acted, after=after, values=3)


def test_what_an_action_changes_is_no_cause(diamond):
    reach = diamond.reach()
    assert reach.astype(int).tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
    assert candidates(reach)[3].tolist() == [True, True, True, False]
    assert candidates(reach)[0].tolist() == [False, False, False, False]


def test_both_learners_find_the_diamond(diamond):
    assert graph_by_tests(diamond).tolist() == GRAPH.tolist()
    graph, information = graph_by_masks(diamond)
    assert graph.tolist() == GRAPH.tolist()
    assert information[GRAPH == 1].min() > 0.1 > 0.02 > information[GRAPH == 0].max()


def test_five_causes_of_one_object_are_all_found():
    rng, rows, values = np.random.default_rng(0), 10_000, 5
    graph = np.zeros((6, 6), dtype=np.int64)
    graph[5, :5] = 1
    before, acted = rng.integers(values, size=(rows, 6)), rng.integers(6, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(values, size=rows)
    told = np.where(rng.random(rows) < 0.6, after[:, :5].max(1), rng.integers(values, size=rows))
    after[:, 5] = np.where(acted < 5, told, after[:, 5])
    data = StateTransitions(before=before, acted=acted, after=after, values=values)
    assert np.array_equal(graph_by_tests(data), graph)


def test_networks_on_the_causes_alone_mind_no_other_object(diamond):
    true = StateNetworks.fitted(diamond, GRAPH)
    dense = StateNetworks.fitted(diamond, np.ones((4, 4), dtype=bool))
    after = diamond.after.copy()
    after[:, 2] = np.random.default_rng(1).integers(3, size=len(after))
    noisy = replace(diamond, after=after)
    assert true.losses(noisy)[1] == pytest.approx(true.losses(diamond)[1])
    assert dense.losses(noisy)[1] > dense.losses(diamond)[1] + 0.005
    # Four fifths right and the rest spread over three colours: the entropy of the mechanism.
    share = np.array([0.8 + 0.2 / 3, 0.2 / 3, 0.2 / 3])
    assert true.losses(diamond)[1] == pytest.approx(-(share * np.log(share)).sum(), abs=0.05)


def test_outcomes_are_drawn_cause_after_cause(diamond):
    networks = StateNetworks.fitted(diamond, GRAPH)
    start, acted = np.zeros((3000, 4), dtype=np.int64), np.zeros(3000, dtype=np.int64)
    out = networks.sampled(start, acted, acted + 1, seed=0)
    assert (out[:, 0] == 1).all()
    assert (out[:, 1] == 1).mean() == pytest.approx(0.8 + 0.2 / 3, abs=0.05)
    assert (networks.sampled(start, acted + 3, acted + 2, seed=0)[:, :3] == 0).all()


_VALUES = 4


def _switched(rows: int) -> StateTransitions:
    """Returns a world where object 2 follows object 0 or 1, whichever is painted."""
    rng = np.random.default_rng(0)
    before, acted = rng.integers(_VALUES, size=(rows, 4)), rng.integers(4, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(_VALUES, size=rows)
    for painted in (0, 1):
        own = acted == painted
        after[own, 2] = (after[own, painted] + 1 + painted) % _VALUES
    return StateTransitions(before=before, acted=acted, after=after, values=_VALUES)


def test_causes_that_depend_on_what_is_painted_are_found_by_context():
    data = _switched(4000)
    found = local_graphs(data, steps=500)
    true = np.zeros((4, 4, 4), dtype=np.int64)
    true[0, 2, 0] = true[1, 2, 1] = 1
    assert found.local.tolist() == true.tolist()
    assert found.codes > 1
    # One graph for every situation cannot tell: it has both causes in both.
    assert graph_by_masks(data)[0].tolist() == found.graph.tolist() == true.max(0).tolist()


def test_causes_that_depend_on_the_state_are_found_by_state():
    rng, rows = np.random.default_rng(0), 4000
    before, acted = rng.integers(_VALUES, size=(rows, 3)), rng.integers(3, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(_VALUES, size=rows)
    quiet = before[:, 0] < 2  # of object 0: object 1 then says nothing to object 2
    after[:, 2] = np.where((acted == 1) & ~quiet, after[:, 1], after[:, 2])
    data = StateTransitions(before=before, acted=acted, after=after, values=_VALUES)
    found = local_graphs(data, steps=500)
    assert found.among((acted == 1) & quiet)[2, 1] == 0
    assert found.among((acted == 1) & ~quiet)[2, 1] == 1
