"""Scores in blocks and chemistry: what a model of pictures predicts, and what it knows of causes.

Test scenes, noise and actions are addressed by (seed, episode) in a region of seeds of their own,
so that no named data set shares an episode with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
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
    KeepTheScene,
    KnownChances,
    MoveTheActed,
    counterfactual_trials,
    percent_hit,
    score_counterfactuals,
    twin_ranks,
)
from interverse.models.effects import (
    MOVES,
    Ints,
    Respondent,
    Scenes,
    Trials,
    TrueWorld,
    effects,
    grid_trials,
    in_contact,
)
from interverse.models.heads import Probe, RewardPredictor, Scale, fit_head
from interverse.models.ranking import HORIZONS, numbered
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
class Reader(Respondent):
    """Anyone's model read through a probe, about trials; where it can abduct, it knows the fact."""

    def __init__(self, model: OutsideModel, probe: Probe, scale: Scale, trials: Trials) -> None:
        self.model, self._probe, self._scale = model, probe, scale
        self._worlds: Scenes = trials.worlds
        self.abducts = callable(getattr(model.model, "abduct", None))

    def show(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """Returns pictures of states."""
        return self._worlds.images(states)

    def encode(self, states: NDArray[Any]) -> Floats:
        """Returns (N, width) the latents of pictures."""
        return self.model.flat(self.show(states)).numpy()

    def predict(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns (N, width) the predicted next latents."""
        return self.model.last(self.model.encode(self.show(states)), actions[:, None]).numpy()

    @torch.no_grad()
    def read(self, features: Floats) -> Floats:
        """Returns (N, objects, values): chances that the probe reads in flat latents."""
        return self._probe(self._scale(torch.as_tensor(features))).double().numpy()

    def twin(self, trials: Trials) -> Floats:
        """Returns predicted latents of the altered scenes."""
        seen = {"observations": trials.scenes, "outcomes": trials.outcomes}
        shown = {name: self.show(states) for name, states in seen.items()}
        knowing = self.model.abducted(Fact(actions=trials.actions, **shown))
        if knowing is None:
            return super().twin(trials)
        latents = self.model.encode(self.show(trials.twins))
        return knowing.last(latents, trials.twin_actions[:, None]).numpy()

    def effects(self, trials: Trials) -> Floats:
        """Returns how far the reading of the twin's outcome is from that of the fact's."""
        if not self.abducts:
            return super().effects(trials)
        return total_variation(self.now(trials.outcomes), self.read(self.twin(trials)))


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
        # Why there is no graph that can be scored, or nothing.
        self.no_graph = ""
        if self.objects == 1:
            self.no_graph = "one object acts on no other"
        elif not self.in_blocks:
            if own.mode == "delayed":
                self.no_graph = "effects fade in, and these scores are of effects after one step"
            elif len(own.seen) < own.objects:
                self.no_graph = "some objects are not seen"
            elif own.meta and own.graph_is_random:
                self.no_graph = "every episode has another graph"
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
            states, _ = in_contact(rng, n, rng.integers(n, size=count))
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
        # What becomes of each scene by each action: still, move, blocked or push.
        shown = (outcomes != start[:, None]).reshape(count, scenes.actions, -1).any(2)
        acted, number = np.divmod(np.arange(scenes.actions), scenes.actions // n)
        others = (after != states[:, None]) & (np.arange(n) != acted[:, None])
        # In blocks the first of an object's actions is to stay.
        strata = np.where((number != 0) & self.in_blocks, _STRATA.index("blocked"), 0)[None]
        strata = np.where(shown, _STRATA.index("move"), strata)
        strata = np.where(shown & others.any(2), _STRATA.index("push"), strata)
        return _InScene(start, outcomes, same_pictures(outcomes, start), strata)

    @cached_property
    def _trials(self) -> Trials:
        world = build_world(self.id, self.sizes.trials, self.options)
        return grid_trials(world, seed=self._seed("trials"))

    @cached_property
    def _counterfactuals(self) -> Trials:
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
            readers = _each(self._reader, model, untrained)
            asked = _each(lambda reader: reader(self._trials), *readers)
            out["effects"] = self._effects(self._trials, *asked)
            graph = self._pushes if self.in_blocks else self._edges
            out["graph"] = graph(self._trials, *asked)
            asked = _each(lambda reader: reader(self._counterfactuals), *readers)
            out["counterfactual"] = self._counterfactual(self._counterfactuals, *asked)
        return {**out, "planning": self._planning(model, untrained)}

    def _reader(self, model: OutsideModel) -> Callable[[Trials], Reader]:
        """Returns a model with the probe that reads objects off its latents of true frames."""
        frames, labels = self._training.images, self._training.labels
        states = model.flat(frames.reshape(-1, *frames.shape[2:]))
        scale = Scale(states)
        values = 25 if self.in_blocks else int(labels.max()) + 1
        probe = fit_head(
            lambda: Probe(states.shape[1], self.objects, values),
            (scale(states), torch.as_tensor(labels.reshape(-1, self.objects))),
            epochs=self.sizes.epochs,
            seed=self.seed,
        )
        return partial(Reader, model, probe, scale)

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

    def _effects(self, trials: Trials, reader: Reader, untrained: Reader | None) -> Score:
        """Returns how often a model moves the objects that an action on another one moves."""
        before, after = trials.scenes, trials.outcomes
        others = np.arange(before.shape[1]) != trials.acted[:, None]
        moved, kept = (after != before) & others, (after == before) & others

        def says(one: Reader, chances: Floats) -> NDArray[np.bool_]:
            return chances.argmax(2) != one.now(before).argmax(2)

        def both(said: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
            return [said[moved], ~said[kept]]

        said, fresh = _each(
            lambda one: says(one, one.after(before, trials.actions)), reader, untrained
        )
        out = _told_apart(both, said, says(reader, reader.now(after)), fresh)
        missed, spurious = (share(~part) for part in both(said))
        return {**out, "missed": missed, "spurious": spurious}

    def _pushes(self, trials: Trials, reader: Reader, untrained: Reader | None) -> Score:
        """Returns which pushes a model expects, pair by pair.

        Is its prediction nearer to the picture in which both blocks moved than to the one in which
        both stayed?
        """
        every, n = np.arange(len(trials.acted)), self.objects
        # What scenes of two blocks in contact become if the push works. It can where the cell
        # beyond is inside and free: only weights decide there.
        step = MOVES[trials.actions % 5]
        cells = np.stack([trials.scenes // 5, trials.scenes % 5], axis=-1)
        front = cells[every, trials.acted] + step
        beyond = front + step
        ends = [place[:, 0] * 5 + place[:, 1] for place in (front, beyond)]
        free = ~(trials.scenes == ends[1][:, None]).any(1)
        possible = ((beyond >= 0) & (beyond < 5)).all(1) & free
        pushed, other = trials.scenes.copy(), (trials.scenes == ends[0][:, None]).argmax(1)
        pushed[every, trials.acted], pushed[every, other] = ends
        rows, acts = np.flatnonzero(possible), (trials.outcomes == pushed).all(1)[possible]
        to, by = other[rows], trials.acted[rows]
        pushed = np.where(possible[:, None], pushed, trials.scenes)
        frames = [reader.show(s)[rows] for s in (trials.scenes, pushed, trials.outcomes)]

        def nearer(one: Reader, told: Tensor) -> NDArray[np.bool_]:
            still, ahead = (one.model.flat(part) for part in frames[:2])
            return (latent_distance(told, ahead) > latent_distance(told, still)).numpy()

        def says(one: Reader) -> NDArray[np.bool_]:
            latents = one.model.encode(frames[0])
            return nearer(one, one.model.last(latents, trials.actions[rows][:, None]))

        def both(said: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
            return [said[acts], ~said[~acts]]

        def rates(said: NDArray[np.bool_]) -> list[list[float | None]]:
            """Entry [i][j]: the share of the trials in which block j pushes block i."""
            pairs = [[said[(to == i) & (by == j)] for j in range(n)] for i in range(n)]
            return [[rounded(float(s.mean())) if s.size else None for s in row] for row in pairs]

        said = says(reader)
        true = nearer(reader, reader.model.flat(frames[2]))
        fresh = None if untrained is None else says(untrained)
        known = np.array(rates(said), dtype=float)
        precision = edge_scores(trials.graph, np.nan_to_num(known)).average_precision
        return {
            **_told_apart(both, said, true, fresh),
            "push_rate": rates(said),
            "true_push_rate": rates(acts),
            "average_precision": rounded(precision),
        }

    def _edges(self, trials: Trials, reader: Reader, untrained: Reader | None) -> Score:
        """Returns which objects hang on which, by interventions in twin scenes."""
        graph = trials.graph.astype(bool)
        pairs = ~np.eye(len(graph), dtype=bool)

        def both(found: Floats) -> list[NDArray[np.bool_]]:
            said = found > _EDGE
            return [said[pairs & graph], ~said[pairs & ~graph]]

        found, fresh = _each(
            lambda one: effects(one, trials, floor=_FLOOR).direct, reader, untrained
        )
        truth = effects(TrueWorld(trials), trials).direct
        return {
            **_told_apart(both, found, truth, fresh),
            "effects": np.round(found, 4).tolist(),
            "true_effects": np.round(truth, 4).tolist(),
            "average_precision": rounded(edge_scores(graph, found).average_precision),
        }

    def _counterfactual(self, trials: Trials, reader: Reader, untrained: Reader | None) -> Score:
        """Returns CF-H@1: the true outcome of the altered scene among all outcomes and scenes."""
        score, world = score_counterfactuals(reader, trials), TrueWorld(trials)

        def hits(one: Respondent, predicted: Floats | None = None) -> float:
            return rounded(percent_hit(twin_ranks(one, trials, predicted)))

        def told(value: float) -> Score:
            ends = wilson(value / PERCENT * score.ranked, score.ranked)
            told = {"value": rounded(value), "trials": score.ranked}
            return {**told, "interval": [rounded(PERCENT * end) for end in ends]}

        fact, scene, twin = map(reader.encode, (trials.outcomes, trials.scenes, trials.twins))
        states = np.concatenate([trials.truth, trials.outcomes, trials.scenes, trials.twins])
        out = {
            **told(score.hits),
            "mrr": rounded(score.mrr),
            "effect_error": rounded(score.effect_error),
            "abducts": reader.abducts,
            "nothing_predicted": hits(reader, twin),
            "chance": rounded(PERCENT / len(np.unique(numbered(states)))),
            "do_nothing": hits(KeepTheScene(trials)),
            "copy_of_the_fact": hits(CopyTheFact(trials)),
            "acted_object_alone": hits(MoveTheActed(trials)),
            "true_world": hits(world),
        }
        if KnownChances.suits(trials.worlds.world):
            known = KnownChances(trials)
            rows = range(len(trials.truth))
            prior, posterior = ([of(row) for row in rows] for of in (known.prior, known.posterior))
            modes = [[one.states[one.weights.argmax()] for one in of] for of in (prior, posterior)]
            out["mode"] = hits(world, world.encode(np.stack(modes[0])))
            means = [one.weights @ world.encode(one.states) for one in prior]
            out["mean"] = hits(world, np.stack(means))
            out["exact_posterior"] = hits(world, world.encode(np.stack(modes[1])))
        # What the fact did beyond its prediction happens again.
        expected = reader.predict(trials.scenes, trials.actions)
        carried = fact + reader.predict(trials.twins, trials.twin_actions) - expected
        out["with_residual"] = {
            **told(percent_hit(twin_ranks(reader, trials, carried))),
            "nothing_predicted": hits(reader, twin + fact - scene),
        }
        if untrained is not None:
            out["untrained"] = hits(untrained)
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
        rewards = torch.as_tensor(data.rewards[:, 1:].reshape(-1)).float()
        head = fit_head(
            lambda: RewardPredictor(states.shape[1]),
            (scale(states), targets, rewards),
            epochs=self.sizes.epochs,
            seed=self.seed,
        )

        def reward(states: Tensor, targets: Tensor) -> Tensor:
            return head(scale(states), scale(targets))

        return score_planning(model, reward, untrained, self._episodes)


def _each(of: Callable[[Any], Any], *models: Any) -> list[Any]:
    """Returns what a function gives of models, None of the untrained copy that there is not."""
    return [None if one is None else of(one) for one in models]


def _told_apart(
    both: Callable[[Any], list[NDArray[np.bool_]]], said: Any, true: Any, fresh: Any
) -> Score:
    """Returns how well what is there is told from what is not, beside the yardsticks.

    `both` turns what is said into hits where something is and where nothing is; said by the
    model, where predictions are perfect, and by an untrained copy.
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
