"""The MuJoCo Warp engine: thousands of worlds of one model on a GPU, read as Torch tensors.

State, edits and readings are Torch tensors that share Warp's memory: a step, a reset or an edit
moves nothing to the host. Numbers are float32. Two things differ from the CPU engine:

- A world whose physics breaks down raises nothing. It is put back to where it was before the step,
  at rest, and its entry of `diverged` is set until the world is next reset or loaded.
- There is room for so many contacts and constraint rows (`Scene.contacts`, `Scene.constraints`).
  What does not fit is left out of that step; `CapacityError` says so within `_CHECK_EVERY` steps,
  when an episode ends in a driven world, and when the engine is closed: before any result is out.

Warp has more flags, which raise nothing and are counted in `noted` instead. `ITERATIONS` and
`LS_ITERATIONS`: the solver stopped at its limit, as MuJoCo's own does; forces are a little off.
`EPA_HORIZON`: the depth of one pair of meshes was not found, so that pair has no contact in that
substep. No option of ours gives more room for it, and it was never met in the worlds here.

On a GPU the substep is one recorded CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError, explain
from interverse.sim.elements import Rule, compiled, find_rule, needs_constants
from interverse.sim.engine import PHYSICS, CapacityError, Engine, Fields, Index, Names, Rows, Scene
from interverse.sim.warp_device import find_device, load_warp, quiet, wp_to_torch
from interverse.sim.warp_render import WarpRenderer

Tensor = torch.Tensor

_CHECK_EVERY = 256  # steps between looks at the overflow flags, which cost a host round trip
_SIGNATURE = mujoco.mjtState.mjSTATE_INTEGRATION
# The parts of a saved row, in MuJoCo's order.
_PARTS = (
    ("time", mujoco.mjtState.mjSTATE_TIME),
    ("qpos", mujoco.mjtState.mjSTATE_QPOS),
    ("qvel", mujoco.mjtState.mjSTATE_QVEL),
    ("act", mujoco.mjtState.mjSTATE_ACT),
    ("qacc_warmstart", mujoco.mjtState.mjSTATE_WARMSTART),
    ("ctrl", mujoco.mjtState.mjSTATE_CTRL),
    ("qfrc_applied", mujoco.mjtState.mjSTATE_QFRC_APPLIED),
    ("xfrc_applied", mujoco.mjtState.mjSTATE_XFRC_APPLIED),
    ("mocap_pos", mujoco.mjtState.mjSTATE_MOCAP_POS),
    ("mocap_quat", mujoco.mjtState.mjSTATE_MOCAP_QUAT),
)
_MOVED = ("time", "qpos", "qvel", "act", "qacc_warmstart")  # what a step changes


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
class _WarpFields(Fields):
    """The fields of a MuJoCo Warp model, as tensors that share Warp's memory.

    What the compiler derives from masses and sizes is derived again on the device.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        rules: Sequence[Rule],
        device_model: Any,
        data: Any,
        moved: Callable[[], None],
    ) -> None:
        """Takes both models and the data; `moved` is called when a field moves in memory."""
        self._device_model, self._data, self._moved = device_model, data, moved
        self._where = wp_to_torch(data.qpos).device
        super().__init__(model, int(data.nworld), rules)

    def index(self, numbers: NDArray[np.int64]) -> Tensor:
        """Returns the numbers on the device."""
        return torch.as_tensor(np.asarray(numbers, np.int64), device=self._where)

    def given(self, values: Any, count: int, width: int, name: str) -> Tensor:
        """Returns values as float32 rows."""
        if count == 0:
            return torch.empty((0, width), device=self._where)
        rows = self.asarray(values).reshape(count, -1)
        if rows.shape[1] not in (1, width):
            raise InvalidValueError(
                f"{name} has {rows.shape[1]} values a world", allowed=f"{width} or 1"
            )
        return rows

    def asarray(self, values: Any) -> Tensor:
        """Returns values as float32 on the device."""
        if not isinstance(values, torch.Tensor):
            values = torch.as_tensor(np.asarray(values))
        return values.to(device=self._where, dtype=torch.float32)

    def put(self, held: Tensor, rows: Rows, columns: Tensor, values: Tensor) -> None:
        """Writes into columns of some rows; some fields are whole numbers."""
        where = (rows, columns) if isinstance(rows, slice) else (rows[:, None], columns)
        held[where] = values.to(held.dtype)

    def load(self, saved: Mapping[str, Any], rows: Rows) -> None:
        """Writes saved fields, the scene's values where a field was not saved."""
        for name in saved:
            self.expand(name)
        for name, held in self._rows.items():
            scene = self.scene(name).reshape(-1)
            held[rows] = self.asarray(saved[name]) if name in saved else scene
        if any(needs_constants(name) for name in self._rows):
            self.derive(rows)

    def own_rows(self, field: str) -> Tensor:
        """Gives every world its own row of a field of Warp's model, and of what follows from it."""
        warp, _ = load_warp()
        for name in (*(_DERIVED if needs_constants(field) else ()), field):
            owner = self._device_model.opt if name.startswith("opt.") else self._device_model
            held = getattr(owner, name.removeprefix("opt."))
            if held.shape[0] != self._worlds:
                repeated = np.ascontiguousarray(np.repeat(held.numpy()[:1], self._worlds, axis=0))
                held = warp.array(repeated, dtype=held.dtype, device=held.device)
                held._is_batched = True
                vars(owner)[name.removeprefix("opt.")] = held
        self._moved()
        return wp_to_torch(held).reshape(self._worlds, -1)

    def derive(self, rows: Rows) -> bool:
        """Derives in every world what follows from masses and sizes; others come out the same."""
        warp, mujoco_warp = load_warp()
        with warp.ScopedDevice(self._data.qpos.device):
            mujoco_warp.set_const(self._device_model, self._data, restore=False)
        return True


@final
class WarpEngine(Engine):
    """N worlds of a scene in MuJoCo Warp."""

    dtype = "float32"

    def __init__(
        self, scene: Scene, *, num_worlds: int, device: str = "cuda", threads: int = 0
    ) -> None:
        self._device = find_device(device)
        self.model = compiled(scene.model)
        self.num_worlds = num_worlds
        self.timestep = float(self.model.opt.timestep)
        self._put(scene)
        self._state = {name: wp_to_torch(getattr(self._data, name)) for name, _ in _PARTS}
        self._where = self._state["qpos"].device
        self._give = lambda tensor: tensor
        rules = [find_rule(self.model, rule) for rule in scene.inertia]
        self._fields = _WarpFields(
            self.model, rules, self._warp_model, self._data, self._forget_graph
        )
        self._graph: Any = None
        self._stale = True  # whether derived readings are out of date
        self._steps = 0
        self._every = _CHECK_EVERY if self._device.is_cuda else 1
        self.noted: dict[str, int] = {}  # worlds and looks at which a lesser flag was set
        self.diverged = torch.zeros(num_worlds, dtype=torch.bool, device=self._where)
        self._overflow = wp_to_torch(self._data.overflow)
        self._overflowed = torch.zeros_like(self._overflow)
        self._start = {name: part[:1].clone() for name, part in self._state.items()}
        self._renderers: dict[Any, WarpRenderer] = {}

    def _put(self, scene: Scene) -> None:
        """Puts the model and room for its state on the device."""
        warp, mujoco_warp = load_warp()
        self.contacts, self.constraints = _room(self.model, scene)
        with quiet(), warp.ScopedDevice(self._device):
            try:
                self._warp_model = mujoco_warp.put_model(self.model)
            except NotImplementedError as error:
                raise InvalidValueError(
                    f"MuJoCo Warp cannot run this scene: {error}", fix='Use device="cpu"'
                ) from error
            self._warp_model.opt.warn_overflow = 0  # printed by the device; we raise instead
            self._data = mujoco_warp.make_data(
                self.model,
                nworld=self.num_worlds,
                nconmax=self.contacts,
                njmax=self.constraints,
            )

    def reset(self, worlds: Index) -> None:
        """Puts state and model fields of some worlds back to the scene's."""
        rows = self._rows(worlds)
        self._fields.load({}, rows)
        for name, part in self._state.items():
            part[rows] = self._start[name]
        self.diverged[rows] = False
        self._stale = True

    def _state_size(self) -> int:
        return int(mujoco.mj_stateSize(self.model, _SIGNATURE))

    def _save_physics(self, rows: Any, count: int) -> Tensor:
        physics = torch.zeros((count, self._state_size()), device=self._where)
        for name, columns in self._layout().items():
            physics[:, columns] = self._state[name][rows].reshape(count, -1)
        return physics

    def _load_physics(self, physics: Any, rows: Any) -> None:
        given = torch.as_tensor(physics).to(self._where, torch.float32)
        for name, columns in self._layout().items():
            part = self._state[name]
            part[rows] = given[:, columns].reshape(len(given), *part.shape[1:])
        self.diverged[rows] = False

    def _layout(self) -> dict[str, slice]:
        """Returns where each part of the state lies in a saved row."""
        model, whole = self.model, int(_SIGNATURE)
        out = {}
        for name, bit in _PARTS:
            before = whole & (int(bit) - 1)  # parts come in the order of their bits
            start = mujoco.mj_stateSize(model, before)
            out[name] = slice(start, start + mujoco.mj_stateSize(model, int(bit)))
        return out

    def _rows(self, worlds: Any) -> Any:
        """Returns an index of the device; every world in order is a slice."""
        if isinstance(worlds, torch.Tensor):
            return worlds.to(self._where)
        if len(worlds) == self.num_worlds and np.array_equal(worlds, np.arange(self.num_worlds)):
            return slice(None)
        return torch.as_tensor(np.asarray(worlds, dtype=np.int64), device=self._where)

    # ----------------------------------------------------------------------- time

    def step(
        self, worlds: Index, substeps: int = 1, before: Callable[[], None] | None = None
    ) -> None:
        """Advances some worlds; one that breaks down stays where it was, and is marked."""
        rows, state = self._rows(worlds), self._state
        held = {name: state[name].clone() for name in _MOVED}
        for _ in range(substeps):
            if before is not None:
                before()
            self._substep()
        broken = ~(torch.isfinite(state["qpos"]).all(1) & torch.isfinite(state["qvel"]).all(1))
        if not isinstance(rows, slice):
            others = torch.ones_like(broken)
            others[rows] = False
            self._put_back(held, others)
            broken = broken & ~others
        self._put_back({**held, "qvel": torch.zeros_like(held["qvel"])}, broken)
        state["qacc_warmstart"].nan_to_num_(0.0, 0.0, 0.0)
        self.diverged |= broken
        self._overflowed |= self._overflow
        self._stale = True
        self._steps += 1
        if self._steps % self._every == 0:
            self.check_capacity()

    def _put_back(self, held: dict[str, Tensor], where: Tensor) -> None:
        for name, part in held.items():
            mask = where.reshape(-1, *(1,) * (part.ndim - 1))
            self._state[name].copy_(torch.where(mask, part, self._state[name]))

    def _substep(self) -> None:
        """Advances every world by one time step: a recorded graph on a GPU."""
        warp, mujoco_warp = load_warp()
        if self._graph is not None:
            warp.capture_launch(self._graph)
            return
        with quiet(), warp.ScopedDevice(self._device):
            mujoco_warp.step(self._warp_model, self._data)
            if self._device.is_cuda:  # recorded after a first run, which compiles the kernels
                with warp.ScopedCapture(device=self._device) as capture:
                    mujoco_warp.step(self._warp_model, self._data)
                self._graph = capture.graph

    def broken(self) -> Tensor:
        """Returns in which worlds, (N,), physics broke down since their reset."""
        return self.diverged

    def bare_step(self) -> None:
        """Advances every world by one time step and looks after nothing; for measurements."""
        self._substep()

    def _forget_graph(self) -> None:
        self._graph = None

    def check_capacity(self) -> None:
        """Raises CapacityError if contacts or constraints did not fit since the last look."""
        _, mujoco_warp = load_warp()
        kind = mujoco_warp.OverflowType
        too_many = (
            ("contacts", self.contacts, kind.BROADPHASE | kind.NARROWPHASE | kind.CCD),
            ("constraints", self.constraints, kind.NEFC | kind.NJMAX_NNZ),
        )
        flags = self._overflowed.cpu().numpy().copy()  # for it is cleared at once
        self._overflowed.zero_()
        self._overflow.zero_()
        for lesser in (kind.ITERATIONS, kind.LS_ITERATIONS, kind.EPA_HORIZON):
            if found := int(np.count_nonzero(flags & int(lesser))):
                self.noted[lesser.name] = self.noted.get(lesser.name, 0) + found
        for name, room, bits in too_many:
            worlds = np.flatnonzero(flags & int(bits))
            if len(worlds):
                raise CapacityError(
                    explain(
                        f"{len(worlds)} worlds (world {worlds[0]} first) had more {name} than "
                        f"the {room} a world there is room for",
                        fix=f"Raise {name}, or use fewer objects",
                    )
                )

    # -------------------------------------------------------------------- reading

    def asarray(self, values: Any) -> Array:
        """Returns values as a tensor on this engine's device."""
        tensor = values if isinstance(values, torch.Tensor) else torch.as_tensor(np.array(values))
        real = torch.float32 if tensor.is_floating_point() else tensor.dtype
        return tensor.to(self._where, real)

    def _outdated(self, worlds: Index, *, places: bool = True) -> None:
        self._stale = True

    def _output(self, field: str, stage: int = 0) -> Tensor:
        if self._stale:
            warp, mujoco_warp = load_warp()
            warmstart = self._state["qacc_warmstart"].clone()
            with quiet(), warp.ScopedDevice(self._device):
                mujoco_warp.forward(self._warp_model, self._data)
            self._state["qacc_warmstart"].copy_(warmstart)
            self._stale = False
        return wp_to_torch(getattr(self._data, field))

    def pictures(self, cameras: Names, size: int) -> Tensor:
        """Returns what cameras see of every world, uint8 (N, cameras, size, size, 3)."""
        key = (*cameras, size)
        if key not in self._renderers:
            self._renderers[key] = WarpRenderer(self.model, self._data, cameras, (size, size))
        return self._renderers[key].draw(self._warp_model, self._data)

    def _to_host(self, world: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        state = self.save(np.array([world]))
        for name, rows in state.items():
            if name != PHYSICS:
                field = name.partition("/")[2]
                owner = model.opt if field.startswith("opt.") else model
                held = getattr(owner, field.removeprefix("opt."))
                held[...] = rows[0].cpu().numpy().reshape(np.shape(held))
        row = state[PHYSICS][0].cpu().numpy().astype(np.float64)
        mujoco.mj_setState(model, data, row, _SIGNATURE)

    def close(self) -> None:
        """Releases GL contexts and the recorded graph; then says what did not fit of late."""
        self._graph = None
        super().close()
        self.check_capacity()


def _room(model: mujoco.MjModel, scene: Scene) -> tuple[int, int]:
    """Returns how many contacts and constraint rows a world gets room for."""
    free = int(np.sum(model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)))
    contacts = scene.contacts if scene.contacts is not None else 16 + 16 * free
    constraints = scene.constraints if scene.constraints is not None else 4 * contacts
    return contacts, constraints
