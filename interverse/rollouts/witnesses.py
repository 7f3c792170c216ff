"""Witnesses of a causal graph: situations in which each declared edge and variable is seen to act.

A trial starts the same world several times with one seed, one noise and the same actions; world 0
is the fact, every other world gets one intervention of its own. What differs from the fact follows
from the intervention.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterventionError, InvalidValueError
from interverse.core.files.json_text import parse_json
from interverse.core.rng import generator
from interverse.envs import make_vec
from interverse.envs.driver import Driver
from interverse.envs.snapshot import DRIVER_ARRAYS, DRIVER_PREFIX, Snapshot
from interverse.envs.values import FirstWorld, to_numpy
from interverse.rollouts.evidence import (
    Evidence,
    Findings,
    WitnessChange,
    WitnessMoment,
    WitnessTrial,
    plain,
)
from interverse.scm.graph import CausalGraph
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
        """Makes the worlds.

        Args:
            world_id: a registered id.
            options: of the world.
            worlds: how many at a time, the fact included.
            evidence: what is known already; it grows.
        """
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
        graph = self.graph  # as declared before any change of the graph itself
        rows = _Rows(self, graph, trial, changes)
        rows.intervene()
        before = rows.compare(None)
        rows.look(drawn=trial.drawn)
        for step, action in enumerate(trial.actions):
            self.driver.step(rows.actions(action, first=step == 0), used)
            rows.step = step + 1
            if self.driver.diverged:  # the change was too strong for the simulator
                rows.live[[i - 1 for i in self.driver.diverged if i in used[1:]]] = False
                if 0 in self.driver.diverged:
                    break
            before = rows.compare(before)
            rows.look(drawn=False)
        return rows.added

    def arrange(self, seed: int, before: Sequence[tuple[str, Any]]) -> None:
        """Brings every world into the situation of a trial."""
        key = f"{seed} {plain(before)}"
        if self._situation is None or self._situation[0] != key:
            self.driver.reset(self._everyone[:1], seeds=[seed])
            for kind, what in before:
                self.move(kind, what)
            self._situation = key, self._fact()
        self.driver.restore(self._situation[1], self._everyone)

    def move(self, kind: str, what: Any) -> bool:
        """Does one thing in the world of the fact; returns whether it could be done."""
        if kind == "do":
            return bool(self.driver.do(what, worlds=[0], check=False).applied[0])
        policy = _policy(self.world) if kind == "scripted" else None
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

    def _fact(self) -> Snapshot:
        arrays = {n: to_numpy(v) for n, v in self.world.save(self._everyone[:1]).items()}
        for name in DRIVER_ARRAYS:
            arrays[DRIVER_PREFIX + name] = np.array(getattr(self.driver, name))[:1]
        return Snapshot(self.driver.id, self.driver.options_json, arrays)

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
        self,
        bench: WitnessBench,
        graph: CausalGraph,
        trial: WitnessTrial,
        changes: Sequence[WitnessChange],
    ) -> None:
        self.bench, self.graph, self.trial, self.changes = bench, graph, trial, changes
        self.added = [Evidence() for _ in changes]
        self.step = 0
        self.live = np.zeros(len(changes), dtype=bool)  # changes that were not refused

    def intervene(self) -> None:
        """Applies each change in its own world."""
        driver = self.bench.driver
        present = {name: driver.host_values[name][0] for c in self.changes for name in c.do}
        for row, change in enumerate(self.changes, start=1):
            values = {n: present[n] if v is None else v for n, v in change.do.items()}
            if not values:
                self.live[row - 1] = change.action is not None
            elif self.trial.at_reset:
                self.live[row - 1] = _reset(driver, row, self.trial.seed, values)
            else:
                self.live[row - 1] = driver.do(values, worlds=[row], check=False).applied[row]

    def actions(self, action: Any, *, first: bool) -> NDArray[Any]:
        """Returns every world's action."""
        space = self.bench.world.action_space
        kind = getattr(space, "dtype", None)
        rows = np.stack([np.asarray(action, dtype=kind)] * len(self.bench.driver.steps))
        for row, change in enumerate(self.changes, start=1):
            if first and change.action is not None:
                rows[row] = change.action
        return rows

    def compare(self, before: list[frozenset[str]] | None) -> list[frozenset[str]]:
        """Judges what differs now, and before the last step; returns what differs."""
        moved, clearly = self._moved()
        for i in np.flatnonzero(self.live).tolist():
            change, first = self.changes[i], before is None
            self._note(
                i,
                WitnessMoment(
                    what=f"do({change.name})" if change.name else "another action",
                    moved=moved[i],
                    clearly=clearly[i],
                    held=frozenset(change.do),
                    before=None if before is None else before[i],
                    at_reset=first and self.trial.at_reset,
                    acted=self._acted(change),
                    settable=self.bench.settable,
                ),
            )
        return moved

    def _moved(self) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """Returns, by change, the variables that differ from the fact's, and those clearly."""
        count, bench = len(self.changes), self.bench
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
        return [frozenset(names) for names in moved], [frozenset(names) for names in clearly]

    def _acted(self, change: WitnessChange) -> frozenset[str] | None:
        """Returns what another action set; None unless the fact's action sets the same."""
        if change.action is None or self.step != 1:
            return frozenset()
        ours, facts = (
            self.bench.world.set_by_action(a) for a in (change.action, self.trial.actions[0])
        )
        return ours if ours == facts else None

    def _note(self, i: int, moment: WitnessMoment) -> None:
        known, own = self.bench.evidence, self.added[i]
        fresh = moment.edges(self.graph) - known.edges.keys()
        if fresh:
            own.steps = self.step
            own.edges |= dict.fromkeys(fresh, self._text(i))
        known.judge(self.graph, moment, self._text(i) if fresh else "")

    def _text(self, i: int) -> str:
        """Returns a change in words: what was done, and in which situation."""
        change, trial = self.changes[i], self.trial
        parts = [f"{n}={'held' if v is None else v}" for n, v in change.do.items()]
        what = f"do({', '.join(parts)})" if parts else f"action {change.action}"
        where = " at reset" if trial.at_reset else "".join(f", {k}" for k, _ in trial.before[:1])
        return f"{what}{where}, seed {trial.seed}, step {self.step}"

    def look(self, *, drawn: bool) -> None:
        """Notes the variables that moved observation, reward, info or, if `drawn`, the picture."""
        bench, alive = self.bench, np.flatnonzero(self.live).tolist()
        todo = [i for i in alive if self.changes[i].name and self._unseen(i)]
        if not todo:
            return
        parts = list(_observed(bench))
        for i in todo:
            if self._unseen(i) and any(_differ(part[i + 1], part[0]) for part in parts):
                self._see(i)
        todo = [i for i in todo if self._unseen(i)]
        if not (drawn and todo):
            return
        fact = bench.world.render(0)
        for i in todo:
            if self._unseen(i) and not np.array_equal(bench.world.render(i + 1), fact):
                self._see(i)
                self.added[i].by_picture = True

    def _unseen(self, i: int) -> bool:
        return self.changes[i].name not in self.bench.evidence.seen

    def _see(self, i: int) -> None:
        self.bench.evidence.seen.add(self.changes[i].name)
        self.added[i].seen.add(self.changes[i].name)
        self.added[i].steps = self.step


def _policy(world: Any) -> Any:
    """Returns the world's own policy; None where its options leave it without one."""
    try:
        return world.scripted_policy()
    except InvalidValueError:
        return None


def _reset(driver: Any, row: int, seed: int, values: Mapping[str, Any]) -> bool:
    index = np.array([row])
    try:
        driver.reset(index, seeds=[seed], do=values, check=False)
    except InterventionError:
        driver.reset(index, seeds=[seed])
        return False
    return True


def _observed(bench: WitnessBench) -> Iterator[NDArray[Any]]:
    """Yields what can be observed, (N, ...) each; info that repeats a variable does not count."""
    score, known = bench.world.score(), bench.world.variables
    info = {name: part for name, part in score.info.items() if name not in known}
    for tree in (bench.observe(), score.reward, score.terminated, info):
        yield from _leaves(tree)


def _leaves(tree: Any) -> Iterator[NDArray[Any]]:
    if isinstance(tree, Mapping):
        for part in tree.values():
            yield from _leaves(part)
    else:
        yield to_numpy(tree)


def _differ(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.dtype.kind != "f":
        return not np.array_equal(a, b)
    return bool(np.any(np.abs(a - b) > LEAST))


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
    """Runs every stored trial and returns a line for each thing that breaks the law.

    Args:
        world_id: a registered id.
        evidence: takes what the trials show.
    """
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
