"""Rules of an intervention: what is malformed, what is refused, and that asked values hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import to_numpy
from interverse.core.errors import InterventionError, explain, unknown
from interverse.core.rng import Noise
from interverse.envs.values import Overlay
from interverse.scm import CausalGraph, Intervention, as_intervention
from interverse.scm.space import Space
from interverse.scm.variable import Variable
from interverse.worlds.world import Index, World

Rows = Mapping[str, NDArray[Any]]  # variable -> one row for each world of an index
Masks = Mapping[str, NDArray[np.bool_]]  # variable -> one answer for each world of an index
UNCHECKED = "Pass check=False to allow any value in its domain"


@final
class InterventionRules:
    """Judges and applies interventions on one world; each of its N copies for itself.

    A joint intervention cuts the incoming edges of every variable it sets: after it is accepted,
    every asked value holds. Two descriptions of one thing that disagree are refused.
    """

    def __init__(self, world: World, values: Mapping[str, NDArray[Any]]) -> None:
        self._world, self._values = world, values
        self._graph: CausalGraph | None = None
        self._effects: dict[str, set[str]] = {}
        self._regions: dict[str, Space | None] = {}  # of variables whose spaces never change

    def resolve(
        self, given: Mapping[str, Any] | Intervention, index: Index, noise: Noise
    ) -> dict[str, NDArray[Any]]:
        """Returns one row of values per world of `index`; malformed input raises."""
        variables = self._world.variables
        if not isinstance(given, Mapping) or not given.keys() <= variables.keys():
            intervention = as_intervention(given)  # raises for what is none
            for name in intervention.variables:  # one that Shift would read must exist
                _settable(name, variables)
            given = intervention.resolve(lambda name: self._values[name][index], noise)
        return check_values(given, variables, index, self._world.num_worlds)

    def read(self, name: str) -> NDArray[Any]:
        """Returns a variable's present values in every world, on the host."""
        return to_numpy(self._world.read(name))

    def effects(self, name: str) -> set[str]:
        """Returns what follows at once from a variable, remembered while the graph stays."""
        graph = self._world.graph
        if graph is not self._graph:  # a world may change its own graph
            self._graph, self._effects = graph, {}
        if name not in self._effects:
            self._effects[name] = graph.effects_now(name)
        return self._effects[name]

    def reach(self, names: Mapping[str, Any]) -> set[str]:
        """Returns variables and all that follows from them at once."""
        return set(names).union(*(self.effects(name) for name in names))

    def outside(
        self, rows: Rows, index: Index, differs: Masks, *, check: bool | Collection[str]
    ) -> dict[int, str]:
        """Returns, by world, which changed value lies outside its domain or the active space.

        `check`: whether the active space counts, or for which variables it does.
        """
        within = (rows if check else ()) if isinstance(check, bool) else check
        variables = self._world.variables
        beyond = {name: ~variables[name].domain.inside(values) for name, values in rows.items()}
        reasons: dict[int, str] = {}
        for name, values in rows.items():
            bad = beyond[name]
            region = self._region(name, rows, index, beyond) if name in within else None
            if region is not None:
                bad = bad | ~region.inside(values)
            for row in np.flatnonzero(bad & differs[name]).tolist():
                active = None if beyond[name][row] else region
                text = self._outside_text(variables[name], values, row, active)
                reasons.setdefault(int(index[row]), text)
        return reasons

    def _region(self, name: str, rows: Rows, index: Index, beyond: Masks) -> Space | None:
        """Returns where values of a variable must lie in the active space, given all others."""
        if name in self._regions:
            return self._regions[name]
        variable, space = self._world.variables[name], self._world.options.space
        if not variable.bounded:
            return self._regions.setdefault(name, variable.region(space))
        legal = dict(rows)  # spaces that depend on values must not see illegal ones
        for other, bad in beyond.items():
            if bad.any():
                legal[other] = rows[other].copy()
                legal[other][bad] = self.read(other)[index][bad]
        after = Overlay(self._values, legal, index, self._world.graph)
        return variable.resolve(after).region(space)

    def _outside_text(
        self, variable: Variable, values: NDArray[Any], row: int, region: Space | None
    ) -> str:
        """Returns why a value lies outside a region of the active space, or else its domain."""
        space, active = region or variable.domain, self._world.options.space
        low, high = (np.asarray(bound) for bound in (space.low, space.high))
        if low.ndim > len(variable.shape):  # bounds that depend on each world's other values
            low, high = low[row], high[row]
        bounds = f"{low.tolist()} to {high.tolist()} {variable.unit}".rstrip()
        label = "its domain" if region is None else f"space {active}"
        return explain(
            f"{variable.name} is {np.round(values[row], 9).tolist()}",
            allowed=f"{label}, {bounds} {space.rule}".rstrip(),
            fix="" if region is None else UNCHECKED,
        )

    def apply(
        self, rows: Rows, index: Index, differs: Masks, refused: Mapping[int, str]
    ) -> dict[int, str]:
        """Hands the world what really changes; returns why worlds refused it."""
        allowed = ~np.isin(index, list(refused))
        wanted = {name: self._held(name, differs) & allowed for name in sorted(rows)}
        # Whether one of the variables follows from another.
        related = len(rows) > 1 and any(self.effects(n) & rows.keys() - {n} for n in rows)
        before = self._world.save(index) if related else None
        reasons = self._apply_grouped(rows, index, wanted)
        if before is None:
            return reasons
        lost = self.hold(rows, index, {**refused, **reasons})
        back = np.isin(index, list(lost))
        if back.any():
            self._world.load({name: part[back] for name, part in before.items()}, index[back])
        return reasons | lost

    def judged(self, rows: Rows, index: Index) -> dict[int, str]:
        """Returns the worlds that would refuse values, with why; nothing stays changed."""
        differing = {name: differs(r, self.read(name)[index]) for name, r in rows.items()}
        reasons = self.outside(rows, index, differing, check=True)
        before = self._world.save(index)
        reasons |= self.apply(rows, index, differing, reasons)
        self._world.load(before, index)
        return reasons

    def hold(self, rows: Rows, index: Index, refused: Mapping[int, str]) -> dict[int, str]:
        """Sets again what other asked values have changed; returns where asked values disagree."""
        lost = self._not_holding(rows, index, refused)
        reasons = self._apply_grouped(rows, index, lost)
        still = self._not_holding(rows, index, {**refused, **reasons})
        for row, world in enumerate(index.tolist()):
            names = [name for name, mask in still.items() if mask[row]]
            for name in names[:1]:  # it cannot hold, for another value stands for the same thing
                others = [*(other for other, mask in lost.items() if mask[row]), *rows]
                against = [o for o in others if o != name and name in self.effects(o)]
                told = f"{name} and {against[0]} describe one thing and disagree" if against else ""
                fix = "Set one of them, or give values that agree"
                reasons[world] = explain(told or f"{name} cannot hold", fix=fix)
        return reasons

    def _apply_grouped(self, rows: Rows, index: Index, wanted: Masks) -> dict[int, str]:
        """Intervenes, worlds with the same set of changes together."""
        names, refused = list(wanted), dict[int, str]()
        if not any(mask.any() for mask in wanted.values()):
            return refused
        pattern = np.stack([wanted[name] for name in names], axis=1)
        for key in dict.fromkeys(map(tuple, pattern.tolist())):
            chosen = np.flatnonzero(np.all(pattern == key, axis=1))
            values = {name: rows[name][chosen] for name, on in zip(names, key, strict=True) if on}
            if values:
                refused |= self._world.intervene(values, index[chosen])
        return refused

    def _held(self, name: str, differs: Masks) -> NDArray[np.bool_]:
        """Returns where a value must be handed on: it changes, or a cause of it does."""
        causes = [c for c in differs if c != name and name in self.effects(c)]
        return np.asarray(np.any([differs[n] for n in (name, *causes)], axis=0))

    def _not_holding(self, rows: Rows, index: Index, refused: Mapping[int, str]) -> Masks:
        """Returns, by variable, where an asked value does not hold now."""
        same, asked = self._world.same_values, ~np.isin(index, list(refused))
        return {n: asked & ~same(n, r, self._values[n][index]) for n, r in rows.items()}


def differs(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns in which rows two arrays differ."""
    unequal = np.asarray(a != b)
    return np.asarray(unequal.any(axis=tuple(range(1, unequal.ndim))))


def check_values(
    given: Mapping[str, Any], variables: Mapping[str, Variable], index: Index, num_worlds: int
) -> dict[str, NDArray[Any]]:
    """Returns (len(index), *shape) rows per variable, or raises InterventionError if malformed.

    Malformed: an unknown or read-only variable, a wrong shape or type, NaN. A value is one for all,
    or has a row for every world, or for every world of `index`.
    """
    out = {}
    for name, value in given.items():
        variable = _settable(name, variables)
        array = _numbers(name, value, variable)
        shape, count = variable.domain.shape, len(index)
        if variable.cube and array.shape == (num_worlds,) == shape and np.ptp(array):
            given_as = f"{array.tolist()} in {num_worlds} worlds: one box, or edges of cubes"
            allowed = f"({num_worlds}, {num_worlds}) numbers, a row for each world"
            raise InterventionError(f"{name} is {given_as}", [name], allowed=allowed)
        if array.shape == shape or (variable.cube and array.ndim == 0):
            out[name] = np.array(np.broadcast_to(array, (count, *shape)))
        elif array.shape == (num_worlds, *shape):
            if count == num_worlds and (np.diff(index) < 0).any():
                told = f"{name} has a row for each of the worlds {index.tolist()}, all there are,"
                fix = "Leave worlds out, and give the rows from world 0 on"
                raise InterventionError(f"{told} in an order of their own", [name], fix=fix)
            out[name] = array[index]
        elif array.shape == (count, *shape):
            out[name] = array
        else:
            either = f"{shape} or ({num_worlds}, ...) of such"
            raise InterventionError(f"{name} has shape {array.shape}", [name], allowed=either)
    return out


def _settable(name: str, variables: Mapping[str, Variable]) -> Variable:
    """Returns a variable that can be set, or raises."""
    if name not in variables:
        fix = "See env.unwrapped.variables"
        raise InterventionError(unknown("variable", name, variables, fix=fix), [name])
    if variables[name].read_only:
        told = f"{name} can be read but not set"
        raise InterventionError(told, [name], allowed="variables not read_only")
    return variables[name]


def _numbers(name: str, value: Any, variable: Variable) -> NDArray[Any]:
    """Returns a value as an array of the variable's type, or raises."""
    try:
        array = np.asarray(to_numpy(value.detach()) if hasattr(value, "detach") else value)
    except (ValueError, TypeError) as problem:
        raise InterventionError(f"{name} is no array: {problem}", [name]) from problem
    if array.dtype.kind not in "biuf":
        raise InterventionError(f"{name} has type {array.dtype}", [name], allowed="numbers")
    if not np.isfinite(array).all():
        raise InterventionError(f"{name} holds NaN or infinity", [name], allowed="finite numbers")
    with np.errstate(invalid="ignore"):  # a number beyond all whole ones is told below
        cast = array.astype(np.int64 if variable.domain.integral else np.float64)
    if (cast != array).any():
        raise InterventionError(f"{name} is {array.tolist()}", [name], allowed="whole numbers")
    # What is a bound as float32 has it is the bound: the float32 next to .4 lies above it, so a
    # batch from A would lose the world at its end.
    own = variable.domain.shape
    if array.dtype == np.float32 and array.shape[-len(own) or array.ndim :] == own:
        bounded = (variable.domain, variable.space_a, variable.space_b)
        ends = [end for s in bounded if isinstance(s, Space) for end in (s.low, s.high)]
        for bound in ends:
            cast = np.where(array == np.asarray(bound, np.float32), bound, cast)
    return cast
