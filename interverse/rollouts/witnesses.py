"""Witnesses of a causal graph: situations in which each declared edge and variable is seen to act.

A trial starts the same world several times with one seed, one noise and the same actions; world 0
is the fact, every other world gets one intervention of its own. What differs from the fact follows
from the intervention. A search tries situations, values and actions until every edge is seen.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import leaves
from interverse.core.errors import InterventionError, InvalidValueError
from interverse.core.files.json_text import parse_json
from interverse.core.rng import generator
from interverse.envs import make_vec
from interverse.envs.driver import Driver
from interverse.envs.snapshot import DRIVER_ARRAYS, DRIVER_PREFIX, Snapshot
from interverse.envs.values import FirstWorld, to_numpy
from interverse.rollouts.evidence import (
    MANY_EDGES,
    Evidence,
    Findings,
    WitnessChange,
    WitnessMoment,
    WitnessTrial,
    edge_kind,
    plain,
)
from interverse.scm import Box, Space, Variable
from interverse.scm.graph import NEXT, CausalGraph, Edge, now
from interverse.worlds import WORLDS
from interverse.worlds.world import World

_PICTURE = (120, 160)  # rows and columns that show whether anything moved
LEAST = 1e-7  # a number that moves by less may be a solver's rounding, not an effect
_STILL = 1e-10  # what moves by less is no cause of what moves by LEAST in the same step


@final
class WitnessBench:
    """Worlds of one id, and what their trials have shown so far."""

    def __init__(
        self,
        world_id: str,
        options: Mapping[str, Any],
        worlds: int,
        evidence: Evidence | None = None,
    ) -> None:
        """Makes so many worlds, the fact included; what is known already grows."""
        self.env = make_vec(world_id, num_envs=worlds, **{"threads": 1, **options})
        self.driver: Driver = self.env.unwrapped.driver
        self.driver.skips_diverged = True
        self.world = self.driver.world
        # Pictures cost the most: steps and interventions go without, `look` takes what it needs.
        self.observe, self.world.observe = self.world.observe, dict  # type: ignore[method-assign]
        if self.world.render_size == World.render_size:
            self.world.render_size = _PICTURE
        self.evidence = Evidence() if evidence is None else evidence
        self.settable = frozenset(n for n, v in self.world.variables.items() if not v.read_only)
        self._everyone = np.arange(worlds)
        self.driver.reset(self._everyone, seeds=[0] * worlds)
        self._situation: tuple[str, Snapshot] | None = None

    @property
    def graph(self) -> CausalGraph:
        """The causal graph of the fact."""
        graph: CausalGraph = self.world.graph
        return graph

    @property
    def declared(self) -> CausalGraph:
        """The causal graph of a world that nothing has been done to."""
        self.driver.reset(self._everyone, seeds=[0] * len(self._everyone))
        return self.graph

    @property
    def room(self) -> int:
        """How many changes run side by side."""
        return len(self._everyone) - 1

    @property
    def fact(self) -> Mapping[str, NDArray[Any]]:
        """The present values of world 0."""
        return FirstWorld(self.driver.host_values)

    def run(self, trial: WitnessTrial) -> list[Evidence]:
        """Runs a trial and returns what each of its changes added to the evidence."""
        out: list[Evidence] = []
        for start in range(0, len(trial.changes), self.room):
            out += self._run(trial, trial.changes[start : start + self.room])
        return out

    def _run(self, trial: WitnessTrial, changes: Sequence[WitnessChange]) -> list[Evidence]:
        used = self._everyone[: len(changes) + 1]
        self.arrange(trial.seed, trial.before)
        rows = _Rows(self, trial, changes)
        before = rows.compare(None, step=0)
        rows.look(drawn=trial.drawn, step=0)
        space = self.world.action_space
        for step, action in enumerate(trial.actions, start=1):
            kind = getattr(space, "dtype", None)
            actions = np.stack([np.asarray(action, dtype=kind)] * len(self._everyone))
            for row, change in enumerate(changes, start=1):
                if step == 1 and change.action is not None:
                    actions[row] = change.action
            self.driver.step(actions, used)
            if self.driver.diverged:  # the change was too strong for the simulator
                rows.live[[i - 1 for i in self.driver.diverged if i in used[1:]]] = False
                if 0 in self.driver.diverged:
                    break
            before = rows.compare(before, step=step)
            rows.look(drawn=False, step=step)
        return rows.added

    def arrange(self, seed: int, before: Sequence[tuple[str, Any]]) -> None:
        """Brings every world into the situation of a trial."""
        key = f"{seed} {plain(before)}"
        if self._situation is None or self._situation[0] != key:
            self.driver.reset(self._everyone[:1], seeds=[seed])
            for kind, what in before:
                self.move(kind, what)
            arrays = {n: to_numpy(v) for n, v in self.world.save(self._everyone[:1]).items()}
            for name in DRIVER_ARRAYS:
                arrays[DRIVER_PREFIX + name] = np.array(getattr(self.driver, name))[:1]
            moment = Snapshot(self.driver.id, self.driver.options_json, arrays)
            self._situation = key, moment
        self.driver.restore(self._situation[1], self._everyone)

    def move(self, kind: str, what: Any) -> bool:
        """Does one thing in the world of the fact; returns whether it could be done."""
        if kind == "do":
            return bool(self.driver.do(what, worlds=[0], check=False).applied[0])
        policy = None
        with suppress(InvalidValueError):  # its options may leave the world without one
            policy = self.world.scripted_policy() if kind == "scripted" else None
        for _ in range(min(int(what), self.world.max_steps - 2)):
            count = len(self._everyone)
            step = int(self.driver.steps[0])
            actions = (
                np.asarray(policy(self.observe()))
                if policy
                else np.stack([some_action(self.world, int(self.driver.seeds[0]), step)] * count)
            )
            self.driver.step(actions, self._everyone[:1])
        return 0 not in self.driver.diverged and (kind == "play" or policy is not None)

    def broken(self) -> Findings:
        """Returns what breaks the laws so far."""
        return self.evidence.broken(self.declared, self.world.variables)

    def close(self) -> None:
        """Releases the worlds."""
        self.env.close()


@final
class _Rows:
    """The worlds of one trial while it runs: who was changed, and what differs from the fact."""

    def __init__(
        self, bench: WitnessBench, trial: WitnessTrial, changes: Sequence[WitnessChange]
    ) -> None:
        """Applies each change in its own world."""
        self.bench, self.trial, self.changes = bench, trial, changes
        self.graph = bench.graph  # as declared before any change of the graph itself
        self.added = [Evidence() for _ in changes]
        self.live = np.zeros(len(changes), dtype=bool)  # changes that were not refused
        driver = bench.driver
        present = {name: driver.host_values[name][0] for c in changes for name in c.do}
        for row, change in enumerate(changes, start=1):
            values = {n: present[n] if v is None else v for n, v in change.do.items()}
            if not values:
                self.live[row - 1] = change.action is not None
            elif trial.at_reset:
                try:
                    driver.reset(np.array([row]), seeds=[trial.seed], do=values, check=False)
                    self.live[row - 1] = True
                except InterventionError:
                    driver.reset(np.array([row]), seeds=[trial.seed])
            else:
                self.live[row - 1] = driver.do(values, worlds=[row], check=False).applied[row]

    def compare(self, before: list[frozenset[str]] | None, *, step: int) -> list[frozenset[str]]:
        """Judges what differs now, and before the last step; returns what differs, by change."""
        count, bench, trial = len(self.changes), self.bench, self.trial
        moved: list[set[str]] = [set() for _ in range(count)]
        clearly: list[set[str]] = [set() for _ in range(count)]
        for name, whole in bench.driver.host_values.items():
            rows = whole[: count + 1].reshape(count + 1, -1).astype(np.float64)
            far = np.abs(rows[1:] - rows[:1]).max(axis=1, initial=0.0)
            for i in np.flatnonzero(far > _STILL).tolist():
                moved[i].add(name)
                # An angle at radius zero means nothing, however far it moved.
                if far[i] > LEAST and not bench.world.same_values(name, whole[i + 1], whole[0]):
                    clearly[i].add(name)
        for i in np.flatnonzero(self.live).tolist():
            change, acted = self.changes[i], cast("frozenset[str] | None", frozenset())
            if change.action is not None and step == 1:  # what it set, if the fact's sets the same
                ours, facts = map(bench.world.set_by_action, (change.action, trial.actions[0]))
                acted = ours if ours == facts else None
            moment = WitnessMoment(
                what=f"do({change.name})" if change.name else "another action",
                moved=frozenset(moved[i]),
                clearly=frozenset(clearly[i]),
                held=frozenset(change.do),
                before=None if before is None else before[i],
                at_reset=before is None and trial.at_reset,
                acted=acted,
                settable=bench.settable,
            )
            known, own, how = bench.evidence, self.added[i], ""
            if fresh := moment.edges(self.graph) - known.edges.keys():
                parts = [f"{n}={'held' if v is None else v}" for n, v in change.do.items()]
                what = f"do({', '.join(parts)})" if parts else f"action {change.action}"
                where = "".join(f", {kind}" for kind, _ in trial.before[:1])
                where = " at reset" if trial.at_reset else where
                how, own.steps = f"{what}{where}, seed {trial.seed}, step {step}", step
                own.edges |= dict.fromkeys(fresh, how)
            known.judge(self.graph, moment, how)
        return [frozenset(names) for names in moved]

    def look(self, *, drawn: bool, step: int) -> None:
        """Notes the variables that moved observation, reward, info or, if `drawn`, the picture."""
        bench, seen = self.bench, self.bench.evidence.seen
        names = [change.name for change in self.changes]
        todo = [i for i in np.flatnonzero(self.live).tolist() if names[i] and names[i] not in seen]
        if not todo:
            return
        # Info that repeats a variable does not count.
        score, known = bench.world.score(), bench.world.variables
        info = {name: part for name, part in score.info.items() if name not in known}
        trees = (bench.observe(), score.reward, score.terminated, info)
        parts = [leaf for tree in trees for leaf in map(to_numpy, leaves(tree))]
        fact = None
        for by_picture in (False, True) if drawn else (False,):
            for i in todo:
                if names[i] in seen:
                    continue
                if by_picture:
                    fact = bench.world.render(0) if fact is None else fact
                    shows = not np.array_equal(bench.world.render(i + 1), fact)
                else:
                    real = [p[i + 1] - p[0] for p in parts if p.dtype.kind == "f"]
                    shows = any((np.abs(far) > LEAST).any() for far in real)
                    others = [p for p in parts if p.dtype.kind != "f"]
                    shows |= not all(np.array_equal(p[i + 1], p[0]) for p in others)
                if shows:
                    seen.add(names[i])
                    self.added[i].seen.add(names[i])
                    self.added[i].steps = step
                    self.added[i].by_picture |= by_picture


def some_action(world: Any, seed: int, step: int) -> Any:
    """Returns an action drawn by address, the same for the same seed and step."""
    rng = generator(seed=seed, name="witness/action", step=step)
    space = world.action_space
    if hasattr(space, "low"):
        return rng.uniform(space.low, space.high).astype(space.dtype)
    return np.asarray(rng.integers(getattr(space, "nvec", getattr(space, "n", 1))))


def stored(world_id: str) -> list[dict[str, Any]]:
    """Returns the groups that `tools/witnesses.py` stored beside the world.

    Each has the options of its worlds, how many of them there are, and its trials.
    """
    file = witness_file(world_id)
    table = parse_json(file.read_text(), file.name) if file.exists() else {}
    groups: list[dict[str, Any]] = table.get(world_id, [])
    return groups


def witness_file(world_id: str) -> Path:
    """Returns the file in the folder of the world's module."""
    module = importlib.import_module(WORLDS[world_id].target.partition(":")[0])
    return Path(str(module.__file__)).parent / "witnesses.json"


def replay(world_id: str, evidence: Evidence | None = None) -> list[str]:
    """Runs every stored trial and returns a line for each thing that breaks the law."""
    groups = stored(world_id) or [{"options": {}, "worlds": 2, "trials": []}]
    evidence, broken = Evidence() if evidence is None else evidence, list[str]()
    for group in groups:
        bench = WitnessBench(world_id, group["options"], group["worlds"], evidence)
        for data in group["trials"]:
            bench.run(WitnessTrial.from_json(data))
        if group is groups[-1]:
            broken = [line for lines in bench.broken().values() for line in lines]
        bench.close()
    return broken


SEARCH_NUMBERS = 10**4  # a search counts its situations from a multiple of this
_STEPS = 3  # after the changes: an effect on what is observed may take some
_NEAR = (0.004, 0.05, 0.5)
_NEARBY = 0.4  # how often a value near the present one is tried
_OTHER_ACTIONS = 24
_ROUNDS = 125  # of starts, one a world, for an edge that acts at the start of an episode alone


def search(bench: WitnessBench, tries: int, *, start: int = 0) -> list[WitnessTrial]:
    """Returns trials that together show all that was found; the bench holds the evidence.

    At most so many situations are tried, the first of the number `start`.
    """
    out, declared = [], bench.declared
    for number in range(start, start + tries):
        trial = _propose(bench, number, declared)
        if trial is None:
            break
        kept = needed(trial, bench.run(trial), declared)
        out += [kept] if kept.changes else []
    few = declared.number_of_edges() <= MANY_EDGES
    for parent, child in bench.evidence.missing_edges(declared) if few else ():
        if not child.endswith(NEXT) and not bench.driver.variables[parent].read_only:
            out += _at_some_start(bench, parent, child, start)
    return out


def _at_some_start(bench: WitnessBench, parent: str, child: str, start: int) -> list[WitnessTrial]:
    """Returns a trial for an edge that acts in few starts: each world tries one of its own."""
    driver, everyone = bench.driver, np.arange(bench.room + 1)
    rng = generator(seed=start, name=f"witness/{parent}/{child}")
    for number in range(_ROUNDS):
        seeds = list(range(start + number * len(everyone), start + (number + 1) * len(everyone)))
        driver.reset(everyone, seeds=seeds)
        variable = _of_fact(driver.variables[parent])
        value = plain(_value(variable, bench.fact[parent], rng, near=True))
        as_drawn = np.array(driver.host_values[child])
        try:
            driver.reset(everyone, seeds=seeds, do={parent: value}, check=False)
        except InterventionError:
            continue
        differs = (np.asarray(driver.host_values[child]) != as_drawn).reshape(len(seeds), -1)
        for seed in np.asarray(seeds)[differs.any(axis=1)].tolist():
            change = WitnessChange({parent: value})
            trial = WitnessTrial(seed, [], [], [change], at_reset=True)
            if bench.run(trial)[0].edges:
                return [trial]
    return []


def needed(trial: WitnessTrial, added: list[Evidence], declared: CausalGraph) -> WitnessTrial:
    """Returns the trial with the changes that showed something, and the steps they needed."""
    useful = [
        (change, evidence)
        for change, evidence in zip(trial.changes, added, strict=True)
        if evidence.seen or any(edge in declared.edges for edge in evidence.edges)
    ]
    steps = max((e.steps for _, e in useful), default=0)
    drawn = any(e.by_picture for _, e in useful)
    return replace(
        trial, changes=[c for c, _ in useful], actions=trial.actions[:steps], drawn=drawn
    )


def _propose(bench: WitnessBench, number: int, declared: CausalGraph) -> WitnessTrial | None:
    """Returns the next situation with changes for all that has no witness yet."""
    # The start as it is, a few steps with actions drawn by address, and what the world suggests.
    start: Any = lambda values, rng: ()  # noqa: E731
    play: Any = lambda values, rng: [("play", int(rng.integers(1, 5)))]  # noqa: E731
    scenarios: list[Any] = [start, play, *bench.world.scenarios(), start]
    at_reset = len(scenarios) - 1  # in the last one, changes are in force before the reset's draws
    seed, rng = 100 + number, generator(seed=number, name="witness")
    unseen = bench.evidence.missing_variables(bench.world.variables)
    ahead = any(child.endswith(NEXT) for _, child in bench.evidence.missing_edges(declared))
    first_round = number % SEARCH_NUMBERS < len(scenarios)
    steps_may_show = first_round or ahead or bool(unseen)
    which = number % len(scenarios) if steps_may_show else at_reset
    before, action = _set_up(bench, seed, scenarios[which], rng)
    actions: list[Any] = []
    if steps_may_show:  # as far as the episode goes; the scenario may suggest the first
        left = max(1, min(_STEPS, bench.world.max_steps - int(bench.driver.steps[0])))
        actions = [plain(some_action(bench.world, number, step)) for step in range(left)]
        actions = actions if action is None else [action, *actions[1:]]
    # Changes for all that has no witness, so many that no world is left idle.
    here = bench.graph.edges
    edges = [edge for edge in bench.evidence.missing_edges(declared) if edge in here]
    if declared.number_of_edges() > MANY_EDGES:  # one of each kind
        order = [edges[i] for i in rng.permutation(len(edges))]
        edges = list({edge_kind(edge): edge for edge in order}.values())
    changes = [*_changes(bench, edges, rng), *_other_actions(bench, edges, actions, rng)]
    while changes and len(changes) < bench.room:
        changes += list(_changes(bench, edges, rng))[: bench.room - len(changes)] or changes[:1]
    if not changes:
        return None
    drawn = first_round or len(unseen) <= 2  # pictures cost the most
    return WitnessTrial(seed, before, actions, changes, at_reset=which == at_reset, drawn=drawn)


def _set_up(
    bench: WitnessBench, seed: int, scenario: Any, rng: np.random.Generator
) -> tuple[list[tuple[str, Any]], Any]:
    """Brings the fact into a situation; returns the moves, and the action it suggests or None."""
    bench.arrange(seed, [])
    before, action = [], None
    for kind, what in scenario(bench.fact, rng):
        if kind == "action":
            action = plain(what)
            continue
        for choice in plain(what) if kind == "try" else [plain(what)]:
            move = ("do" if kind == "try" else kind), choice
            if bench.move(*move):
                before.append(move)
                break
    if 0 in bench.driver.diverged:
        before = []
        bench.arrange(seed, [])
    return before, action


def _changes(
    bench: WitnessBench, edges: list[Edge], rng: np.random.Generator
) -> Iterator[WitnessChange]:
    """Yields changes for every edge and variable without a witness."""
    graph, variables = bench.graph, bench.driver.variables
    wanted = {(name, frozenset[str]()) for name in bench.evidence.missing_variables(variables)}
    for parent, child in edges:
        if not parent.endswith(NEXT):
            # What must be held still for a change of the parent to reach the child directly.
            between = {now(cause) for cause in graph.predecessors(child)}
            between &= graph.effects_now(parent) - {parent}
            held = frozenset(between - graph.twins(parent) - graph.twins(child))
            wanted.add((now(parent), held))
        # What may move the parent where nobody can set it.
        above = graph.predecessors if parent.endswith(NEXT) else graph.ancestors
        wanted |= {(name, frozenset()) for name in above(parent) if not name.endswith(NEXT)}
    for name, held in sorted(wanted, key=lambda pair: (pair[0], sorted(pair[1]))):
        if variables[name].read_only:
            continue
        rest = {other: None for other in sorted(held) if not variables[other].read_only}
        near = bool(rng.random() < _NEARBY)
        value = _value(_of_fact(variables[name]), bench.fact[name], rng, near=near)
        yield WitnessChange({name: plain(value)} | rest)


def _other_actions(
    bench: WitnessBench, edges: list[Edge], actions: list[Any], rng: np.random.Generator
) -> Iterator[WitnessChange]:
    """Yields other first actions that set the same variables, for missing edges from these."""
    if not actions:
        return
    first = np.asarray(actions[0])
    targets = bench.world.set_by_action(first)
    if targets is None or not any(now(a) in targets and a.endswith(NEXT) for a, _ in edges):
        return
    for _ in range(_OTHER_ACTIONS):
        drawn = np.asarray(some_action(bench.world, int(rng.integers(2**31)), 0))
        if drawn.size > 1:  # of several parts, one
            drawn = np.where(np.arange(drawn.size) == rng.integers(drawn.size), drawn, first)
        if bench.world.set_by_action(drawn) == targets and not np.array_equal(drawn, first):
            yield WitnessChange({}, plain(drawn))


def _value(variable: Variable, present: Any, rng: np.random.Generator, *, near: bool) -> Any:
    """Returns a value to set: of a space, an end of the domain, or near the present one."""
    domain = variable.domain
    spaces = [s for s in (variable.space_a, variable.space_b) if isinstance(s, Space)]
    if near or not (spaces or domain.integral or np.all(domain.high - domain.low < 1e5)):
        return _nearby(variable, present, rng)
    if spaces and rng.random() < 0.7:
        return spaces[int(rng.integers(len(spaces)))].sample(rng)
    if isinstance(domain, Box) and rng.random() < 0.7:  # towards the low end of a wide domain
        power = (1, 6)[int(rng.integers(2))]
        return domain.low + (domain.high - domain.low) * rng.random(variable.shape) ** power
    return domain.sample(rng)


def _nearby(variable: Variable, present: Any, rng: np.random.Generator) -> Any:
    """Returns a value near the present one; of whole numbers, with one of them changed."""
    domain = variable.domain
    if variable.dtype is np.int64:
        other, out = np.asarray(domain.sample(rng)), np.array(present)
        place = tuple(rng.integers(n) for n in out.shape)
        mirrored = (domain.low + domain.high - out)[place]
        out[place] = mirrored if other[place] == out[place] else other[place]
        return out
    if not isinstance(domain, Box):
        return domain.sample(rng)
    step = np.asarray(float(rng.choice(_NEAR)) * rng.standard_normal(variable.shape))
    if step.size and rng.random() < 0.5:  # of a place, perhaps the height alone is free
        step = step * (np.arange(step.size) == rng.integers(step.size)).reshape(step.shape)
    return np.clip(present + step, domain.low, domain.high)


def _of_fact(variable: Variable) -> Variable:
    """Returns the variable with the spaces of world 0."""

    def cut(space: Any) -> Any:
        if isinstance(space, Box) and np.ndim(space.low) > len(variable.shape):
            return Box(space.low[0], space.high[0], space.shape, space.open_low, space.open_high)
        return space

    return replace(variable, space_a=cut(variable.space_a), space_b=cut(variable.space_b))
