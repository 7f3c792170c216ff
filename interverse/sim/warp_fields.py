"""Model fields of MuJoCo Warp that differ by world, as Torch tensors that share Warp's memory.

A field is shared by all worlds until it is first written; then each world has its own row. What the
compiler derives from masses and sizes is derived again on the device, by `mujoco_warp.set_const`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import mujoco
import numpy as np
import torch

from interverse.core.errors import InvalidValueError
from interverse.scm.variable import Binding
from interverse.sim.elements import Rule, Slot, find_slot, needs_constants, template
from interverse.sim.engine import Edit
from interverse.sim.warp_device import load_warp

Tensor = torch.Tensor
Rows = Any  # an index tensor, or a slice for every world

# What `set_const` writes: rows of their own as soon as one of their causes has them.
_DERIVED = (
    "actuator_acc0",
    "body_invweight0",
    "body_subtreemass",
    "dof_invweight0",
    "geom_aabb",
    "geom_rbound",
)


@final
class WarpFields:
    """The per-world model fields of a MuJoCo Warp model."""

    def __init__(self, model: mujoco.MjModel, device_model: Any, data: Any) -> None:
        self._model, self._device_model, self._data = model, device_model, data
        self._worlds = int(data.nworld)
        self._where = wp_to_torch(data.qpos).device
        self._rules: tuple[Rule, ...] = ()
        self._slots: dict[Binding, tuple[Slot, Tensor]] = {}
        self._rows: dict[str, Tensor] = {}  # (N, size) of each field that differs by world
        self._shared: dict[str, Tensor] = {}  # (size,) as the scene has it
        self.expanded: Callable[[], None] = lambda: None  # called when a field moves in memory

    def follow(self, rules: Sequence[Rule]) -> None:
        """Takes the scene's rules of inertia."""
        self._rules = tuple(rules)

    def read(self, binding: Binding) -> Tensor:
        """Returns what a binding means in every world, (N, k), unscaled."""
        slot, columns = self._slot(binding)
        if slot.field in self._rows:
            return self._rows[slot.field][:, columns]
        return self._scene(slot.field)[columns].expand(self._worlds, -1).clone()

    def write(self, edits: Sequence[Edit], rows: Rows, count: int) -> bool:
        """Writes edits and what follows; returns whether derived constants changed too."""
        touched = set()
        for binding, values in edits:
            slot, columns = self._slot(binding)
            given = as_tensor_rows(values, (count, len(slot.columns)), binding.field, self._where)
            given = given * binding.scale
            if binding.relative:
                given = given * self._scene(slot.field)[columns]
            self._put(slot.field, rows, columns, given)
            touched.add((slot.field, slot.element))
        for rule in self._rules:
            if not touched.isdisjoint(rule.arguments):
                touched.add(("body_inertia", rule.body))
                causes = (self._element(*where)[rows] for where in rule.arguments)
                columns = torch.arange(3, device=self._where) + 3 * rule.body
                self._put("body_inertia", rows, columns, rule.inertia(*causes))
        if not any(needs_constants(field) for field, _ in touched):
            return False
        self._derive()
        return True

    def save(self, rows: Rows) -> dict[str, Tensor]:
        """Returns a copy of every field that differs by world, by name."""
        return {name: held[rows].clone() for name, held in self._rows.items()}

    def load(self, saved: Mapping[str, Any], rows: Rows) -> None:
        """Writes saved fields, the scene's values where a field was not saved."""
        for name in saved:
            self._expand(name)
        for name, held in self._rows.items():
            given = saved.get(name)
            if given is None:
                held[rows] = self._scene(name)
            else:
                held[rows] = _tensor(given, self._where)
        if any(needs_constants(name) for name in self._rows):
            self._derive()

    def _slot(self, binding: Binding) -> tuple[Slot, Tensor]:
        if binding not in self._slots:
            slot = find_slot(self._model, binding)
            columns = torch.as_tensor(slot.columns, device=self._where)
            self._slots[binding] = slot, columns
        return self._slots[binding]

    def _scene(self, field: str) -> Tensor:
        if field not in self._shared:
            flat = np.asarray(template(self._model, field), dtype=np.float32).reshape(-1)
            self._shared[field] = torch.as_tensor(flat, device=self._where)
        return self._shared[field]

    def _put(self, field: str, rows: Rows, columns: Tensor, values: Tensor) -> None:
        held = self._expand(field)
        values = values.to(held.dtype)  # texture numbers are whole
        if isinstance(rows, slice):
            held[:, columns] = values
        else:
            held[rows[:, None], columns] = values

    def _expand(self, field: str) -> Tensor:
        """Returns the rows of a field, one per world from now on."""
        if field not in self._rows:
            names = (field, *_DERIVED) if needs_constants(field) else (field,)
            for name in names:
                held = self._own_rows(name)
                if name == field:
                    self._rows[field] = held
            self.expanded()
        return self._rows[field]

    def _own_rows(self, field: str) -> Tensor:
        """Gives every world its own row of a field of Warp's model; returns them, (N, size)."""
        warp, _ = load_warp()
        owner, name = self._device_model, field
        if field.startswith("opt."):
            owner, name = self._device_model.opt, field.removeprefix("opt.")
        held = getattr(owner, name)
        if held.shape[0] != self._worlds:
            values = held.numpy()
            repeated = np.ascontiguousarray(np.repeat(values[:1], self._worlds, axis=0))
            held = warp.array(repeated, dtype=held.dtype, device=held.device)
            held._is_batched = True
            vars(owner)[name] = held
        return wp_to_torch(held).reshape(self._worlds, -1)

    def _element(self, field: str, element: int) -> Tensor:
        """Returns one element's part of a field in every world, whether or not it is shared."""
        shape = template(self._model, field).shape
        flat = self._rows.get(field)
        if flat is None:
            flat = self._scene(field).expand(self._worlds, -1)
        return flat.reshape(self._worlds, *shape)[:, element]

    def _derive(self) -> None:
        """Derives in every world what follows from masses and sizes; others come out the same."""
        warp, mujoco_warp = load_warp()
        with warp.ScopedDevice(self._data.qpos.device):
            mujoco_warp.set_const(self._device_model, self._data, restore=False)


def wp_to_torch(array: Any) -> Tensor:
    """Returns a Torch tensor that shares a Warp array's memory."""
    warp, _ = load_warp()
    tensor: Tensor = warp.to_torch(array, requires_grad=False)
    return tensor


def as_tensor_rows(values: Any, shape: tuple[int, int], name: str, where: torch.device) -> Tensor:
    """Returns values as float32 (n, width), or as (n, 1) to broadcast; other widths raise."""
    count, width = shape
    if count == 0:
        return torch.empty((0, width), device=where)
    rows = _tensor(values, where).reshape(count, -1)
    if rows.shape[1] not in (1, width):
        raise InvalidValueError(
            f"{name} has {rows.shape[1]} values a world", allowed=f"{width} or 1"
        )
    return rows


def _tensor(values: Any, where: torch.device) -> Tensor:
    if not isinstance(values, torch.Tensor):
        values = torch.as_tensor(np.asarray(values))
    return values.to(device=where, dtype=torch.float32)
