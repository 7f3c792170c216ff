"""Rules of an intervention: what is malformed, what is refused, and that asked values hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterventionError, explain
from interverse.core.rng import Noise
from interverse.envs.checks import check_values, outside
from interverse.envs.values import Overlay
from interverse.scm import CausalGraph, Intervention
from interverse.worlds.world import Index, World

Rows = Mapping[str, NDArray[Any]]  # variable -> one row for each world of an index
Masks = Mapping[str, NDArray[np.bool_]]  # variable -> one answer for each world of an index


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

    def resolve(self, given: Intervention, index: Index, noise: Noise) -> dict[str, NDArray[Any]]:
        """Returns one row of values per world of `index`; malformed input raises."""
        variables, n = self._world.variables, self._world.num_worlds
        check_names = {name: 0 for name in given.variables if name not in variables}
        check_values(check_names, variables, index, n)  # a name Shift would read must exist
        values = given.resolve(lambda name: self._values[name][index], noise)
        out: dict[str, NDArray[Any]] = {}
        for name, value in values.items():
            per_world = np.asarray(value).shape == (len(index), *variables[name].shape)
            if per_world and len(index) == n and np.any(np.diff(index) < 0):
                raise InterventionError(
                    explain(
                        f"{name} has a row for each of the worlds {index.tolist()}, all there are,"
                        " in an order of their own",
                        fix="Leave worlds out, and give the rows from world 0 on",
                    ),
                    [name],
                )
            size = len(index) if per_world and len(index) != n else n
            rows = np.arange(size) if size != n else index
            out |= check_values({name: value}, variables, rows, size)
        return out

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
        variables, space = self._world.variables, self._world.options.space
        legal = dict(rows)  # spaces that depend on values must not see illegal ones
        for name, values in rows.items():
            bad = ~variables[name].domain.inside(values)
            if bad.any():
                legal[name] = values.copy()
                legal[name][bad] = self._values[name][index][bad]
        after = Overlay(self._values, legal, index, self._world.graph)
        reasons: dict[int, str] = {}
        for name, values in rows.items():
            variable = variables[name].resolve(after)
            for row, text in outside(values, variable, space, check=name in within).items():
                if differs[name][row]:
                    reasons.setdefault(int(index[row]), text)
        return reasons

    def apply(
        self, rows: Rows, index: Index, differs: Masks, refused: Mapping[int, str]
    ) -> dict[int, str]:
        """Hands the world what really changes; returns why worlds refused it."""
        wanted = {name: self._held(name, differs) for name in sorted(rows)}
        allowed = ~np.isin(index, list(refused))
        if not any((mask & allowed).any() for mask in wanted.values()):
            return {}
        before = self._world.save(index) if self._related(rows) else None
        reasons = self._apply_grouped(rows, index, wanted, allowed)
        if before is None:
            return reasons
        lost = self._reapply(rows, index, allowed & ~np.isin(index, list(reasons)))
        back = np.isin(index, list(lost))
        if back.any():
            self._world.load({name: part[back] for name, part in before.items()}, index[back])
        return reasons | lost

    def judged(self, rows: Rows, index: Index) -> dict[int, str]:
        """Returns the worlds that would refuse values, with why; nothing stays changed."""
        differing = {name: differs(r, self._values[name][index]) for name, r in rows.items()}
        reasons = self.outside(rows, index, differing, check=True)
        before = self._world.save(index)
        reasons |= self.apply(rows, index, differing, reasons)
        self._world.load(before, index)
        return reasons

    def hold(self, rows: Rows, index: Index, refused: Mapping[int, str]) -> dict[int, str]:
        """Sets again what other asked values have changed; returns where asked values disagree."""
        return self._reapply(rows, index, ~np.isin(index, list(refused)))

    def _reapply(self, rows: Rows, index: Index, asked: NDArray[np.bool_]) -> dict[int, str]:
        lost = self._not_holding(rows, index, asked)
        if not any(mask.any() for mask in lost.values()):
            return {}
        reasons = self._apply_grouped(rows, index, lost, asked)
        still = self._not_holding(rows, index, asked & ~np.isin(index, list(reasons)))
        for row, world in enumerate(index.tolist()):
            names = [name for name, mask in still.items() if mask[row]]
            if names:
                again = [name for name, mask in lost.items() if mask[row]]
                reasons[world] = self._contradiction(names[0], [*again, *rows])
        return reasons

    def _contradiction(self, name: str, others: list[str]) -> str:
        """Returns the text that names a value that cannot hold and the one that stands for it."""
        against = next((o for o in others if o != name and name in self.effects(o)), "")
        both = f"{name} and {against}" if against else name
        return explain(
            f"{both} describe one thing and disagree" if against else f"{name} cannot hold",
            fix="Set one of them, or give values that agree",
        )

    def _apply_grouped(
        self, rows: Rows, index: Index, wanted: Masks, allowed: NDArray[np.bool_]
    ) -> dict[int, str]:
        """Intervenes, worlds with the same set of changes together."""
        names = list(wanted)
        pattern = np.stack([wanted[name] for name in names], axis=1)
        refused: dict[int, str] = {}
        alike = bool(np.all(pattern == pattern[:1]))  # the usual case; np.unique sorts, slowly
        for key in pattern[:1] if alike else np.unique(pattern, axis=0):
            chosen = np.flatnonzero(allowed & np.all(pattern == key, axis=1))
            values = {name: rows[name][chosen] for name, on in zip(names, key, strict=True) if on}
            if values and len(chosen):
                refused |= self._world.intervene(values, index[chosen])
        return refused

    def _held(self, name: str, differs: Masks) -> NDArray[np.bool_]:
        """Returns where a value must be handed on: it changes, or a cause of it does."""
        causes = [c for c in differs if c != name and name in self.effects(c)]
        return np.asarray(np.any([differs[n] for n in (name, *causes)], axis=0))

    def _related(self, rows: Rows) -> bool:
        """Returns whether one of the variables follows from another."""
        return len(rows) > 1 and any(self.effects(name) & rows.keys() - {name} for name in rows)

    def _not_holding(self, rows: Rows, index: Index, asked: NDArray[np.bool_]) -> Masks:
        """Returns, by variable, where an asked value does not hold now."""
        out = {}
        for name, values in rows.items():
            found = self._values[name][index]
            out[name] = asked & ~self._world.same_values(name, values, found)
        return out


def differs(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns in which rows two arrays differ."""
    unequal = np.asarray(a != b)
    return np.asarray(unequal.any(axis=tuple(range(1, unequal.ndim))))
