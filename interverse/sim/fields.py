"""Model fields of a batch that differ by world: shared until first written, put back at reset.

All writes of an intervention come first; inertia follows by the scene's rules; then MuJoCo
re-derives its constants once, for the worlds concerned, and only if a written field feeds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from interverse.core.arrays import as_rows, batch_ids
from interverse.scm.variable import Binding
from interverse.sim.elements import Rule, Slot, find_slot, needs_constants, template
from interverse.sim.engine import Edit, Index


@final
class Fields:
    """The per-world model fields of a batch."""

    def __init__(self, model: mujoco.MjModel, batch: Batch, rules: Sequence[Rule]) -> None:
        self._model, self._batch, self._rules = model, batch, rules
        self._slots: dict[Binding, Slot] = {}
        self._rows: dict[str, NDArray[Any]] = {}  # (N, size) of each field that differs by world

    def read(self, binding: Binding) -> NDArray[Any]:
        """Returns what a binding means in every world, (N, k), unscaled."""
        slot = self._slot(binding)
        values = self._batch.expanded(slot.field)
        if values is None:
            shared = template(self._model, slot.field).reshape(1, -1)[:, slot.columns]
            return np.repeat(shared, self._batch.nsim, axis=0)
        return values.reshape(self._batch.nsim, -1)[:, slot.columns]

    def write(self, edits: Sequence[Edit], worlds: Index) -> bool:
        """Writes edits and what follows; returns whether derived constants changed too."""
        touched: set[tuple[str, int]] = set()
        for binding, values in edits:
            slot = self._slot(binding)
            rows = as_rows(values, len(worlds), len(slot.columns), binding.field) * binding.scale
            if binding.relative:
                rows = rows * template(self._model, slot.field).reshape(-1)[slot.columns]
            self._expand(slot.field)[worlds[:, None], slot.columns] = rows
            touched |= {(slot.field, element) for element in slot.elements or (-1,)}
        for rule in self._rules:
            if touched & rule.causes:
                touched.add(("body_inertia", rule.body))
                causes = (self._element(*where)[worlds] for where in rule.arguments)
                columns = 3 * rule.body + np.arange(3)
                self._expand("body_inertia")[worlds[:, None], columns] = rule.inertia(*causes)
        if not any(needs_constants(field) for field, _ in touched):
            return False
        return self._rederive(worlds)

    def save(self, worlds: Index) -> dict[str, NDArray[Any]]:
        """Returns a copy of every field that differs by world, by name."""
        return {name: rows[worlds] for name, rows in self._rows.items()}

    def load(self, saved: Mapping[str, Any], worlds: Index) -> bool:
        """Writes saved fields, the model's values where a field was not saved.

        Returns whether derived constants changed too. `load({}, worlds)` undoes every edit.
        """
        for name in saved:
            self._expand(name)
        changed = np.zeros(len(worlds), dtype=bool)
        for name, rows in self._rows.items():
            shared = template(self._model, name).reshape(1, -1)
            new = np.asarray(saved.get(name, shared))
            if needs_constants(name):
                changed |= np.any(rows[worlds] != new, axis=1)
            rows[worlds] = new
        return self._rederive(worlds[changed])

    def _slot(self, binding: Binding) -> Slot:
        if binding not in self._slots:
            self._slots[binding] = find_slot(self._model, binding)
        return self._slots[binding]

    def _expand(self, field: str) -> NDArray[Any]:
        if field not in self._rows:
            self._rows[field] = self._batch.expand(field).reshape(self._batch.nsim, -1)
        return self._rows[field]

    def _element(self, field: str, element: int) -> NDArray[Any]:
        """Returns one element's part of a field in every world, whether or not it is shared."""
        shared, count = template(self._model, field), self._batch.nsim
        if field not in self._rows:
            return np.broadcast_to(shared[element], (count, *shared.shape[1:]))
        return self._rows[field].reshape(count, *shared.shape)[:, element]

    def _rederive(self, worlds: Index) -> bool:
        if len(worlds):
            self._batch.set_const(batch_ids(worlds, self._batch.nsim))
        return len(worlds) > 0
