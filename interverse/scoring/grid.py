"""Scores in blocks and chemistry: what a model of pictures predicts, and what it knows of causes.

Test scenes, noise and actions are addressed by (seed, episode) in a region of seeds of their own,
so that no named data set shares an episode with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.rng import Noise, generator, region_seed
from interverse.envs.build import build_world
from interverse.metrics.recovery import Floats, edge_scores, total_variation
from interverse.models.counterfactual import (
    CopyTheFact,
    CounterfactualScore,
    CounterfactualTrials,
    Facts,
    KeepTheScene,
    ModelCounterfactual,
    MoveTheActed,
    TrueWorld,
    counterfactual_trials,
    score_counterfactuals,
)
from interverse.models.effects import ProbedModel, effects
from interverse.models.heads import Probe, Scale, fit_probe_head, fit_reward_head
from interverse.models.ranking import HORIZONS, numbered
from interverse.models.trials import (
    GridTrials,
    Scenes,
    WorldRespondent,
    grid_trials,
    in_contact,
)
from interverse.scoring.ceilings import KnownChances, LikelyOutcome
from interverse.scoring.outside import Fact, OutsideModel
from interverse.scoring.planning import Episodes, latent_distance, score_planning
from interverse.scoring.shares import (
    PERCENT,
    Score,
    absent,
    balanced,
    chance_in_scene,
    in_scene_hits,
    mean_of,
    rounded,
    same_pictures,
    score_ranking,
    share,
    wilson,
)

FAMILIES = ("blocks/", "chemistry/")
_PARTS = ("training", "references", "scenes", "trials", "counterfactuals", "planning")
_STRATA = ("still", "move", "blocked", "push")
_CHANGED = ("move", "push")  # where something changes: nothing predicted is wrong there
_FLOOR, _EDGE = 0.05, 0.1  # of a total effect when paths are told apart; of an effect that counts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridSizes:
    """How much is played."""

    episodes: int
    """Of random play, ten steps each, from which reward and probe learn."""
    epochs: int
    references: int
    """Episodes of the ranking."""
    scenes: int
    """Scenes in which every action is tried."""
    trials: int
    counterfactuals: int
    planned: Mapping[int, int] = field(default_factory=dict)
    """Episodes by horizon."""


SIZES: Mapping[str, GridSizes] = {
    "small": GridSizes(
        episodes=800,
        epochs=20,
        references=1000,
        scenes=200,
        trials=1500,
        counterfactuals=600,
        planned={1: 400, 5: 200, 10: 100},
    ),
    "full": GridSizes(
        episodes=5000,
        epochs=40,
        references=10_000,
        scenes=2000,
        trials=6000,
        counterfactuals=2000,
        planned={1: 2000, 5: 1000, 10: 1000},
    ),
}


class _Play(NamedTuple):
    """Episodes of random play."""

    images: NDArray[np.uint8]  # (E, T + 1, H, W, 3)
    actions: NDArray[np.int64]  # (E, T)
    rewards: Floats  # (E, T + 1)
    targets: NDArray[np.uint8] | None  # (E, H, W, 3)
    labels: NDArray[np.int64]  # (E, T + 1, objects)


class _InScene(NamedTuple):
    """Scenes in which every action was tried."""

    start: NDArray[np.uint8]  # (S, H, W, 3)
    outcomes: NDArray[np.uint8]  # (S, A, H, W, 3)
    same: NDArray[np.bool_]  # (S, A, A + 1): whether a candidate shows what the action leads to
    strata: NDArray[np.int64]  # (S, A), a place in _STRATA


@final
class Reader(ProbedModel):
    """Anyone's model read through a probe."""

    def __init__(self, model: OutsideModel, probe: Probe, scale: Scale) -> None:
        self.model, self._probe, self._scale = model, probe, scale

    def encodings(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns (N, width) the latents of images."""
        return self.model.flat(scenes).numpy()

    def predictions(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns (N, width) the predicted next latents."""
        return self.model.last(self.model.encode(scenes), actions[:, None]).numpy()

    @torch.no_grad()
    def read(self, states: Floats) -> Floats:
        """Returns (N, objects, values): chances that the probe reads in flat latents."""
        return self._probe(self._scale(torch.as_tensor(states))).double().numpy()


@final
class GridBench:
    """Scenes, trials and episodes of one world, made when first needed, and the scores on them.

    Args:
        id: a blocks or chemistry id.
        sizes: how much is played.
        seed: of all that is played and trained.
        options: of the world.
    """

    def __init__(self, id: str, *, sizes: GridSizes, seed: int, options: Mapping[str, Any]) -> None:
        self.id, self.sizes, self.seed, self.options = id, sizes, seed, dict(options)
        self.in_blocks = id.startswith("blocks/")
        world: Any = build_world(id, 1, options)
        own = world.options
        self.has_target = "target" in world.observation_space.spaces
        self.objects = len(Scenes(world, seed=0).names)
        self.no_graph = _without_graph(own, self.objects, in_blocks=self.in_blocks)
        self.no_plans = "" if self.has_target else "the world shows no target to plan for"

    def _seed(self, part: str) -> int:
        return region_seed("scoring", self.seed * len(_PARTS) + _PARTS.index(part))

    # ------------------------------------------------------------------ what is played

    def _play(self, part: str, count: int, steps: int) -> _Play:
        """Returns episodes of random actions."""
        seed = self._seed(part)
        world = build_world(self.id, count, {**self.options, "max_steps": steps + 1})
        scenes = Scenes(world, seed=seed)
        everyone, zero = np.arange(count), np.zeros(count, dtype=np.int64)
        noise = Noise(zero + seed, everyone, zero)
        actions = generator(seed=seed, name="scoring/actions").integers(
            scenes.actions, size=(count, steps)
        )
        images, rewards, labels = [], [], []
        for step in range(steps + 1):
            if step:
                world.step(actions[:, step - 1], everyone, noise.at(step))
            seen = world.observe()
            images.append(np.array(seen["image"]))
            rewards.append(np.array(world.score().reward, dtype=np.float64))
            labels.append(scenes.read())
        return _Play(
            np.stack(images, axis=1),
            actions,
            np.stack(rewards, axis=1),
            np.array(seen["target"]) if self.has_target else None,
            np.stack(labels, axis=1),
        )

    @cached_property
    def _training(self) -> _Play:
        return self._play("training", self.sizes.episodes, 10)

    @cached_property
    def _references(self) -> _Play:
        return self._play("references", self.sizes.references, max(HORIZONS))

    @cached_property
    def _in_scene(self) -> _InScene:
        """Scenes with a pair of blocks in contact, or with colours drawn evenly."""
        count, seed = self.sizes.scenes, self._seed("scenes")
        world = build_world(self.id, count, self.options)
        scenes = Scenes(world, seed=seed)
        rng = generator(seed=seed, name="scoring/scenes")
        n, everyone = len(scenes.names), np.arange(count)
        if self.in_blocks:
            acted = rng.integers(n, size=count)
            pushed = (acted + rng.integers(1, max(n, 2), size=count)) % n
            states = in_contact(rng, n, acted, pushed, rng.integers(1, 5, size=count))
        else:
            states = rng.integers(scenes.values, size=(count, n))
        scenes.show(states)
        began, start = world.save(everyone), np.array(world.observe()["image"])
        pictures, ends = [], []
        for action in range(scenes.actions):
            world.load(began, everyone)
            ends.append(scenes.act(np.full(count, action)).copy())
            pictures.append(np.array(world.observe()["image"]))
        outcomes, after = np.stack(pictures, axis=1), np.stack(ends, axis=1)
        return _InScene(
            start,
            outcomes,
            same_pictures(outcomes, start),
            self._strata(outcomes, start, states, after),
        )

    def _strata(
        self,
        outcomes: NDArray[np.uint8],
        start: NDArray[np.uint8],
        states: NDArray[np.int64],
        after: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Returns what becomes of each scene by each action: still, move, blocked or push."""
        count, actions = outcomes.shape[:2]
        shown = (outcomes != start[:, None]).reshape(count, actions, -1).any(2)
        changed = after != states[:, None]
        per_object = actions // states.shape[1]
        acted = np.arange(actions) // per_object
        others = changed & (np.arange(states.shape[1]) != acted[:, None])
        # In blocks the first of an object's actions is to stay.
        tried = (np.arange(actions) % per_object != 0) & self.in_blocks
        found = np.where(tried[None], _STRATA.index("blocked"), _STRATA.index("still"))
        found = np.where(shown, _STRATA.index("move"), found)
        return np.where(shown & others.any(2), _STRATA.index("push"), found)

    @cached_property
    def _trials(self) -> tuple[GridTrials, WorldRespondent]:
        world = build_world(self.id, self.sizes.trials, self.options)
        return grid_trials(world, seed=self._seed("trials"))

    @cached_property
    def _counterfactuals(self) -> CounterfactualTrials:
        world = build_world(self.id, self.sizes.counterfactuals, self.options)
        return counterfactual_trials(world, seed=self._seed("counterfactuals"))

    @cached_property
    def _episodes(self) -> dict[int, Episodes]:
        return {
            horizon: Episodes(
                self.id, self.options, horizon=horizon, count=count, seed=self._seed("planning")
            )
            for horizon, count in self.sizes.planned.items()
        }

    # ------------------------------------------------------------------------ scores

    def scores(self, model: OutsideModel) -> dict[str, Score]:
        """Returns every kind of score of a model."""
        untrained = model.untrained()
        out = {
            "ranking": self._ranking(model, untrained),
            "in_scene": self._in_scene_score(model, untrained),
        }
        for kind in ("effects", "graph", "counterfactual"):
            out[kind] = absent(self.no_graph)
        if not self.no_graph:
            reader = self._reader(model)
            unread = None if untrained is None else self._reader(untrained)
            out["effects"] = self._effects(reader, unread)
            out["graph"] = self._graph(reader, unread)
            out["counterfactual"] = self._counterfactual(reader, unread)
        return {**out, "planning": self._planning(model, untrained)}

    def _reader(self, model: OutsideModel) -> Reader:
        """Returns a model with the probe that reads objects off its latents of true frames."""
        frames = self._training.images
        states = model.flat(frames.reshape(-1, *frames.shape[2:]))
        scale = Scale(states)
        labels = self._training.labels
        probe = fit_probe_head(
            scale(states),
            labels.reshape(-1, labels.shape[2]),
            values=25 if self.in_blocks else int(labels.max()) + 1,
            epochs=self.sizes.epochs,
            seed=self.seed,
        )
        return Reader(model, probe, scale)

    def _ranking(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns H@1 and MRR among the ends of other episodes, by horizon."""
        data = self._references
        found = score_ranking(
            model,
            untrained,
            data.images,
            data.actions,
            lambda images: images.reshape(len(images), -1).astype(np.float32),
        )
        for horizon in HORIZONS:
            found[str(horizon)]["references"] = len(data.images)
        return {**found, "references": len(data.images)}

    def _in_scene_score(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns H@1 of the true outcome among those of all actions in the same scene."""
        scenes = self._in_scene
        names = {name: scenes.strata == i for i, name in enumerate(_STRATA)}
        count, actions = scenes.same.shape[:2]
        tried = np.tile(np.arange(actions), (count, 1))
        played = scenes.start, scenes.outcomes, tried, scenes.same
        hits = in_scene_hits(model, *played)

        def over(found: NDArray[Any]) -> float | None:
            rows = [found[names[name]].mean() for name in _CHANGED if names[name].any()]
            return rounded(PERCENT * float(np.mean(rows))) if rows else None

        out = {
            **balanced([hits["model"][names[name]] for name in _CHANGED]),
            "nothing_predicted": over(hits["nothing"]),
            "do_nothing": over(scenes.same[:, :, -1]),
            "chance": over(chance_in_scene(scenes.same)),
            "true_world": over(hits["true"]),
        }
        if untrained is not None:
            out["untrained"] = over(in_scene_hits(untrained, *played)["model"])
        out["strata"] = {
            name: {
                **share(hits["model"][rows]),
                "nothing_predicted": mean_of(hits["nothing"][rows]),
                "true_world": mean_of(hits["true"][rows]),
            }
            for name, rows in names.items()
            if rows.any()
        }
        return out

    def _effects(self, reader: Reader, untrained: Reader | None) -> Score:
        """Returns how often a model moves the objects that an action on another one moves."""
        grid, world = self._trials
        trials, shown = grid.states, grid.images
        before = trials.scenes
        after = world.after(before, trials.actions).argmax(2)
        others = np.arange(before.shape[1]) != trials.acted[:, None]
        moved = (after != before) & others
        kept = (after == before) & others

        def says(one: Reader, chances: Floats) -> NDArray[np.bool_]:
            return chances.argmax(2) != one.now(shown.scenes).argmax(2)

        def both(said: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
            return [said[moved], ~said[kept]]

        pictures = world.scenes.images(after)
        found = says(reader, reader.after(shown.scenes, shown.actions))
        fresh = None
        if untrained is not None:
            fresh = says(untrained, untrained.after(shown.scenes, shown.actions))
        out = _told_apart(both, found, says(reader, reader.now(pictures)), fresh)
        missed, spurious = (share(~part) for part in both(found))
        return {**out, "missed": missed, "spurious": spurious}

    def _graph(self, reader: Reader, untrained: Reader | None) -> Score:
        """Returns how well the model tells pairs that act on each other from those that do not."""
        if self.in_blocks:
            return self._pushes(reader.model, None if untrained is None else untrained.model)
        return self._edges(reader, untrained)

    def _pushes(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns which pushes a model expects, pair by pair.

        Is its prediction nearer to the picture in which both blocks moved than to the one in which
        both stayed?
        """
        grid, world = self._trials
        trials, n = grid.states, self.objects
        pushed, possible = _pushed(trials.scenes, trials.actions, trials.acted)
        rows = np.flatnonzero(possible)
        still, ahead = trials.scenes[rows], pushed[rows]
        ends = world.after(trials.scenes, trials.actions).argmax(2)
        acts = (ends[rows] == ahead).all(1)
        pair = (ahead != still) & (np.arange(n) != trials.acted[rows, None])
        to, by = pair.argmax(1), trials.acted[rows]
        every = (trials.scenes, pushed, ends)
        frames = [world.scenes.images(states)[rows] for states in every]

        def nearer(one: OutsideModel, told: Tensor) -> NDArray[np.bool_]:
            still, ahead = (one.flat(part) for part in frames[:2])
            return (latent_distance(told, ahead) > latent_distance(told, still)).numpy()

        def says(one: OutsideModel) -> NDArray[np.bool_]:
            latents = one.encode(frames[0])
            return nearer(one, one.last(latents, trials.actions[rows][:, None]))

        def both(said: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
            return [said[acts], ~said[~acts]]

        def rates(said: NDArray[np.bool_]) -> list[list[float | None]]:
            """Entry [i][j]: the share of the trials in which block j pushes block i."""
            pairs = [[said[(to == i) & (by == j)] for j in range(n)] for i in range(n)]
            return [[rounded(float(s.mean())) if s.size else None for s in row] for row in pairs]

        said = says(model)
        true = nearer(model, model.flat(frames[2]))
        fresh = None if untrained is None else says(untrained)
        known = np.array(rates(said), dtype=float)
        precision = edge_scores(grid.graph, np.nan_to_num(known)).average_precision
        return {
            **_told_apart(both, said, true, fresh),
            "push_rate": rates(said),
            "true_push_rate": rates(acts),
            "average_precision": rounded(precision),
        }

    def _edges(self, reader: Reader, untrained: Reader | None) -> Score:
        """Returns which objects hang on which, by interventions in twin scenes."""
        grid, world = self._trials
        graph = grid.graph.astype(bool)
        pairs = ~np.eye(len(graph), dtype=bool)

        def both(found: Floats) -> list[NDArray[np.bool_]]:
            said = found > _EDGE
            return [said[pairs & graph], ~said[pairs & ~graph]]

        found = effects(reader, grid.images, floor=_FLOOR).direct
        truth = effects(world, grid.states).direct
        fresh = None
        if untrained is not None:
            fresh = effects(untrained, grid.images, floor=_FLOOR).direct
        return {
            **_told_apart(both, found, truth, fresh),
            "effects": np.round(found, 4).tolist(),
            "true_effects": np.round(truth, 4).tolist(),
            "average_precision": rounded(edge_scores(graph, found).average_precision),
        }

    def _counterfactual(self, reader: Reader, untrained: Reader | None) -> Score:
        """Returns CF-H@1: the true outcome of the altered scene among all outcomes and scenes."""
        trials = self._counterfactuals
        known = _AbductingCounterfactual(reader)
        score = score_counterfactuals(known, trials)
        beside: dict[str, Any] = {
            "do_nothing": KeepTheScene(trials.values),
            "copy_of_the_fact": CopyTheFact(trials.values),
            "acted_object_alone": MoveTheActed(trials),
            "true_world": TrueWorld(trials),
        }
        if KnownChances.suits(trials.scenes.world):
            chances = KnownChances(trials)
            prior = [chances.prior(row) for row in range(len(trials.truth))]
            posterior = [chances.posterior(row) for row in range(len(trials.truth))]
            beside |= {
                "mode": LikelyOutcome(trials, prior, "mode"),
                "mean": LikelyOutcome(trials, prior, "mean"),
                "exact_posterior": LikelyOutcome(trials, posterior, "mode"),
            }
        facts = trials.states
        shown = [trials.truth, *map(np.asarray, (facts.outcomes, facts.scenes, facts.twins))]
        candidates = numbered(np.concatenate(shown).astype(np.int64))
        out = {
            **_hits(score),
            "mrr": rounded(score.mrr),
            "effect_error": rounded(score.effect_error),
            "abducts": known.abducts,
            "nothing_predicted": rounded(
                score_counterfactuals(_NothingPredicted(reader), trials).hits
            ),
            "chance": rounded(PERCENT / len(np.unique(candidates))),
        }
        out |= {n: rounded(score_counterfactuals(one, trials).hits) for n, one in beside.items()}
        carried = _AbductingCounterfactual(reader, residual=True)
        change = score_counterfactuals(_NothingPredicted(reader, residual=True), trials)
        out["with_residual"] = {
            **_hits(score_counterfactuals(carried, trials)),
            "nothing_predicted": rounded(change.hits),
        }
        if untrained is not None:
            fresh = score_counterfactuals(_AbductingCounterfactual(untrained), trials)
            out["untrained"] = rounded(fresh.hits)
        return out

    def _planning(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        if self.no_plans:
            return absent(self.no_plans)
        data = self._training
        assert data.targets is not None
        frames = data.images[:, 1:]
        states = model.flat(frames.reshape(-1, *frames.shape[2:]))
        scale = Scale(states)
        targets = scale(model.flat(data.targets)).repeat_interleave(frames.shape[1], 0)
        head = fit_reward_head(
            scale(states),
            targets,
            data.rewards[:, 1:].reshape(-1),
            epochs=self.sizes.epochs,
            seed=self.seed,
        )

        def reward(states: Tensor, targets: Tensor) -> Tensor:
            return head(scale(states), scale(targets))

        return score_planning(model, reward, untrained, self._episodes)


@final
class _AbductingCounterfactual(ModelCounterfactual):
    """A model that predicts from the altered scene, knowing the fact where it can abduct.

    Args:
        reader: the model, which may have an `abduct`.
        residual: carry over the fact's residual, see `outside.Abducting`, instead.
    """

    def __init__(self, reader: Reader, *, residual: bool = False) -> None:
        super().__init__(reader)
        self._model, self._residual = reader.model, residual
        self.abducts = callable(getattr(reader.model.model, "abduct", None))

    def predict(self, facts: Facts) -> Floats:
        """Returns predicted latents of the altered scenes."""
        if self._residual:
            expected = self.respondent.predictions(facts.scenes, facts.actions)
            twins = self.respondent.predictions(facts.twins, facts.twin_actions)
            return self.encode(facts.outcomes) + twins - expected
        fact = Fact(observations=facts.scenes, actions=facts.actions, outcomes=facts.outcomes)
        knowing = self._model.abducted(fact)
        one = self._model if knowing is None else knowing
        latents = self._model.encode(np.asarray(facts.twins))
        return one.last(latents, facts.twin_actions[:, None], in_order=knowing is not None).numpy()

    def effects(self, facts: Facts) -> Floats:
        """Returns how far the reading of the twin's outcome is from that of the fact's."""
        if not self.abducts:
            return super().effects(facts)
        fact = self.respondent.now(facts.outcomes)
        return total_variation(fact, self.respondent.read(self.predict(facts)))


@final
class _NothingPredicted(ModelCounterfactual):
    """The model's own latents of the altered scenes, left as they are.

    Args:
        reader: the model.
        residual: carry over the fact's change, which is its residual where nothing is predicted.
    """

    def __init__(self, reader: Reader, *, residual: bool = False) -> None:
        super().__init__(reader)
        self._residual = residual

    def predict(self, facts: Facts) -> Floats:
        """Returns the latents of the altered scenes."""
        twins = self.encode(facts.twins)
        if not self._residual:
            return twins
        return twins + self.encode(facts.outcomes) - self.encode(facts.scenes)

    def effects(self, facts: Facts) -> Floats:
        """Returns zeros."""
        return np.zeros((len(facts.actions), 1))


def _hits(score: CounterfactualScore) -> Score:
    ends = wilson(score.hits / PERCENT * score.ranked, score.ranked)
    found = {"value": rounded(score.hits), "trials": score.ranked}
    return {**found, "interval": [rounded(PERCENT * end) for end in ends]}


def _without_graph(options: Any, objects: int, *, in_blocks: bool) -> str:
    """Returns why a world has no graph that can be scored, or nothing."""
    if objects == 1:
        return "one object acts on no other"
    if in_blocks:
        return ""
    if options.mode == "delayed":
        return "effects fade in, and these scores are of effects after one step"
    if len(options.seen) < options.objects:
        return "some objects are not seen"
    if options.meta and options.graph_is_random:
        return "every episode has another graph"
    return ""


def _pushed(
    states: NDArray[Any], actions: NDArray[np.int64], acted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Returns what scenes of two blocks in contact become if the push works, and where it could.

    A push can work where the cell beyond is inside and free: only weights decide there.
    """
    rows = np.arange(len(states))
    step = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])[actions % 5]
    cells = np.stack([states // 5, states % 5], axis=-1)
    front = cells[rows, acted] + step
    beyond = front + step
    inside = ((beyond >= 0) & (beyond < 5)).all(1)
    code = beyond[:, 0] * 5 + beyond[:, 1]
    free = ~(states == code[:, None]).any(1)
    other = (states == (front[:, 0] * 5 + front[:, 1])[:, None]).argmax(1)
    out = states.copy()
    out[rows, acted] = front[:, 0] * 5 + front[:, 1]
    out[rows, other] = code
    possible = inside & free
    return np.where(possible[:, None], out, states), possible


def _told_apart(
    both: Callable[[Any], list[NDArray[np.bool_]]], said: Any, true: Any, fresh: Any
) -> Score:
    """Returns how well what is there is told from what is not, beside the yardsticks.

    Args:
        both: what is said to hits where something is, and where nothing is.
        said: what the model says.
        true: what is read where predictions are perfect.
        fresh: what an untrained copy says, if there is one.
    """
    nothing = balanced(both(np.zeros_like(said)))["value"]
    out = {
        **balanced(both(said)),
        "nothing_predicted": nothing,
        "do_nothing": nothing,
        "chance": 50.0,
        "true_world": balanced(both(true))["value"],
    }
    return out if fresh is None else {**out, "untrained": balanced(both(fresh))["value"]}
