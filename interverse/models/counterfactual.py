"""Counterfactual scores: does a model know what would have happened?

A trial has a fact (a scene, an action, its outcome) and an intervention: one object of the scene
has another value, or in chemistry the painted object gets another colour. The true counterfactual
is what the world does then with *the same noise*; only a world with exact twins can tell it.

- CF-H@1, CF-MRR: the prediction for the altered trial is compared with the true counterfactuals and
  the facts, scenes and altered scenes of all trials. The rank of the own true counterfactual counts
  candidates of other pictures that are as near or nearer. Trials whose counterfactual is the fact
  are left out, so that copying the fact never hits.
- Effect error of an object: the mean difference between how far the model moves it by the
  intervention (total variation of its two predictions) and how far the world does (0 or 1), over
  trials in which another object was altered. *Missed* is its part where the world moves the object,
  *spurious* the one where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.rng import generator
from interverse.metrics.recovery import Floats, total_variation
from interverse.models.effects import ProbedModel
from interverse.models.ranking import numbered, ranks_among
from interverse.models.trials import Scenes, in_contact, repainted
from interverse.worlds.world import World

Shown = NDArray[np.generic]  # states or images


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """What a respondent may see of N trials, as states (N, objects) or as images.

    Attributes:
        scenes: before the action.
        actions: (N,) what was done.
        outcomes: what became of it.
        twins: the scenes with the object `altered` changed.
        twin_actions: the same actions; where `altered` is painted, in another colour.
        altered: (N,) that object.
    """

    scenes: Shown
    actions: NDArray[np.int64]
    outcomes: Shown
    twins: Shown
    twin_actions: NDArray[np.int64]
    altered: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterfactualTrials:
    """Trials as states and as images, with the truth.

    Attributes:
        states, images: the facts in both forms.
        truth, truth_images: what the altered scenes become under the facts' noise.
        values: how many values an object has.
        scenes: the worlds, to ask more of.
    """

    states: Facts
    images: Facts
    truth: NDArray[np.int64]
    truth_images: NDArray[np.uint8]
    values: int
    scenes: Scenes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualScore:
    """Scores of one respondent; ranks in percent, effects per object and their mean."""

    hits: float
    mrr: float
    effect_error: float
    effect_errors: tuple[float, ...]
    missed: tuple[float | None, ...]
    spurious: tuple[float | None, ...]
    trials: int
    ranked: int
    """Trials whose counterfactual is not the fact; ranks are of these."""

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


class CounterfactualRespondent(Protocol):
    """A model, a world or a rule that says what would have been."""

    def facts(self, trials: CounterfactualTrials) -> tuple[Facts, Shown]:
        """Returns the facts in the form it understands, and the truth in that form."""
        ...

    def encode(self, shown: Shown) -> Floats:
        """Returns (N, width) features of states or images, in which predictions are compared."""
        ...

    def predict(self, facts: Facts) -> Floats:
        """Returns (N, width) features of what it expects of the altered scenes."""
        ...

    def effects(self, facts: Facts) -> Floats:
        """Returns (N, objects) in [0, 1]: how far the intervention moves each object's outcome."""
        ...


class StateRespondent:
    """What answers in states, seen as one-hot numbers; by itself it expects no effect.

    Args:
        values: how many values an object has.
    """

    def __init__(self, values: int) -> None:
        self._values = values

    def facts(self, trials: CounterfactualTrials) -> tuple[Facts, Shown]:
        """Returns states."""
        return trials.states, trials.truth

    def encode(self, shown: Shown) -> Floats:
        """Returns one-hot states."""
        return np.eye(self._values)[shown].reshape(len(shown), -1)

    def effects(self, facts: Facts) -> Floats:
        """Returns zeros."""
        return np.zeros(facts.outcomes.shape)


@final
class TrueWorld(StateRespondent):
    """The world itself; with the facts' noise it is the ceiling.

    Args:
        trials: whose worlds to ask.
        noise: 1: the facts' own. Another number: noise that is independent of it, so that the
            answer is that of a model with perfect mechanisms that cannot know the noise.
    """

    def __init__(self, trials: CounterfactualTrials, *, noise: int = 1) -> None:
        super().__init__(trials.values)
        self._scenes, self._noise = trials.scenes, noise

    def predict(self, facts: Facts) -> Floats:
        """Returns what the altered scenes become."""
        return self.encode(self._after(facts.twins, facts.twin_actions))

    def effects(self, facts: Facts) -> Floats:
        """Returns which objects become another."""
        fact = self._after(facts.scenes, facts.actions)
        return (fact != self._after(facts.twins, facts.twin_actions)).astype(float)

    def _after(self, scenes: Shown, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        self._scenes.show(scenes)
        return self._scenes.act(actions, step=self._noise)


@final
class CopyTheFact(StateRespondent):
    """The baseline that takes the fact's outcome for the counterfactual."""

    def predict(self, facts: Facts) -> Floats:
        """Returns the facts' outcomes."""
        return self.encode(facts.outcomes)


@final
class KeepTheScene(StateRespondent):
    """The baseline that takes the altered scene for what becomes of it, as if nothing were done."""

    def predict(self, facts: Facts) -> Floats:
        """Returns the altered scenes."""
        return self.encode(facts.twins)


@final
class MoveTheActed(StateRespondent):
    """The baseline that knows what becomes of the acted object and of no other."""

    def __init__(self, trials: CounterfactualTrials) -> None:
        super().__init__(trials.values)
        self._scenes = trials.scenes

    def predict(self, facts: Facts) -> Floats:
        """Returns the altered scenes in which the acted object alone has its true outcome."""
        states, actions = np.array(facts.twins), facts.twin_actions
        self._scenes.show(states)
        rows, acted = np.arange(len(states)), actions // (self._scenes.actions // states.shape[1])
        states[rows, acted] = self._scenes.act(actions, step=1)[rows, acted]
        return self.encode(states)


class ModelCounterfactual:
    """A world model that predicts from the altered scene, read through a probe."""

    def __init__(self, respondent: ProbedModel) -> None:
        self.respondent = respondent

    def facts(self, trials: CounterfactualTrials) -> tuple[Facts, Shown]:
        """Returns images."""
        return trials.images, trials.truth_images

    def encode(self, shown: Shown) -> Floats:
        """Returns the model's encodings."""
        return self.respondent.encodings(shown)

    def predict(self, facts: Facts) -> Floats:
        """Returns predicted states of the altered scenes."""
        return self.respondent.predictions(facts.twins, facts.twin_actions)

    def effects(self, facts: Facts) -> Floats:
        """Returns how far the probe's reading of the two predictions differs."""
        fact = self.respondent.after(facts.scenes, facts.actions)
        return total_variation(fact, self.respondent.after(facts.twins, facts.twin_actions))


@final
class ReadTruth(ModelCounterfactual):
    """The true counterfactuals, read by a model's encoder and probe: perfect predictions.

    What is missing from the true world's scores is the reading's fault.
    """

    def __init__(self, respondent: ProbedModel, trials: CounterfactualTrials) -> None:
        super().__init__(respondent)
        self._truth = trials.truth_images

    def predict(self, facts: Facts) -> Floats:
        """Returns encodings of the true counterfactuals."""
        return self.encode(self._truth)

    def effects(self, facts: Facts) -> Floats:
        """Returns how far the probe's reading of the two true outcomes differs."""
        read = self.respondent.now
        return total_variation(read(facts.outcomes), read(self._truth))


def score_counterfactuals(
    respondent: CounterfactualRespondent, trials: CounterfactualTrials
) -> CounterfactualScore:
    """Returns how well a respondent knows what would have happened."""
    facts, truth = respondent.facts(trials)
    shown = np.concatenate([truth, facts.outcomes, facts.scenes, facts.twins])
    features = respondent.encode(shown)
    moved = (trials.truth != trials.states.outcomes).astype(float)
    found = ranks_among(
        torch.as_tensor(respondent.predict(facts)),
        torch.as_tensor(features),
        torch.as_tensor(numbered(shown)),
    )[torch.as_tensor(moved.any(axis=1))]
    errors = np.abs(moved - respondent.effects(facts))
    others = trials.states.altered[:, None] != np.arange(moved.shape[1])

    def means(rows: NDArray[np.bool_]) -> list[float | None]:
        pairs = zip(errors.T, rows.T, strict=True)
        return [round(float(own[here].mean()), 6) if here.any() else None for own, here in pairs]

    per_object = [one or 0.0 for one in means(others)]
    return CounterfactualScore(
        hits=100.0 * float((found == 1).double().mean()),
        mrr=100.0 * float((1.0 / found).double().mean()),
        effect_error=float(np.mean(per_object)),
        effect_errors=tuple(per_object),
        missed=tuple(means(others & (moved == 1))),
        spurious=tuple(means(others & (moved == 0))),
        trials=len(truth),
        ranked=len(found),
    )


def counterfactual_trials(world: World, *, seed: int) -> CounterfactualTrials:
    """Returns one trial per world of a batch of blocks or chemistry."""
    scenes = Scenes(world, seed=seed)
    rng = generator(seed=seed, name=f"counterfactuals/{scenes.field}")
    draw = _blocks if scenes.field == "position" else _chemistry
    states, actions, twins, twin_actions, altered = draw(scenes, rng)
    outcomes = scenes.after(states, actions)
    truth = scenes.after(twins, twin_actions)

    def facts(show: Callable[[NDArray[np.int64]], Shown]) -> Facts:
        return Facts(
            scenes=show(states),
            actions=actions,
            outcomes=show(outcomes),
            twins=show(twins),
            twin_actions=twin_actions,
            altered=altered,
        )

    return CounterfactualTrials(
        states=facts(np.asarray),
        images=facts(scenes.images),
        truth=truth,
        truth_images=scenes.images(truth),
        values=scenes.values,
        scenes=scenes,
    )


def _chemistry(scenes: Scenes, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Colours are drawn evenly; in half of the trials the paint is altered, else another object."""
    n, rows, colors = len(scenes.names), scenes.world.num_worlds, scenes.values
    states = rng.integers(colors, size=(rows, n))
    acted, paint = rng.integers(n, size=rows), rng.integers(colors, size=rows)
    own = rng.random(rows) < 0.5
    altered = np.where(own, acted, (acted + rng.integers(1, n, size=rows)) % n)
    step = rng.integers(1, colors, size=rows)
    return states, *repainted(states, acted, altered, paint, step, colors), altered


def _blocks(scenes: Scenes, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """One block stands before another and moves towards it; any block is put elsewhere."""
    n, rows = len(scenes.names), scenes.world.num_worlds
    acted, altered = rng.integers(n, size=(2, rows))
    pushed = (acted + rng.integers(1, n, size=rows)) % n
    direction = rng.integers(1, 5, size=rows)
    states = in_contact(rng, n, acted, pushed, direction)
    order = np.argsort(rng.random((rows, scenes.values)), axis=1)
    taken = (order[:, :, None] == states[:, None]).any(-1)
    free = order[np.arange(rows), np.argmin(taken, axis=1)]
    twins = states.copy()
    twins[np.arange(rows), altered] = free
    actions = acted * (scenes.actions // n) + direction
    return states, actions, twins, actions, altered
