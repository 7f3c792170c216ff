"""Counterfactual scores on states: by hand on three trials, and in worlds with exact twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from interverse.core.errors import UnknownNameError
from interverse.models.state_counterfactual import (
    CopiedStates,
    LinearStates,
    StateTrials,
    TrueStates,
    score_states,
    state_trials,
)


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


def test_ceiling_and_copy_are_exact():
    trials = by_hand(np.random.default_rng(0))
    best = score_states(TrueStates(), trials)
    assert (best.hits, best.mrr, best.ranked) == (100.0, 100.0, 40)
    assert best.effect_errors == {"x": 0.0, "y": 0.0}
    copied = score_states(CopiedStates(), trials)
    assert copied.hits == 0.0
    effect = 2 * (trials.twins - trials.before)[:, 0].mean() / trials.units[0]
    assert copied.effect_errors == {"x": pytest.approx(effect), "y": 0.0}
    assert (copied.missed["x"], copied.spurious["x"]) == (copied.effect_errors["x"], None)
    assert (copied.missed["y"], copied.spurious["y"]) == (None, 0.0)


def test_a_column_far_from_zero_in_its_units_hides_no_small_effect():
    trials = by_hand(np.random.default_rng(0))
    far = np.array([0.0, 1e4]) * trials.units  # as a height that hardly ever changes
    moved = replace(trials, after=trials.after + far, truth=trials.truth + far)
    assert score_states(TrueStates(), moved).hits == 100.0


def test_a_linear_world_is_known_to_a_linear_model():
    rng = np.random.default_rng(1)
    model = LinearStates(by_hand(rng, 200), ridge=1e-9)
    score = score_states(model, by_hand(rng))
    assert score.hits == 100.0
    assert max(score.effect_errors.values()) < 1e-6


def test_the_slider_is_its_own_ceiling():
    trials = state_trials(
        "tutorial/slider-v1", "box/mass", ["box/position", "box/velocity"], worlds=16
    )
    assert (trials.before[:, trials.columns["box/position"]] == 0).mean() < 1
    start = np.delete(trials.before - trials.twins, trials.columns["box/mass"], axis=1)
    assert not start.any()  # before the actions only the mass differs
    assert score_states(TrueStates(), trials).hits == 100.0


class PastedValue:
    """Copies the fact and writes the value that was set into it."""

    def answers(self, trials: StateTrials) -> tuple[np.ndarray, np.ndarray]:
        out, columns = trials.after.copy(), trials.columns[trials.altered]
        out[:, columns] = trials.twins[:, columns]
        return trials.after, out


@pytest.mark.parametrize("altered", ["box/color", "box/mass"])
def test_writing_down_the_value_that_was_set_is_worth_nothing(altered):
    tracked = ["box/position", "box/velocity"]
    trials = state_trials("tutorial/slider-v1", altered, tracked, worlds=64)
    moves = np.abs(trials.truth - trials.after)[:, :6].max(axis=1) > 1e-9
    for one in (TrueStates(), CopiedStates(), PastedValue()):
        score = score_states(one, trials)
        assert score.ranked == moves.sum()
        assert list(score.effect_errors) == tracked
    assert score == score_states(CopiedStates(), trials)
    if altered == "box/color":  # which nothing that is tracked depends on
        assert (score.ranked, score.hits, score.mrr) == (0, None, None)
        itself = state_trials("tutorial/slider-v1", altered, [altered], worlds=64)
        assert score_states(PastedValue(), itself).hits == 100.0


@pytest.mark.slow
def test_trifinger_states_have_exact_twins():
    trials = state_trials(
        "trifinger/pushing-v1",
        "block_0/mass",
        ["joint_positions", "block_0/cartesian_position"],
        worlds=12,
        steps=3,
    )
    best, copied = score_states(TrueStates(), trials), score_states(CopiedStates(), trials)
    assert set(best.effect_errors.values()) == {0.0}
    assert copied.effect_errors["block_0/cartesian_position"] > 0.0


def test_unknown_variables_are_named():
    with pytest.raises(UnknownNameError, match="box/mas"):
        state_trials("tutorial/slider-v1", "box/mas", ["box/position"], worlds=2)
