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

On a GPU the substep is one recorded CUDA graph. The file is longer than most: it is the whole of
one simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.scm.variable import Binding
from interverse.sim.elements import compiled, find_rule
from interverse.sim.engine import CapacityError, Edit, Engine, Index, Names, Picture, Scene, State
from interverse.sim.render import Camera
from interverse.sim.shapes import Shape, Shapes
from interverse.sim.warp_device import find_device, load_warp, quiet
from interverse.sim.warp_fields import WarpFields, as_tensor_rows, wp_to_torch
from interverse.sim.warp_render import WarpRenderer

Tensor = torch.Tensor

_CHECK_EVERY = 256  # steps between looks at the overflow flags, which cost a host round trip
_PHYSICS, _MODEL = "physics", "model/"  # names in a saved state, as the CPU engine has them
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
_LIVE = ("act", "ctrl", "mocap_pos", "mocap_quat", "qfrc_applied", "qpos", "qvel", "xfrc_applied")
_MOVED = ("time", "qpos", "qvel", "act", "qacc_warmstart")  # what a step changes


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
        self._fields = WarpFields(self.model, self._warp_model, self._data)
        self._fields.follow([find_rule(self.model, rule) for rule in scene.inertia])
        self._fields.expanded = self._forget_graph
        self._graph: Any = None
        self._stale = True  # whether derived readings are out of date
        self._steps = 0
        self._every = _CHECK_EVERY if self._device.is_cuda else 1
        self.noted: dict[str, int] = {}  # worlds and looks at which a lesser flag was set
        self.diverged = torch.zeros(num_worlds, dtype=torch.bool, device=self._where)
        self._overflow = wp_to_torch(self._data.overflow)
        self._overflowed = torch.zeros_like(self._overflow)
        self._start = {name: part[:1].clone() for name, part in self._state.items()}
        self._columns: dict[Any, Tensor] = {}
        self._camera: Camera | None = None
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

    # ------------------------------------------------------------------ the model

    def write(self, edits: Sequence[Edit], worlds: Index) -> None:
        """Edits model fields of some worlds, then re-derives all that follows from them once."""
        self._fields.write(edits, self._rows(worlds), len(worlds))
        self._stale = True

    def field(self, binding: Binding) -> Array:
        """Returns a model field as the simulator holds it, (N, k), unscaled."""
        return self._fields.read(binding)

    # ---------------------------------------------------------------------- state

    def reset(self, worlds: Index) -> None:
        """Puts state and model fields of some worlds back to the scene's."""
        rows = self._rows(worlds)
        self._fields.load({}, rows)
        for name, part in self._state.items():
            part[rows] = self._start[name]
        self.diverged[rows] = False
        self._stale = True

    def save(self, worlds: Index) -> State:
        """Returns a copy of all that makes later steps of these worlds what they are."""
        rows = self._rows(worlds)
        size = mujoco.mj_stateSize(self.model, _SIGNATURE)
        physics = torch.zeros((len(worlds), size), device=self._where)
        for name, columns in self._layout().items():
            physics[:, columns] = self._state[name][rows].reshape(len(worlds), -1)
        fields = {_MODEL + name: held for name, held in self._fields.save(rows).items()}
        return {_PHYSICS: physics, **fields}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds, whichever engine of this scene saved them."""
        rows, size = self._rows(worlds), mujoco.mj_stateSize(self.model, _SIGNATURE)
        physics = torch.as_tensor(state[_PHYSICS]).to(self._where, torch.float32)
        if tuple(physics.shape) != (len(worlds), size):
            raise InvalidValueError(
                f"saved physics has shape {tuple(physics.shape)}",
                allowed=f"{(len(worlds), size)}",
                fix="Load what an engine of the same scene saved",
            )
        fields = {n.removeprefix(_MODEL): v for n, v in state.items() if n.startswith(_MODEL)}
        self._fields.load(fields, rows)
        for name, columns in self._layout().items():
            part = self._state[name]
            part[rows] = physics[:, columns].reshape(len(worlds), *part.shape[1:])
        self.diverged[rows] = False
        self._stale = True

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

    def positions(self, bodies: Names) -> Array:
        """Returns the places of body frames, (N, bodies, 3)."""
        return self._output("xpos")[:, self._column(self._named("body", bodies))]

    def joint_positions(self, joints: Names) -> Array:
        """Returns positions of hinges and slides, (N, joints)."""
        return self._state["qpos"][:, self._column(self._joints(joints)[0])]

    def joint_velocities(self, joints: Names) -> Array:
        """Returns velocities of hinges and slides, (N, joints)."""
        return self._state["qvel"][:, self._column(self._joints(joints)[1])]

    def sensor(self, name: str) -> Array:
        """Returns a sensor's reading at the present state, (N, dim)."""
        index = self._named("sensor", (name,))[0]
        start, width = self.model.sensor_adr[index], self.model.sensor_dim[index]
        return self._output("sensordata")[:, start : start + width].clone()

    def _output(self, field: str) -> Tensor:
        """Returns a derived field of every world at the present state."""
        if self._stale:
            warp, mujoco_warp = load_warp()
            warmstart = self._state["qacc_warmstart"].clone()
            with quiet(), warp.ScopedDevice(self._device):
                mujoco_warp.forward(self._warp_model, self._data)
            self._state["qacc_warmstart"].copy_(warmstart)
            self._stale = False
        return wp_to_torch(getattr(self._data, field))

    def _column(self, ids: Any) -> Tensor:
        key = tuple(np.asarray(ids).tolist())
        if key not in self._columns:
            self._columns[key] = torch.as_tensor(np.asarray(ids, np.int64), device=self._where)
        return self._columns[key]

    # -------------------------------------------------------------------- writing

    def set_joints(
        self,
        joints: Names,
        worlds: Index,
        *,
        position: Array | None = None,
        velocity: Array | None = None,
    ) -> None:
        """Sets hinges and slides, (n, joints); what is None stays."""
        qpos, qvel = self._joints(joints)
        if position is not None:
            self._write_columns("qpos", qpos, position, worlds, "joint position")
        if velocity is not None:
            self._write_columns("qvel", qvel, velocity, worlds, "joint velocity")
        self._stale = True

    def set_controls(self, actuators: Names, values: Array, worlds: Index) -> None:
        """Sets actuator inputs, (n, actuators); they hold until set again."""
        self._write_columns("ctrl", self._named("actuator", actuators), values, worlds, "control")
        self._stale = True

    def _write_columns(self, field: str, ids: Any, values: Array, worlds: Index, name: str) -> None:
        rows, columns = self._rows(worlds), self._column(ids)
        given = as_tensor_rows(values, (len(worlds), len(ids)), name, self._where)
        where = (rows, columns) if isinstance(rows, slice) else (rows[:, None], columns)
        self._state[field][where] = given

    def set_forces(self, bodies: Names, worlds: Index, *, force: Array) -> None:
        """Sets forces at centres of mass, (n, bodies, 3); they hold until set again."""
        ids, rows = self._named("body", bodies), self._rows(worlds)
        flat = as_tensor_rows(force, (len(worlds), 3 * len(ids)), "force", self._where)
        given = flat.reshape(len(worlds), len(ids), 3)
        for k, body in enumerate(ids.tolist()):
            self._state["xfrc_applied"][rows, body, :3] = given[:, k]
        self._stale = True

    # ------------------------------------------------------------------ raw state

    def live(self, field: str) -> Array:
        """Returns a state field of every world, (N, ...), to read and to write."""
        if field not in _LIVE:
            raise UnknownNameError(unknown("state field", field, _LIVE))
        return self._state[field]

    def wrote(self, worlds: Index) -> None:
        """Says that live fields of some worlds were written."""
        self._stale = True

    # ------------------------------------------------------------------- pictures

    def picture(
        self, world: int, *, camera: str, size: tuple[int, int], kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns what a camera sees of one world, drawn on the host; size is (rows, columns)."""
        if self._camera is None:
            self._camera = Camera(self.model)
        self._to_host(world, self._camera.model, self._camera.data)
        return self._camera.picture(camera, size, kind)

    def pictures(self, cameras: Names, size: int) -> Tensor:
        """Returns what cameras see of every world, uint8 (N, cameras, size, size, 3)."""
        key = (*cameras, size)
        if key not in self._renderers:
            self._renderers[key] = WarpRenderer(self.model, self._data, cameras, (size, size))
        return self._renderers[key].draw(self._warp_model, self._data)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns what can be seen of one world, as solids; needs no GL."""
        model = mujoco.MjModel.__copy__(self.model)
        data = mujoco.MjData(model)
        self._to_host(world, model, data)
        return Shapes(self.model).read(model, data)

    def _to_host(self, world: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        state = self.save(np.array([world]))
        for name, rows in state.items():
            if name.startswith(_MODEL):
                field = name.removeprefix(_MODEL)
                owner = model.opt if field.startswith("opt.") else model
                held = getattr(owner, field.removeprefix("opt."))
                held[...] = rows[0].cpu().numpy().reshape(np.shape(held))
        row = state[_PHYSICS][0].cpu().numpy().astype(np.float64)
        mujoco.mj_setState(model, data, row, _SIGNATURE)
        mujoco.mj_forward(model, data)

    def close(self) -> None:
        """Releases GL contexts and the recorded graph; then says what did not fit of late."""
        self._graph = None
        if self._camera is not None:
            self._camera.close()
            self._camera = None
        self.check_capacity()


def _room(model: mujoco.MjModel, scene: Scene) -> tuple[int, int]:
    """Returns how many contacts and constraint rows a world gets room for."""
    free = int(np.sum(model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)))
    contacts = scene.contacts if scene.contacts is not None else 16 + 16 * free
    constraints = scene.constraints if scene.constraints is not None else 4 * contacts
    return contacts, constraints
