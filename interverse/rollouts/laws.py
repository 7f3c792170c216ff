"""The laws of every world, as checks that need no test framework.

`check_laws(id)` makes the world and returns one row per law; `interverse check ID` prints them. The
conformance suite of the repository tests the same laws harder, over many seeds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import alike
from interverse.core.errors import InterventionError
from interverse.core.rng import generator
from interverse.envs import Snapshot, WorldEnv, make, make_vec
from interverse.envs.single import first
from interverse.rollouts.counterfactual import counterfactual
from interverse.rollouts.evidence import WITNESS_LAWS, Evidence, WitnessTrial
from interverse.rollouts.runner import rollout
from interverse.rollouts.witnesses import WitnessBench, search, stored
from interverse.scm import Space

_STEPS = 5
_PIXEL_TRIES = 3  # of them with cameras
_TRIES = 40  # situations in which a world without stored witnesses is looked at
_MOST_LINES = 5


@final
@dataclass(frozen=True, slots=True)
class LawResult:
    """How one law fared in one world.

    Attributes:
        law: the law, as a sentence.
        passed: whether it held.
        detail: what was checked, or the first thing that broke it.
        witnesses: of the law of edges, how each edge was seen to act.
    """

    law: str
    passed: bool
    detail: str
    witnesses: Mapping[str, str] = field(default_factory=dict)


class _BrokenLawError(Exception):
    """The first thing found that breaks a law."""


def _hold(holds: object, told: str) -> None:
    """Raises with what breaks a law unless it holds."""
    if not holds:
        raise _BrokenLawError(told)


@final
class _Bench:
    """One world under test, and the small tools the laws share."""

    def __init__(self, world_id: str, options: Mapping[str, Any], seed: int) -> None:
        self.id, self.options, self.seed = world_id, options, seed
        self.env = make(world_id, **options)

    @functools.cached_property
    def trials(self) -> WitnessBench:
        """Worlds on which witnesses were looked for: the stored trials, then a short search."""
        kept = stored(self.id)
        groups = kept or [{"options": {}, "worlds": 8, "trials": []}]
        if not kept and self.env.world.pixel_options:
            groups += [{"options": self.env.world.pixel_options, "worlds": 4, "trials": []}]
        evidence, benches = Evidence(), []
        for group in groups:
            options = {**group["options"], **self.options}
            benches.append(WitnessBench(self.id, options, group["worlds"], evidence))
            for data in group["trials"]:
                benches[-1].run(WitnessTrial.from_json(data))
        search(benches[0], _TRIES, start=10**4 * (1 + self.seed))
        for bench in benches[1:]:
            if not kept:
                search(bench, _PIXEL_TRIES, start=10**4 * (1 + self.seed))
            bench.close()
        return benches[0]

    def play(self, env: WorldEnv, seed: int, steps: int = _STEPS) -> list[Any]:
        """Returns the observations and rewards of a few random steps."""
        out: list[Any] = []
        for step in range(steps):
            observation, reward, terminated, truncated, _ = env.step(self.action(seed, step))
            out.append((observation, reward))
            if terminated or truncated:
                break
        return out

    def action(self, seed: int, step: int) -> Any:
        """Returns the random action of a seed and a step."""
        space = self.env.action_space
        space.seed(int(generator(seed=seed, name="action", step=step).integers(2**31)))
        return space.sample()

    def value(self, name: str) -> NDArray[Any] | None:
        """Returns a value of space A, or of the domain where it is bounded; None without one."""
        variable = self.env.variables[name]
        chosen = variable.space("A") or variable.domain
        if not (np.all(np.isfinite(chosen.low)) and np.all(np.isfinite(chosen.high))):
            return None
        return np.asarray(chosen.sample(generator(seed=self.seed, name=f"value/{name}")))

    def writable(self) -> list[str]:
        """Returns the variables that can be set."""
        return [name for name, variable in self.env.variables.items() if not variable.read_only]


def check_laws(world_id: str, *, seed: int = 0, **options: Any) -> list[LawResult]:
    """Returns how every law fared.

    Args:
        world_id: a registered id, or `module:id` for a world of your own.
        seed: of the episodes and values tried.
        **options: options of the world.

    >>> all(row.passed for row in check_laws("tutorial/slider-v1"))
    True
    """
    bench = _Bench(world_id, options, seed)
    try:
        rows = []
        for sentence, law in LAWS.items():
            try:
                rows.append(LawResult(sentence, True, law(bench)))
            except _BrokenLawError as broken:
                rows.append(LawResult(sentence, False, str(broken)))
            except Exception as error:  # a world's own mistake is a finding, not a crash
                rows.append(LawResult(sentence, False, f"{type(error).__name__}: {error}"))
        how = {}
        with suppress(Exception):  # where no trial could be made, its laws say why
            how = {f"{a} -> {b}": text for (a, b), text in bench.trials.evidence.edges.items()}
            bench.trials.close()
        return [replace(r, witnesses=how) if r.law == WITNESS_LAWS[0] else r for r in rows]
    finally:
        bench.env.close()


def _repeats(bench: _Bench) -> str:
    runs = []
    for _ in range(2):
        first, _ = bench.env.reset(seed=bench.seed)
        runs.append([first, *bench.play(bench.env, bench.seed)])
    _hold(alike(*runs), "two runs of one seed differ")
    return f"{len(runs[0])} observations"


def _batch(bench: _Bench) -> str:
    venv = make_vec(bench.id, num_envs=2, autoreset_mode="disabled", **bench.options)
    try:
        begun, steps = venv.reset(seed=bench.seed)[0], []
        for t in range(_STEPS):
            actions = [bench.action(bench.seed + i, t) for i in range(2)]
            observation, reward, terminated, truncated, _ = venv.step(np.stack(actions))
            steps.append((observation, reward))
            if np.any(terminated | truncated):
                break
    finally:
        venv.close()
    for i in range(2):
        alone = [bench.env.reset(seed=bench.seed + i)[0]]
        alone += bench.play(bench.env, bench.seed + i, len(steps))
        batched = [first(begun, i), *((first(seen, i), reward[i]) for seen, reward in steps)]
        _hold(alike(alone, batched), f"world {i} of a batch of two differs from a single one")
    return f"2 worlds, {len(steps)} steps"


def _present_value(bench: _Bench) -> str:
    bench.env.reset(seed=bench.seed)
    bench.play(bench.env, bench.seed, 1)
    names = bench.writable()
    for name in names:
        outcome = bench.env.do({name: bench.env.values[name]})
        _hold(not outcome.changed, f"do of the present {name} changes {sorted(outcome.changed)}")
    return f"{len(names)} variables"


def _effects(bench: _Bench) -> str:
    held = 0
    for name in bench.writable():
        bench.env.reset(seed=bench.seed)
        value, before = bench.value(name), dict(bench.env.values)
        if value is None or not _done(bench, {name: value}):
            continue
        held += 1
        after = dict(bench.env.values)
        told = f"{name} was set to {value.tolist()}, is {after[name].tolist()}"
        _hold(np.allclose(after[name], value, rtol=0, atol=1e-9), told)
        changed = {n for n in after if not np.array_equal(after[n], before[n])}
        stray = changed - {name} - bench.env.graph.effects_now(name)
        _hold(not stray, f"do({name}) changes {sorted(stray)}, no effects of it")
    _hold(held, "every intervention was refused")
    return f"{held} interventions hold"


def _rebuilt(bench: _Bench) -> str:
    checked = 0
    for name in bench.writable():
        value = bench.value(name)
        if value is None or bench.env.variables[name].kind == "state":
            continue
        try:
            edited, _ = bench.env.reset(seed=bench.seed, options={"do": {name: value}})
        except InterventionError:
            continue
        other = make(bench.id, **bench.options, defaults={name: value})
        rebuilt, _ = other.reset(seed=bench.seed)
        runs = bench.play(bench.env, 0, 2), bench.play(other, 0, 2)
        other.close()
        same = alike(edited, rebuilt) and alike(*runs)
        _hold(same, f"reset with do({name}) differs from a world declared so")
        checked += 1
    return f"{checked} variables"


def _spaces(bench: _Bench) -> str:
    pairs = 0
    bench.env.reset(seed=bench.seed)
    for name, variable in bench.env.variables.items():
        a, b = variable.space_a, variable.space_b
        if not (isinstance(a, Space) and isinstance(b, Space)):
            continue
        pairs += 1
        rng = generator(seed=bench.seed, name=f"spaces/{name}")
        meet = a.contains(b.sample(rng)) or b.contains(a.sample(rng))
        _hold(not meet, f"spaces A and B of {name} meet")
    return f"{pairs} variables with A and B"


def _snapshot(bench: _Bench) -> str:
    bench.env.reset(seed=bench.seed)
    bench.play(bench.env, bench.seed, 1)
    saved = bench.env.snapshot().to_bytes()
    ahead = bench.play(bench.env, bench.seed, 3)
    other = make(bench.id, **bench.options)
    other.restore(Snapshot.from_bytes(saved))
    again = bench.play(other, bench.seed, 3)
    other.close()
    _hold(alike(ahead, again), "a restored world goes on otherwise")
    return f"{len(saved):,} bytes"


def _counterfactual(bench: _Bench) -> str:
    steps = iter(range(10**6))
    fact = rollout(
        bench.env,
        lambda observations: np.stack([bench.action(bench.seed, next(steps))]),
        seed=bench.seed,
        max_steps=_STEPS,
    )
    same = counterfactual(fact, {}).fingerprint == fact.fingerprint
    _hold(same, "the counterfactual without a change differs from the fact")
    return f"{len(fact.rewards)} steps"


def _inside(bench: _Bench) -> str:
    low, high = bench.env.world.reward_range
    first, _ = bench.env.reset(seed=bench.seed)
    for observation, reward in [(first, 0.0), *bench.play(bench.env, bench.seed)]:
        inside = bench.env.observation_space.contains(observation)
        _hold(inside, "an observation lies outside its space")
        earned = observation is first or low <= float(reward) <= high
        _hold(earned, f"reward {reward} lies outside {low} to {high}")
    return f"{_STEPS} steps"


def _layout(bench: _Bench) -> str:
    env = bench.env
    shown = {n: part for n, part in env.layout.items() if n in env.variables}
    checked = 0
    for name in [name for name in bench.writable() if name in shown]:
        first, _ = env.reset(seed=bench.seed)
        value, before, first = bench.value(name), dict(bench.env.values), np.array(first)
        if value is None or not _done(bench, {name: value}):
            continue
        seen, after = env.observe(), dict(bench.env.values)
        moved = {n for n, part in shown.items() if not np.array_equal(seen[part], first[part])}
        changed = {n for n in shown if not np.array_equal(after[n], before[n])}
        stray, hidden = moved - changed, (changed & {name}) - moved
        told = f"what shows {sorted(stray)}" if stray else "nothing of it"
        _hold(not stray and not hidden, f"do({name}) moves {told}, by layout's places")
        checked += 1
    return f"{checked} variables"


def _nodes(bench: _Bench) -> str:
    names = {node.removesuffix("'") for node in bench.env.graph.nodes}
    odd = sorted(names ^ set(bench.env.variables))
    _hold(not odd, f"in the graph or among the variables only: {odd}")
    return f"{len(names)} variables"


def _witnessed(bench: _Bench, sentence: str) -> str:
    trials = bench.trials
    lines = trials.broken()[sentence]
    more = len(lines) - _MOST_LINES
    rest = f" and {more} more" if more > 0 else ""
    _hold(not lines, "; ".join(lines[:_MOST_LINES]) + rest)
    inert = len(trials.graph.inert) + sum(bool(v.inert) for v in trials.world.variables.values())
    seen = f"{len(trials.evidence.edges)} edges, {len(trials.evidence.seen)} variables"
    return seen + (f"; {inert} declared inert" if inert else "")


LAWS: dict[str, Callable[[_Bench], str]] = {
    "same seed and actions, same trajectory": _repeats,
    "a batch equals its single worlds": _batch,
    "do of the present value changes nothing": _present_value,
    "do sets its variable and changes effects only": _effects,
    "edited equals rebuilt": _rebuilt,
    "spaces A and B do not meet": _spaces,
    "snapshot, restore, continue equals continue": _snapshot,
    "a counterfactual without change is the fact": _counterfactual,
    "observations and rewards lie in their spaces": _inside,
    "the observation shows variables where layout says": _layout,
    "graph and variables name the same things": _nodes,
    **{name: functools.partial(_witnessed, sentence=name) for name in WITNESS_LAWS},
}


def _done(bench: _Bench, values: Mapping[str, Any]) -> bool:
    try:
        bench.env.do(values)
    except InterventionError:
        return False
    return True
