"""The MuJoCo 4 engine: N worlds of one model on `mujoco.batch.Batch`, on all cores.

Model fields are shared until first written, then per world. State fields are read straight from
the batch's rows; derived ones (places of links, sensors) are brought up to date when read, or
within the step once somebody has read them. Results do not depend on threads or on who else is in
the batch. The file is longer than most: it is the whole of one simulator.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, final

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from numpy.typing import NDArray

from interverse.core.arrays import Array, as_rows, batch_ids, giver
from interverse.core.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.scm.variable import Binding
from interverse.sim.elements import (
    Rule,
    Slot,
    compiled,
    element_id,
    find_rule,
    find_slot,
    needs_constants,
    template,
)
from interverse.sim.engine import Edit, Engine, Index, Names, Picture, Scene, SimulationError, State
from interverse.sim.render import Camera
from interverse.sim.shapes import Shape, Shapes

_VEL, _ACC = int(mujoco.mjtStage.mjSTAGE_VEL), int(mujoco.mjtStage.mjSTAGE_ACC)
_NONE = int(mujoco.mjtStage.mjSTAGE_NONE)
_PHYSICS, _MODEL = "physics", "model/"  # names in a saved state
_LIVE = ("act", "ctrl", "mocap_pos", "mocap_quat", "qfrc_applied", "qpos", "qvel", "xfrc_applied")


@final
class _Fields:
    """The model fields of a batch that differ by world: shared until first written.

    All writes of an intervention come first; inertia follows by the scene's rules; then MuJoCo
    re-derives its constants once, for the worlds concerned, and only if a written field feeds them.
    """

    def __init__(
        self, model: mujoco.MjModel, batch: mujoco_batch.Batch, rules: Sequence[Rule]
    ) -> None:
        self._model, self._batch, self._rules = model, batch, rules
        self._slots: dict[Binding, Slot] = {}
        self._rows: dict[str, NDArray[Any]] = {}  # (N, ...) of each field that differs by world

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
            if not touched.isdisjoint(rule.arguments):
                touched.add(("body_inertia", rule.body))
                causes = (self._element(*where)[worlds] for where in rule.arguments)
                columns = 3 * rule.body + np.arange(3)
                self._expand("body_inertia")[worlds[:, None], columns] = rule.inertia(*causes)
        if not any(needs_constants(field) for field, _ in touched):
            return False
        return self._rederive(worlds)

    def save(self, worlds: Index) -> dict[str, NDArray[Any]]:
        """Returns a copy of every field that differs by world, by name."""
        return {name: self._expand(name)[worlds] for name in self._rows}

    def load(self, saved: Mapping[str, Any], worlds: Index) -> bool:
        """Writes saved fields, the model's values where a field was not saved.

        Returns whether derived constants changed too. `load({}, worlds)` undoes every edit.
        """
        for name in saved:
            self._expand(name)
        changed = np.zeros(len(worlds), dtype=bool)
        for name in self._rows:
            rows = self._expand(name)
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
            self._rows[field] = self._batch.expand(field)
        return self._rows[field].reshape(self._batch.nsim, -1)

    def _element(self, field: str, element: int) -> NDArray[Any]:
        """Returns one element's part of a field in every world, whether or not it is shared."""
        if field in self._rows:
            return self._rows[field][:, element]
        shared = getattr(self._model, field)[element]
        return np.broadcast_to(shared, (self._batch.nsim, *shared.shape))

    def _rederive(self, worlds: Index) -> bool:
        if len(worlds):
            self._batch.set_const(batch_ids(worlds, self._batch.nsim))
        return len(worlds) > 0


@final
class MujocoEngine(Engine):
    """N worlds of a scene in MuJoCo on the CPU."""

    def __init__(
        self, scene: Scene, *, num_worlds: int, device: str = "cpu", threads: int = 0
    ) -> None:
        self.model = compiled(scene.model)
        self.num_worlds = num_worlds
        self.timestep = float(self.model.opt.timestep)
        self._batch = mujoco_batch.Batch(self.model, num_worlds, threads)
        self._give = giver(device)
        rules = [find_rule(self.model, rule) for rule in scene.inertia]
        self._fields = _Fields(self.model, self._batch, rules)
        self._outputs: dict[str, NDArray[Any]] = {}  # derived fields that somebody reads
        self._stage = _NONE  # up to which they are computed
        self._stale = np.zeros(num_worlds, dtype=bool)  # worlds where they are out of date
        self._before = np.empty_like(self._batch.state)
        bind = self._batch.bind
        self._qpos, self._qvel, self._ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self._forces = bind("xfrc_applied")
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
                f"saved physics has shape {physics.shape}",
                allowed=f"{(len(worlds), self._batch.nstate)}",
                fix="Load what an engine of the same scene saved",
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
        rounds = [substeps] if before is None else [1] * substeps
        try:
            for count in rounds:
                if before is not None:
                    before()
                self._batch.step(ids, count, self._stage)
                self._stale[slice(None) if ids is None else ids] = False
        except mujoco_batch.SimulationError as error:
            self._broke_down(error.ids, str(error))
        if self._batch.warning.any():
            counts = self._batch.warning[:, :, 1]
            kinds = [mujoco.mjtWarning(k).name for k in np.flatnonzero(counts.any(axis=0))]
            self._broke_down(np.flatnonzero(counts.any(axis=1)), ", ".join(kinds))

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
        return self._give(self._output("xpos", _VEL)[:, self._named("body", bodies)])

    def joint_positions(self, joints: Names) -> Array:
        """Returns positions of hinges and slides, (N, joints)."""
        return self._give(self._qpos[:, self._joints(joints)[0]])

    def joint_velocities(self, joints: Names) -> Array:
        """Returns velocities of hinges and slides, (N, joints)."""
        return self._give(self._qvel[:, self._joints(joints)[1]])

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

    def set_forces(self, bodies: Names, worlds: Index, *, force: Array) -> None:
        """Sets forces at centres of mass, (n, bodies, 3); they hold until set again."""
        ids = self._named("body", bodies)
        self._forces[worlds[:, None], ids, :3] = np.asarray(force)
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

    def close(self) -> None:
        """Releases GL contexts."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None
