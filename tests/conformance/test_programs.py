"""Random programs of do, step, reset, snapshot and restore, on a batch and on its single worlds.

A program is a list of plain tuples, so that a failure shrinks to a short script. After every order
the batch must equal the singles bit for bit; after an accepted `do` every asked value must hold;
what is refused or malformed must change nothing.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import interverse as iv
from interverse.core.errors import InterverseError
from interverse.core.rng import generator
from interverse.envs.driver import Driver
from interverse.envs.interventions import InterventionRules
from interverse.envs.snapshot import Snapshot
from interverse.rollouts.runner import Recorder
from tests.conformance.cases import CASES, Case, leaves, some_action, some_value, writable

WORLDS = 2
_MODEL = "model/"  # fields of a simulator: only those that were ever edited are saved
_small = st.integers(0, 2**16)
_reach = st.lists(st.integers(0, 3), min_size=WORLDS, max_size=WORLDS)
_mask = st.lists(st.booleans(), min_size=WORLDS, max_size=WORLDS)
_orders = st.one_of(
    st.tuples(st.just("do"), st.lists(_small, min_size=1, max_size=3), _small, _mask, _reach),
    st.tuples(st.just("step"), _small),
    st.tuples(st.just("reset"), _small, _mask),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("restore"), _mask),
    st.tuples(st.just("malformed"), st.integers(0, 4)),
)
programs = st.lists(_orders, min_size=3, max_size=7)


class Machine:
    """A batch and its singles, given the same orders."""

    def __init__(self, case: Case) -> None:
        self.batch = case.make_vec(WORLDS, autoreset_mode="disabled")
        self.singles = [case.make() for _ in range(WORLDS)]
        self.names = writable(self.batch)
        self.limit = max(1, case.steps)

    def close(self) -> None:
        self.batch.close()
        for env in self.singles:
            env.close()
        del self.batch, self.singles  # Hypothesis keeps the machine until a garbage collection

    def run(self, program: list[tuple[Any, ...]]) -> None:
        """Starts anew and obeys; the first broken law fails."""
        self.saved = None
        self._reset(5, [True] * WORLDS)
        for order, *rest in program:
            getattr(self, f"_{order}")(*rest)
            self._agree(order)
        self._recorded()

    # ------------------------------------------------------------------------- orders

    def _reset(self, seed: int, mask: list[bool]) -> None:
        rows = np.array(mask)
        seeds = [seed + i for i in range(WORLDS)]
        self.batch.reset(seed=seeds, options={"reset_mask": rows})
        for i in np.flatnonzero(rows):
            self.singles[i].reset(seed=seeds[i])
        if rows[0]:
            self._record()

    def _record(self) -> None:
        env = self.singles[0]
        env.driver.listeners.clear()
        self.recorder = Recorder(env, env.observe()).__enter__()

    def _step(self, seed: int) -> None:
        if (self.batch.driver.steps >= self.limit).any():
            self._reset(seed, [True] * WORLDS)
        action = some_action(self.batch, seed, 0)
        self.batch.step(np.stack([action] * WORLDS))
        for env in self.singles:
            env.step(action)

    def _do(self, picks: list[int], seed: int, mask: list[bool], reach: list[int]) -> None:
        """Asks for values in some worlds: of A or B, of the domain (2) or beyond it (3)."""
        asked = self._values(picks, seed, reach)
        before = [_moment(env) for env in self.singles]
        outcome = self.batch.do(asked, worlds=np.array(mask))
        world = self.batch.world
        for i in np.flatnonzero(mask).tolist():
            mine = {name: rows[i] for name, rows in asked.items()}
            try:
                self.singles[i].do(mine)
                accepted = True
            except iv.InterventionError:
                accepted = False
                assert _moment(self.singles[i]) == before[i], "a refused do changed the world"
            assert accepted == bool(outcome.applied[i]), (mine, outcome.reasons)
            for name, value in mine.items() if accepted else ():
                found = self.singles[i].values[name]
                assert world.same_values(name, value[None], found[None]).all(), (name, mine)

    def _values(self, picks: list[int], seed: int, reach: list[int]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name in self._chosen(picks):
            rng = generator(seed=seed, name=name)
            rows = [
                _value(env, name, rng, far) for env, far in zip(self.singles, reach, strict=True)
            ]
            out[name] = np.stack(rows).astype(self.batch.world.variables[name].dtype)
        return out

    def _chosen(self, picks: list[int]) -> list[str]:
        """Returns some variables; of several, the later ones often follow from the earlier."""
        graph, settable = self.batch.graph, set(self.names)
        causes = [n for n in self.names if graph.effects_now(n) & settable]
        out: list[str] = []
        for pick in picks:
            names = causes if causes and len(picks) > 1 else self.names
            if out and pick % 4:
                names = sorted(graph.effects_now(out[-1]) & settable - set(out)) or names
            out.append(names[pick % len(names)])
        return list(dict.fromkeys(out))

    def _snapshot(self) -> None:
        self.saved = self.batch.snapshot().to_bytes()

    def _restore(self, mask: list[bool]) -> None:
        if self.saved is None or not any(mask):
            return
        snapshot = Snapshot.from_bytes(self.saved)
        self.batch.restore(snapshot, worlds=np.array(mask))
        for i in np.flatnonzero(mask).tolist():
            one = {n: v[i : i + 1] for n, v in snapshot.arrays.items()}
            self.singles[i].restore(Snapshot(snapshot.id, snapshot.options, one))
        if mask[0]:
            self.singles[0].driver.listeners.clear()
            self.recorder = None

    def _malformed(self, kind: int) -> None:
        """Asks for what cannot be: typed errors, and nothing changes."""
        env, good = self.singles[0], self.singles[0].snapshot()
        lost = {n: v for n, v in good.arrays.items() if n != "driver/steps"}
        calls = [
            lambda: env.reset(seed=1, options={"episode": -1}),
            lambda: env.restore(Snapshot(good.id, good.options, lost)),
            lambda: env.do({"no such variable": 1.0}),
            lambda: env.step(np.full(3, np.nan)),
            lambda: self.batch.do({self.names[0]: np.zeros((7, 7, 7))}),
        ]
        before = _moment(env)
        with pytest.raises(InterverseError):
            calls[kind]()
        assert _moment(env) == before, "a malformed call changed the world"
        assert not self.batch.do({}, worlds=np.zeros(WORLDS, dtype=bool)).applied.any()

    # --------------------------------------------------------------------------- laws

    def _agree(self, order: str) -> None:
        batch = self.batch.snapshot().arrays
        seen = leaves(self.batch.world.observe())
        for i, env in enumerate(self.singles):
            alone = env.snapshot().arrays
            for name in batch.keys() & alone.keys():
                mine, theirs = np.asarray(batch[name][i]), np.asarray(alone[name][0])
                assert mine.tobytes() == theirs.tobytes(), f"{name} of world {i} after {order}"
            for mine, theirs in zip(seen, leaves(env.observe()), strict=True):
                assert np.array_equal(mine[i], theirs), f"world {i} sees otherwise after {order}"

    def _recorded(self) -> None:
        """The counterfactual without a change is the fact, refusals included."""
        if self.recorder is not None:
            fact = self.recorder.episode()
            assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def _moment(env: Any) -> dict[str, bytes]:
    arrays = env.snapshot().arrays
    return {n: np.asarray(v).tobytes() for n, v in arrays.items() if not n.startswith(_MODEL)}


def _value(env: Any, name: str, rng: np.random.Generator, far: int) -> Any:
    variable, present = env.variables[name], env.values[name]
    low, high = variable.domain.low, variable.domain.high
    if far < 2 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return some_value(variable, present, rng)
    return variable.domain.sample(rng) if far == 2 else high + 1


COUNTERFACTUAL = sys.modules["interverse.rollouts.counterfactual"]  # a function has its name
_HEAVY = ("control/", "rooms/", "trifinger/stacked", "trifinger/creative", "trifinger/general")


def run_programs(case, examples, *, shrink=True):
    """Runs so many programs on one world."""
    machine = Machine(case)
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs)
    def run(program):
        machine.run(program)

    try:
        run()
    finally:
        machine.close()


@pytest.mark.parametrize(
    ("few", "many"),
    [(1, 6), pytest.param(20, 200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_programs_keep_the_laws(case, few, many):
    run_programs(case, few if case.id.startswith(_HEAVY) else many)


# ------------------------------------------------- the defects that they must find if put back

REGION, RESET, PLAY = InterventionRules._region, Driver.reset, COUNTERFACTUAL._play


def lax(rules, name, rows, index, beyond):
    """Checks space A_B only if no world's value leaves its domain."""
    return None if beyond[name].any() else REGION(rules, name, rows, index, beyond)


def forgetful(env, fact, *rest):
    """Has counterfactuals forget what the fact was refused."""
    return PLAY(env, replace(fact, refusals=()), *rest)


def hasty(driver, index, *, seeds=None, **more):
    """Has a bad reset change the counters."""
    if seeds is not None:
        driver.seeds[index] = seeds
    RESET(driver, index, seeds=seeds, **more)


def careless(rules, rows, index, refused):
    """Lets asked values not hold."""
    return {}


@pytest.mark.parametrize(
    ("owner", "name", "defect", "world_id"),
    [
        (InterventionRules, "_region", lax, "tutorial/slider-v1"),
        (InterventionRules, "hold", careless, "trifinger/pushing-v1"),
        (COUNTERFACTUAL, "_play", forgetful, "tutorial/slider-v1"),
        (Driver, "reset", hasty, "tutorial/slider-v1"),
    ],
)
def test_they_find_a_defect(monkeypatch, owner, name, defect, world_id):
    monkeypatch.setattr(owner, name, defect)
    with pytest.raises(AssertionError) as caught:
        run_programs(Case(world_id), 200, shrink=defect is forgetful)
    text = "".join(getattr(caught.value, "__notes__", []))
    assert defect is not forgetful or text.count("'do'") == 1, "a failure is a short script"
