"""Model fields that differ by world: shared by all until first written, then a row for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, copy_of, namespace
from interverse.scm.variable import Binding
from interverse.sim.elements import Rule, Slot, find_slot, needs_constants, template
from interverse.sim.engine import Edit, Rows, at


class Fields(ABC):
    """The fields of a model that N worlds have. Subclasses are final: one per simulator.

    All writes of an intervention come first; inertia follows by the scene's rules; then what the
    compiler derives from masses and sizes is derived again, once, if a written field feeds it.
    """

    def __init__(self, model: mujoco.MjModel, num_worlds: int, rules: Sequence[Rule]) -> None:
        self._model, self._worlds, self._rules = model, num_worlds, rules
        self._slots: dict[Binding, tuple[Slot, Any]] = {}
        self._rows: dict[str, Array] = {}  # (N, size) of each field that differs by world
        self._scenes: dict[str, Array] = {}  # (size,) as the scene has it

    @abstractmethod
    def index(self, numbers: NDArray[np.int64]) -> Any:
        """Returns numbers of columns as this simulator's arrays take them."""

    @abstractmethod
    def given(self, values: Any, count: int, width: int, name: str) -> Array:
        """Returns values as (count, width), or (count, 1) to broadcast; other widths raise."""

    @abstractmethod
    def asarray(self, values: Any) -> Array:
        """Returns values of a field as an array of this simulator's kind."""

    @abstractmethod
    def load(self, saved: Mapping[str, Any], rows: Rows) -> None:
        """Writes saved fields, the scene's values where a field was not saved."""

    @abstractmethod
    def own_rows(self, field: str) -> Array:
        """Gives every world its own row of a field; returns them, (N, size)."""

    @abstractmethod
    def derive(self, rows: Rows) -> bool:
        """Derives what follows from masses and sizes; returns whether there was anything to do."""

    def read(self, binding: Binding) -> Array:
        """Returns what a binding means in every world, (N, k), unscaled."""
        slot, columns = self._slot(binding)
        if slot.field in self._rows:
            return self._rows[slot.field][:, columns]
        shared = self.scene(slot.field)[columns]
        return copy_of(namespace(shared).broadcast_to(shared, (self._worlds, len(slot.columns))))

    def write(self, edits: Sequence[Edit], rows: Rows, count: int) -> bool:
        """Writes edits and what follows; returns whether derived constants changed too."""
        touched: set[tuple[str, int]] = set()
        for binding, values in edits:
            slot, columns = self._slot(binding)
            given = self.given(values, count, len(slot.columns), binding.field) * binding.scale
            if binding.relative:
                given = given * self.scene(slot.field)[columns]
            self._put(slot.field, rows, columns, given)
            touched |= {(slot.field, element) for element in slot.elements or (-1,)}
        for rule in self._rules:
            if not touched.isdisjoint(rule.arguments):
                touched.add(("body_inertia", rule.body))
                causes = (self._element(*where)[rows] for where in rule.arguments)
                columns = self.index(3 * rule.body + np.arange(3))
                self._put("body_inertia", rows, columns, rule.inertia(*causes))
        return any(needs_constants(field) for field, _ in touched) and self.derive(rows)

    def save(self, rows: Rows) -> dict[str, Array]:
        """Returns a copy of every field that differs by world, by name."""
        parts = {name: held[rows] for name, held in self._rows.items()}
        return {n: copy_of(p) for n, p in parts.items()} if isinstance(rows, slice) else parts

    def scene(self, field: str) -> Array:
        """Returns a field as the scene has it, (size,)."""
        if field not in self._scenes:
            self._scenes[field] = self.asarray(template(self._model, field).reshape(-1))
        return self._scenes[field]

    def expand(self, field: str) -> Array:
        """Returns the rows of a field, one per world from now on, (N, size)."""
        if field not in self._rows:
            self._rows[field] = self.own_rows(field)
        return self._rows[field]

    def _slot(self, binding: Binding) -> tuple[Slot, Any]:
        if binding not in self._slots:
            slot = find_slot(self._model, binding)
            self._slots[binding] = slot, self.index(slot.columns)
        return self._slots[binding]

    def _put(self, field: str, rows: Rows, columns: Any, values: Array) -> None:
        held = self.expand(field)
        held[at(rows, columns)] = namespace(held).astype(values, held.dtype, copy=False)

    def _element(self, field: str, element: int) -> Array:
        """Returns one element's part of a field in every world, whether or not it is shared."""
        held, shape = self._rows.get(field), template(self._model, field).shape
        if held is None:
            shared = self.scene(field)
            held = namespace(shared).broadcast_to(shared, (self._worlds, *shared.shape))
        return held.reshape(self._worlds, *shape)[:, element]
