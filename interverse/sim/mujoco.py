"""The MuJoCo 4 engine: N worlds of one model on `mujoco.batch.Batch`, on all cores.

Model fields are shared until first written, then per world. State fields are read straight from
the batch's rows; derived ones (places of links, sensors) are brought up to date when read, or
within the step once somebody has read them. Results do not depend on threads or on who else is in
the batch. The file is longer than most: it is the whole of one simulator.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, final

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from numpy.typing import NDArray

from interverse.core.arrays import Array, as_rows, batch_ids, cross, giver, inverse, rotate, unit
from interverse.core.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.scm.variable import Binding
from interverse.sim.elements import (
    Bodies,
    Columns,
    element_id,
    element_ids,
    element_names,
    find_bodies,
    find_rule,
)
from interverse.sim.engine import Edit, Engine, Index, Names, Picture, Scene, SimulationError, State
from interverse.sim.fields import Fields
from interverse.sim.render import Camera
from interverse.sim.shapes import Shape, Shapes

FloatArray = NDArray[np.float64]

_VEL, _ACC = int(mujoco.mjtStage.mjSTAGE_VEL), int(mujoco.mjtStage.mjSTAGE_ACC)
_NONE = int(mujoco.mjtStage.mjSTAGE_NONE)
_PHYSICS, _MODEL = "physics", "model/"  # names in a saved state
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
_XYZW, _WXYZ = [1, 2, 3, 0], [3, 0, 1, 2]
_LIVE = ("act", "ctrl", "mocap_pos", "mocap_quat", "qfrc_applied", "qpos", "qvel", "xfrc_applied")


@final
class MujocoEngine(Engine):
    """N worlds of a scene in MuJoCo on the CPU."""

    def __init__(
        self, scene: Scene, *, num_worlds: int, device: str = "cpu", threads: int = 0
    ) -> None:
        self.model = _compile(scene.model)
        self.num_worlds = num_worlds
        self.timestep = float(self.model.opt.timestep)
        self._batch = mujoco_batch.Batch(self.model, num_worlds, threads)
        self._give = giver(device)
        rules = [find_rule(self.model, rule) for rule in scene.inertia]
        self._fields = Fields(self.model, self._batch, rules)
        self._ids: dict[tuple[str, tuple[str, ...]], Columns] = {}
        self._known_joints: dict[tuple[str, ...], tuple[Columns, Columns]] = {}
        self._known_bodies: dict[tuple[str, ...], Bodies] = {}
        self._outputs: dict[str, NDArray[Any]] = {}  # derived fields that somebody reads
        self._stage = _NONE  # up to which they are computed
        self._stale = np.zeros(num_worlds, dtype=bool)  # worlds where they are out of date
        self._before = np.empty_like(self._batch.state)
        bind = self._batch.bind
        self._qpos, self._qvel, self._ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self._forces = bind("xfrc_applied")
        self._mocap_pos, self._mocap_quat = bind("mocap_pos"), bind("mocap_quat")
        self._camera: Camera | None = None
        self._seen: tuple[Shapes, mujoco.MjModel, mujoco.MjData] | None = None

    # ------------------------------------------------------------------ the model

    def write(self, edits: Sequence[Edit], worlds: Index) -> None:
        """Edits model fields of some worlds, then re-derives all that follows from them once."""
        derived = self._fields.write(edits, worlds)
        self._out_of_date(worlds, _VEL if derived else _ACC)

    def field(self, binding: Binding) -> Array:
        """Returns a model field as the simulator holds it, (N, k), unscaled."""
        return self._give(self._fields.read(binding))

    # ---------------------------------------------------------------------- state

    def reset(self, worlds: Index) -> None:
        """Puts state and model fields of some worlds back to the scene's."""
        self._fields.load({}, worlds)
        self._batch.reset(batch_ids(worlds, self.num_worlds), stage=_NONE)
        self._out_of_date(worlds, _VEL)

    def save(self, worlds: Index) -> State:
        """Returns a copy of all that makes later steps of these worlds what they are."""
        fields = {_MODEL + name: rows for name, rows in self._fields.save(worlds).items()}
        return {_PHYSICS: self._batch.state[worlds], **fields}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds, whichever engine of this scene saved them."""
        physics = np.asarray(state[_PHYSICS])
        if physics.shape != (len(worlds), self._batch.nstate):
            raise InvalidValueError(
                explain(
                    f"saved physics has shape {physics.shape}",
                    allowed=f"{(len(worlds), self._batch.nstate)}",
                    fix="Load what an engine of the same scene saved",
                )
            )
        fields = {n.removeprefix(_MODEL): v for n, v in state.items() if n.startswith(_MODEL)}
        self._fields.load(fields, worlds)
        self._batch.state[worlds] = physics
        self._out_of_date(worlds, _VEL)

    def _out_of_date(self, worlds: Index, stage: int) -> None:
        if stage <= self._stage:
            self._stale[worlds] = True

    # ----------------------------------------------------------------------- time

    def step(
        self, worlds: Index, substeps: int = 1, before: Callable[[], None] | None = None
    ) -> None:
        """Advances some worlds; raises SimulationError and changes nothing if one breaks down."""
        ids = batch_ids(worlds, self.num_worlds)
        np.copyto(self._before, self._batch.state)
        try:
            if before is None:
                self._advance(ids, substeps)
            else:
                for _ in range(substeps):
                    before()
                    self._advance(ids, 1)
        except mujoco_batch.SimulationError as error:
            self._broke_down(error.ids, str(error))
        if self._batch.warning.any():
            counts = self._batch.warning[:, :, 1]
            kinds = [mujoco.mjtWarning(k).name for k in np.flatnonzero(counts.any(axis=0))]
            self._broke_down(np.flatnonzero(counts.any(axis=1)), ", ".join(kinds))

    def _advance(self, ids: NDArray[np.int32] | None, substeps: int) -> None:
        self._batch.step(ids, substeps, self._stage)
        self._stale[slice(None) if ids is None else ids] = False

    def _broke_down(self, worlds: NDArray[Any], problem: str) -> NoReturn:
        np.copyto(self._batch.state, self._before)
        self._batch.warning[:] = 0
        self._stale[:] = True
        shown = ", ".join(str(i) for i in worlds[:8].tolist())
        more = f" and {len(worlds) - 8} more" if len(worlds) > 8 else ""
        raise SimulationError(
            explain(
                f"the physics of world {shown}{more} broke down: {problem}",
                fix="Every world is as it was before the step. Check forces, masses and velocities",
            ),
            worlds.tolist(),
        )

    # -------------------------------------------------------------------- reading

    def asarray(self, values: Any) -> Array:
        """Returns values as an array of this engine's kind."""
        return self._give(np.asarray(values))

    def positions(self, bodies: Names) -> Array:
        """Returns the places of body frames, (N, bodies, 3)."""
        found = self._bodies(bodies)
        if found.qpos is not None:
            return self._give(self._qpos[:, found.qpos[:, None] + np.arange(3)])
        if found.mocap is not None:
            return self._give(self._mocap_pos[:, found.mocap])
        return self._give(self._output("xpos", _VEL)[:, found.ids])

    def orientations(self, bodies: Names) -> Array:
        """Returns the rotations of body frames, (N, bodies, 4)."""
        return self._give(self._orientations(bodies))

    def _orientations(self, bodies: Names) -> FloatArray:
        found = self._bodies(bodies)
        if found.qpos is not None:
            return self._qpos[:, found.qpos[:, None] + 3 + np.array(_XYZW)]
        if found.mocap is not None:
            return self._mocap_quat[:, found.mocap][..., _XYZW]
        return self._output("xquat", _VEL)[:, found.ids][..., _XYZW]

    def velocities(
        self, bodies: Names, at: Literal["frame", "mass"] = "frame"
    ) -> tuple[Array, Array]:
        """Returns linear and angular velocities, (N, bodies, 3) each."""
        found = self._bodies(bodies)
        ids = found.ids
        if found.qvel is not None and (at == "frame" or found.centred):
            start = found.qvel[:, None] + np.arange(3)
            angular = rotate(self._orientations(bodies), self._qvel[:, start + 3])
            return self._give(self._qvel[:, start]), self._give(angular)
        spatial = self._output("cvel", _VEL)[:, ids]
        centre = self._output("subtree_com", _VEL)[:, self.model.body_rootid[ids]]
        point = self._output("xpos" if at == "frame" else "xipos", _VEL)[:, ids]
        angular, linear = spatial[..., :3], spatial[..., 3:]
        linear = linear + cross(angular, point - centre)
        return self._give(linear), self._give(np.array(angular))

    def joint_positions(self, joints: Names) -> Array:
        """Returns positions of hinges and slides, (N, joints)."""
        return self._give(self._qpos[:, self._joints(joints)[0]])

    def joint_velocities(self, joints: Names) -> Array:
        """Returns velocities of hinges and slides, (N, joints)."""
        return self._give(self._qvel[:, self._joints(joints)[1]])

    def site_positions(self, sites: Names) -> Array:
        """Returns the places of sites, (N, sites, 3)."""
        return self._give(self._output("site_xpos", _VEL)[:, self._named("site", sites)])

    def sensor(self, name: str) -> Array:
        """Returns a sensor's reading at the present state, (N, dim)."""
        index = self._named("sensor", (name,))[0]
        start, width = self.model.sensor_adr[index], self.model.sensor_dim[index]
        stage = max(_VEL, int(self.model.sensor_needstage[index]))
        return self._give(np.array(self._output("sensordata", stage)[:, start : start + width]))

    def _output(self, field: str, stage: int) -> NDArray[Any]:
        """Returns a derived field of every world at the present state."""
        if field not in self._outputs or stage > self._stage:
            self._outputs[field] = self._batch.bind(field)
            self._stage = max(self._stage, stage)
            self._stale[:] = True
        if self._stale.any():
            stale = batch_ids(np.flatnonzero(self._stale), self.num_worlds)
            self._batch.forward(stale, stage=self._stage)
            self._stale[:] = False
        return self._outputs[field]

    def _named(self, kind: str, names: Names) -> Columns:
        key = (kind, tuple(names))
        if key not in self._ids:
            self._ids[key] = element_ids(self.model, kind, names)
        return self._ids[key]

    def _bodies(self, bodies: Names) -> Bodies:
        key = tuple(bodies)
        if key not in self._known_bodies:
            self._known_bodies[key] = find_bodies(self.model, self._named("body", key))
        return self._known_bodies[key]

    def _joints(self, joints: Names) -> tuple[Columns, Columns]:
        """Returns the columns of hinges and slides among positions and among velocities."""
        key = tuple(joints)
        if key not in self._known_joints:
            ids = self._named("joint", key)
            many = np.isin(self.model.jnt_type[ids], (_FREE, _BALL))
            if np.any(many):
                raise InvalidValueError(
                    explain(
                        f"joint {key[int(np.argmax(many))]!r} has several coordinates",
                        allowed="hinges and slides",
                        fix="Speak of its body: positions, orientations, velocities, set_pose",
                    )
                )
            self._known_joints[key] = self.model.jnt_qposadr[ids], self.model.jnt_dofadr[ids]
        return self._known_joints[key]

    # -------------------------------------------------------------------- writing

    def set_pose(
        self,
        body: str,
        worlds: Index,
        *,
        position: Array | None = None,
        orientation: Array | None = None,
    ) -> None:
        """Moves a free or a mocap body; what is None stays."""
        found = self._bodies((body,))
        free, mocap = found.qpos, found.mocap
        if free is None and mocap is None:
            raise InvalidValueError(
                explain(f"body {body!r} cannot be placed", allowed="free and mocap bodies")
            )
        if position is not None:
            rows = as_rows(position, len(worlds), 3, "position")
            if free is not None:
                self._qpos[worlds[:, None], free + np.arange(3)] = rows
            else:
                self._mocap_pos[worlds, mocap] = rows
        if orientation is not None:
            rows = unit(as_rows(orientation, len(worlds), 4, "orientation"))[:, _WXYZ]
            if free is not None:
                self._qpos[worlds[:, None], free + 3 + np.arange(4)] = rows
            else:
                self._mocap_quat[worlds, mocap] = rows
        self._out_of_date(worlds, _VEL)

    def set_velocity(
        self,
        body: str,
        worlds: Index,
        *,
        linear: Array | None = None,
        angular: Array | None = None,
    ) -> None:
        """Sets the velocity of a free body; what is None stays."""
        start = self._bodies((body,)).qvel
        if start is None:
            raise InvalidValueError(
                explain(f"the velocity of body {body!r} cannot be set", allowed="free bodies")
            )
        if linear is not None:
            rows = as_rows(linear, len(worlds), 3, "linear velocity")
            self._qvel[worlds[:, None], start + np.arange(3)] = rows
        if angular is not None:  # MuJoCo keeps it in the body's frame
            rows = as_rows(angular, len(worlds), 3, "angular velocity")
            turn = inverse(self._orientations((body,))[worlds, 0])
            self._qvel[worlds[:, None], start + 3 + np.arange(3)] = rotate(turn, rows)
        self._out_of_date(worlds, _VEL)

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
            rows = as_rows(position, len(worlds), len(qpos), "joint position")
            self._qpos[worlds[:, None], qpos] = rows
        if velocity is not None:
            rows = as_rows(velocity, len(worlds), len(qvel), "joint velocity")
            self._qvel[worlds[:, None], qvel] = rows
        self._out_of_date(worlds, _VEL)

    def set_controls(self, actuators: Names, values: Array, worlds: Index) -> None:
        """Sets actuator inputs, (n, actuators); they hold until set again."""
        ids = self._named("actuator", actuators)
        self._ctrl[worlds[:, None], ids] = as_rows(values, len(worlds), len(ids), "control")
        self._out_of_date(worlds, _ACC)

    def set_forces(
        self, bodies: Names, worlds: Index, *, force: Array, torque: Array | None = None
    ) -> None:
        """Sets forces at centres of mass, (n, bodies, 3), and torques, until set again."""
        ids = self._named("body", bodies)
        where = (worlds[:, None], ids)
        self._forces[(*where, slice(0, 3))] = np.asarray(force)
        if torque is not None:
            self._forces[(*where, slice(3, 6))] = np.asarray(torque)
        self._out_of_date(worlds, _ACC)

    # ------------------------------------------------------------------ raw state

    def live(self, field: str) -> Array:
        """Returns a state field of every world, (N, ...), to read and to write."""
        if field not in _LIVE:
            raise UnknownNameError(unknown("state field", field, _LIVE))
        return self._give(self._batch.bind(field))

    def wrote(self, worlds: Index) -> None:
        """Says that live fields of some worlds were written."""
        self._out_of_date(worlds, _VEL)

    # ------------------------------------------------------------------- pictures

    def picture(
        self, world: int, *, camera: str, size: tuple[int, int], kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns what a camera sees of one world; size is (rows, columns)."""
        element_id(self.model, "camera", camera)
        if self._camera is None:
            self._camera = Camera(self.model)
        self._batch.get_model(world, self._camera.model)
        self._batch.get_data(world, self._camera.data)
        return self._camera.picture(camera, size, kind)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns what can be seen of one world, as solids; needs no GL."""
        if self._seen is None:
            self._seen = Shapes(self.model), copy.copy(self.model), mujoco.MjData(self.model)
        shapes, model, data = self._seen
        self._batch.get_model(world, model)
        self._batch.get_data(world, data)
        mujoco.mj_forward(model, data)
        return shapes.read(model, data)

    def geom_names(self) -> tuple[str, ...]:
        """Returns the geoms' names in the order of their segmentation index."""
        return element_names(self.model, "geom")

    def close(self) -> None:
        """Releases GL contexts."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None


def _compile(model: Any) -> mujoco.MjModel:
    if isinstance(model, mujoco.MjModel):
        return model
    if isinstance(model, mujoco.MjSpec):
        return model.compile()
    return mujoco.MjModel.from_xml_string(model)
