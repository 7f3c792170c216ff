"""The search of witnesses: situations, values and actions tried until every edge is seen to act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from interverse.core.errors import InterventionError
from interverse.core.rng import generator
from interverse.rollouts.evidence import (
    MANY_EDGES,
    Evidence,
    WitnessChange,
    WitnessTrial,
    edge_kind,
    plain,
)
from interverse.rollouts.witnesses import WitnessBench, some_action
from interverse.scm import Box, Space, Variable
from interverse.scm.graph import NEXT, CausalGraph, Edge, now

SEARCH_NUMBERS = 10**4  # a search counts its situations from a multiple of this
_STEPS = 3  # after the changes: an effect on what is observed may take some
_NEAR = (0.004, 0.05, 0.5)
_NEARBY = 0.4  # how often a value near the present one is tried
_OTHER_ACTIONS = 24
_ROUNDS = 125  # of starts, one a world, for an edge that acts at the start of an episode alone


def search(bench: WitnessBench, tries: int, *, start: int = 0) -> list[WitnessTrial]:
    """Returns trials that together show all that was found; the bench holds the evidence.

    Args:
        bench: the worlds, with what is known already.
        tries: how many situations to try at most.
        start: the first one's number.
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
    scenarios: list[Any] = [_nothing, _play, *bench.world.scenarios(), _nothing]
    at_reset = len(scenarios) - 1  # in the last one, changes are in force before the reset's draws
    seed, rng = 100 + number, generator(seed=number, name="witness")
    unseen = bench.evidence.missing_variables(bench.world.variables)
    ahead = any(child.endswith(NEXT) for _, child in bench.evidence.missing_edges(declared))
    first_round = number % SEARCH_NUMBERS < len(scenarios)
    steps_may_show = first_round or ahead or bool(unseen)
    which = number % len(scenarios) if steps_may_show else at_reset
    before, action = _set_up(bench, seed, scenarios[which], rng)
    actions = _actions(bench, number, action) if steps_may_show else []
    changes = _changes_for_all(bench, _missing(bench, declared, rng), actions, rng)
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


def _actions(bench: WitnessBench, number: int, first: Any) -> list[Any]:
    """Returns the actions after the changes, as far as the episode goes; the first may be given."""
    left = max(1, min(_STEPS, bench.world.max_steps - int(bench.driver.steps[0])))
    out = [plain(some_action(bench.world, number, step)) for step in range(left)]
    return out if first is None else [first, *out[1:]]


def _changes_for_all(
    bench: WitnessBench, edges: list[Edge], actions: list[Any], rng: np.random.Generator
) -> list[WitnessChange]:
    """Returns changes for all that has no witness, so many that no world is left idle."""
    out = [*_changes(bench, edges, rng), *_other_actions(bench, edges, actions, rng)]
    while out and len(out) < bench.room:
        out += list(_changes(bench, edges, rng))[: bench.room - len(out)] or out[:1]
    return out


def _nothing(values: object, rng: object) -> Iterator[tuple[str, Any]]:
    """Leaves the start of an episode as it is."""
    yield from ()


def _play(values: Mapping[str, Any], rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Plays a few steps with actions drawn by address."""
    yield "play", int(rng.integers(1, 5))


def _changes(
    bench: WitnessBench, edges: list[Edge], rng: np.random.Generator
) -> Iterator[WitnessChange]:
    """Yields changes for every edge and variable without a witness."""
    graph, variables = bench.graph, bench.driver.variables
    wanted = {(now(a), _mediators(graph, a, b)) for a, b in edges if not a.endswith(NEXT)}
    wanted |= {(name, frozenset()) for name in bench.evidence.missing_variables(variables)}
    wanted |= {(name, frozenset()) for edge in edges for name in _upstream(graph, edge)}
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


def _missing(bench: WitnessBench, declared: CausalGraph, rng: np.random.Generator) -> list[Edge]:
    """Returns the edges without a witness; of a graph with very many, one of each kind."""
    here = bench.graph.edges
    edges = [edge for edge in bench.evidence.missing_edges(declared) if edge in here]
    if declared.number_of_edges() <= MANY_EDGES:
        return edges
    order = [edges[i] for i in rng.permutation(len(edges))]
    return list({edge_kind(edge): edge for edge in order}.values())


def _mediators(graph: CausalGraph, parent: str, child: str) -> frozenset[str]:
    """Returns what must be held still for a change of the parent to reach the child directly."""
    between = {now(cause) for cause in graph.predecessors(child)} & graph.effects_now(parent)
    return frozenset(between - {parent} - graph.twins(parent) - graph.twins(child))


def _upstream(graph: CausalGraph, edge: Edge) -> set[str]:
    """Returns what may move the parent of an edge where nobody can set it."""
    parent = edge[0]
    if not parent.endswith(NEXT):
        return {n for n in graph.ancestors(parent) if not n.endswith(NEXT)}
    return {n for n in graph.predecessors(parent) if not n.endswith(NEXT)}


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
