"""The interface of a simulator: N copies of one scene, edited, stepped and read as arrays.

Every array has a leading world axis. Readers return every world, writers take `worlds`, an index
array, and one row per index. Arrays come out in the engine's kind (NumPy, Torch) and go in as
either; units are SI.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, as_rows, copy_of, namespace, to_numpy
from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    UnknownNameError,
    unknown,
)
from interverse.core.registry import Entry, Registry
from interverse.scm.variable import Binding, Variable
from interverse.sim.inertia import ScaledInertia, Solid

if TYPE_CHECKING:
    from interverse.sim.drawing import Camera
    from interverse.sim.elements import Rule, Slot
    from interverse.sim.shapes import Shape, Shapes

Index = NDArray[np.int64]
Rows = Any  # an index of worlds as a simulator's arrays take it, or a slice for all of them
Names = Sequence[str]
State = dict[str, Array]
Edit = tuple[Binding, Array]  # where, and one row of values per world
Picture = Literal["rgb", "depth", "segmentation"]

PHYSICS, _MODEL = "physics", "model/"  # names in a saved state
LIVE = ("act", "ctrl", "mocap_pos", "mocap_quat", "qfrc_applied", "qpos", "qvel", "xfrc_applied")


class SimulationError(InterverseError, RuntimeError):
    """The physics of some worlds broke down; every world is as it was before the step.

    Attributes:
        worlds: the indices of the worlds concerned.
    """

    def __init__(self, message: str, worlds: Iterable[int]) -> None:
        super().__init__(message)
        self.worlds = tuple(worlds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What an engine is built from: a model, and which inertias follow from mass and size."""

    model: Any
    """MJCF text, a `mujoco.MjSpec` or a `mujoco.MjModel`."""
    inertia: tuple[Solid | ScaledInertia, ...] = ()
    """Bodies whose inertia must follow an edit of their mass or size."""
    contacts: int | None = None
    """Room for contacts, per world on average; GPU engines only. None: by the free bodies."""
    constraints: int | None = None
    """Room for constraint rows in each world; GPU engines only. None: four a contact."""


class CapacityError(InterverseError, RuntimeError):
    """More contacts or constraints than a GPU engine has room for; some were left out."""


class Fields(ABC):
    """The fields of a model that N worlds have. Subclasses are final: one per simulator.

    All writes of an intervention come first; inertia follows by the scene's rules; then what the
    compiler derives from masses and sizes is derived again, once, if a written field feeds it.
    """

    def __init__(self, model: Any, num_worlds: int, rules: Sequence[Rule]) -> None:
        self._model, self._worlds = model, num_worlds
        self._rules = [(rule, self.index(3 * rule.body + np.arange(3))) for rule in rules]
        self._slots: dict[Binding, tuple[Slot, Any]] = {}
        self._rows: dict[str, Array] = {}  # (N, size) of each field that differs by world
        self._scenes: dict[str, Array] = {}  # fields as the scene has them, in their own shape

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
    def put(self, held: Array, rows: Rows, columns: Any, values: Array) -> None:
        """Writes into columns of some rows of an array, (N, size)."""

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
        shared = self.scene(slot.field).reshape(-1)[columns]
        return copy_of(namespace(shared).broadcast_to(shared, (self._worlds, len(slot.columns))))

    def write(self, edits: Sequence[Edit], rows: Rows, count: int) -> bool:
        """Writes edits and what follows; returns whether derived constants changed too."""
        from interverse.sim.elements import needs_constants

        touched: set[tuple[str, int]] = set()
        for binding, values in edits:
            slot, columns = self._slots.get(binding) or self._slot(binding)
            given = self.given(values, count, len(slot.columns), binding.field) * binding.scale
            if binding.relative:
                given = given * self.scene(slot.field).reshape(-1)[columns]
            self.put(self.expand(slot.field), rows, columns, given)
            touched |= {(slot.field, element) for element in slot.elements or (-1,)}
        for rule, columns in self._rules:
            if not touched.isdisjoint(rule.arguments):
                touched.add(("body_inertia", rule.body))
                causes = (self._element(*where)[rows] for where in rule.arguments)
                self.put(self.expand("body_inertia"), rows, columns, rule.inertia(*causes))
        return any(needs_constants(field) for field, _ in touched) and self.derive(rows)

    def save(self, rows: Rows) -> dict[str, Array]:
        """Returns a copy of every field that differs by world, by name."""
        parts = {name: held[rows] for name, held in self._rows.items()}
        return {n: copy_of(p) for n, p in parts.items()} if isinstance(rows, slice) else parts

    def scene(self, field: str) -> Array:
        """Returns a field as the scene has it, in its own shape."""
        if field not in self._scenes:
            from interverse.sim.elements import template

            self._scenes[field] = self.asarray(template(self._model, field))
        return self._scenes[field]

    def expand(self, field: str) -> Array:
        """Returns the rows of a field, one per world from now on, (N, size)."""
        if field not in self._rows:
            self._rows[field] = self.own_rows(field)
        return self._rows[field]

    def _slot(self, binding: Binding) -> tuple[Slot, Any]:
        if binding not in self._slots:
            from interverse.sim.elements import find_slot

            slot = find_slot(self._model, binding)
            self._slots[binding] = slot, self.index(slot.columns)
        return self._slots[binding]

    def _element(self, field: str, element: int) -> Array:
        """Returns one element's part of a field in every world, whether or not it is shared."""
        shared = self.scene(field)
        if field in self._rows:
            return self._rows[field].reshape(self._worlds, *shared.shape)[:, element]
        part = shared[element]
        return namespace(part).broadcast_to(part, (self._worlds, *part.shape))


class Engine(ABC):
    """N copies of one scene. Subclasses are final: one per simulator."""

    num_worlds: int
    timestep: float  # of one substep, s
    model: Any  # the compiled scene
    dtype: str = "float64"  # of the real numbers it computes with

    _fields: Fields
    _state: dict[str, Any]  # the state's fields of every world, (N, ...), as the simulator has them
    _give: Callable[[Any], Array]  # an array of the simulator as this engine's kind
    _camera: Camera | None = None
    _seen: tuple[Shapes, Any, Any] | None = None

    # ------------------------------------------------------------------ the model

    def write(self, edits: Sequence[Edit], worlds: Index) -> None:
        """Edits model fields of some worlds, then re-derives all that follows from them once.

        A row has as many entries as the binding names, or one for all of them.
        """
        derived = self._fields.write(edits, self._rows(worlds), len(worlds))
        self._outdated(worlds, places=derived)

    def put(self, edits: Sequence[Edit], worlds: Index) -> None:
        """Writes what bindings mean into some worlds: model fields and state alike."""
        from interverse.sim.elements import STATE_FIELDS, find_slot

        fields = [edit for edit in edits if edit[0].field not in STATE_FIELDS]
        if fields:
            self.write(fields, worlds)
        if len(fields) == len(edits):
            return
        for binding, values in edits:
            if binding.field in STATE_FIELDS:
                if binding not in self._found:
                    self._found[binding] = find_slot(self.model, binding).columns
                flat = self.live(binding.field).reshape(self.num_worlds, -1)
                rows = self.asarray(values).reshape(len(worlds), -1)
                flat[worlds[:, None], self._found[binding]] = rows
        self.wrote(worlds)

    def put_missing(self, edits: Sequence[Edit], worlds: Index) -> None:
        """Writes state, and what fields of some worlds do not hold already, up to rounding.

        So a world starts with its variables' defaults, whatever its scene was compiled with, and
        fields that agree stay as compiled.
        """
        from interverse.sim.elements import STATE_FIELDS

        self.put(
            [e for e in edits if e[0].field in STATE_FIELDS or not self.holds(*e, worlds)], worlds
        )

    def holds(self, binding: Binding, values: Array, worlds: Index) -> bool:
        """Returns whether a model field of some worlds has these values, up to rounding."""
        from interverse.sim.elements import find_slot, template

        held = to_numpy(self.field(binding))[worlds]
        rows = as_rows(to_numpy(values), len(worlds), held.shape[1], binding.field) * binding.scale
        if binding.relative:
            columns = find_slot(self.model, binding).columns
            rows = rows * template(self.model, binding.field).reshape(-1)[columns]
        return np.allclose(held, rows, rtol=1e-6, atol=1e-9)

    def field(self, binding: Binding) -> Array:
        """Returns a model field as the simulator holds it, (N, k), unscaled."""
        return self._give(self._fields.read(binding))

    # ---------------------------------------------------------------------- state

    @abstractmethod
    def reset(self, worlds: Index) -> None:
        """Puts state and model fields of some worlds back to the scene's."""

    def save(self, worlds: Index) -> State:
        """Returns a copy of all that makes later steps of these worlds what they are."""
        rows = self._rows(worlds)
        fields = {_MODEL + name: part for name, part in self._fields.save(rows).items()}
        return {PHYSICS: self._save_physics(rows, len(worlds)), **fields}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds, whichever engine of this scene saved them."""
        rows, shape = self._rows(worlds), tuple(np.shape(state[PHYSICS]))
        wanted = len(worlds), self._state_size()
        if shape != wanted:
            raise InvalidValueError(
                f"saved physics has shape {shape}",
                allowed=f"{wanted}",
                fix="Load what an engine of the same scene saved",
            )
        fields = {n.removeprefix(_MODEL): v for n, v in state.items() if n.startswith(_MODEL)}
        self._fields.load(fields, rows)
        self._load_physics(state[PHYSICS], rows)
        self._outdated(worlds)

    def live(self, field: str) -> Array:
        """Returns a state field of every world as the simulator holds it, to read and to write.

        It is no copy: for world code that runs in every substep. Layout and conventions are the
        simulator's own. Whoever writes to it between steps says so with `wrote`.
        """
        if field not in LIVE:
            raise UnknownNameError(unknown("state field", field, LIVE))
        return self._give(self._state[field])

    def wrote(self, worlds: Index) -> None:
        """Says that live fields of some worlds were written: what follows from them is outdated."""
        self._outdated(worlds)

    # ----------------------------------------------------------------------- time

    @abstractmethod
    def step(
        self, worlds: Index, substeps: int = 1, before: Callable[[], None] | None = None
    ) -> None:
        """Advances some worlds; raises SimulationError and changes nothing if one breaks down.

        Args:
            worlds: which worlds.
            substeps: how many time steps of the scene.
            before: called before every substep, to set forces that follow the motion.
        """

    def broken(self) -> Array | None:
        """Returns in which worlds, (N,), physics broke down; None where that raises."""
        return None

    def check_capacity(self) -> None:  # noqa: B027 - an engine on the CPU has room for everything
        """Raises CapacityError if something did not fit since the last look."""

    # -------------------------------------------------------------------- reading

    @abstractmethod
    def asarray(self, values: Any) -> Array:
        """Returns values as an array of this engine's kind; real numbers become `dtype`."""

    def positions(self, bodies: Names) -> Array:
        """Returns the places of body frames, (N, bodies, 3)."""
        return self._give(self._output("xpos")[:, self._named("body", bodies)[1]])

    def joint_positions(self, joints: Names) -> Array:
        """Returns positions of hinges and slides, (N, joints)."""
        return self._give(self._state["qpos"][:, self._joints(joints)[0]])

    def joint_velocities(self, joints: Names) -> Array:
        """Returns velocities of hinges and slides, (N, joints)."""
        return self._give(self._state["qvel"][:, self._joints(joints)[1]])

    def sensor(self, name: str) -> Array:
        """Returns a sensor's reading at the present state, (N, dim); contacts are sensors too."""
        number = self._named("sensor", (name,))[0][0]
        start, width = self.model.sensor_adr[number], self.model.sensor_dim[number]
        read = self._output("sensordata", int(self.model.sensor_needstage[number]))
        return self._give(copy_of(read[:, start : start + width]))

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
            self._write("qpos", qpos, position, worlds, "joint position")
        if velocity is not None:
            self._write("qvel", qvel, velocity, worlds, "joint velocity")

    def set_controls(self, actuators: Names, values: Array, worlds: Index) -> None:
        """Sets actuator inputs, (n, actuators); they hold until set again."""
        self._write("ctrl", self._named("actuator", actuators)[1], values, worlds, "control")

    def set_forces(self, bodies: Names, worlds: Index, *, force: Array) -> None:
        """Sets forces at centres of mass, (n, bodies, 3); they hold until set again."""
        numbers, forces = self._named("body", bodies)[0], self._state["xfrc_applied"]
        forces[worlds[:, None], numbers, :3] = self.asarray(force)
        self._outdated(worlds, places=False)

    def _write(self, field: str, columns: Any, values: Array, worlds: Index, name: str) -> None:
        given = self._fields.given(values, len(worlds), len(columns), name)
        flat = self._state[field].reshape(self.num_worlds, -1)
        self._fields.put(flat, self._rows(worlds), columns, given)
        self._outdated(worlds, places=field in ("qpos", "qvel"))

    # ------------------------------------------------------------------- pictures

    def picture(
        self,
        world: int,
        *,
        camera: str,
        size: tuple[int, int],
        kind: Picture = "rgb",
    ) -> NDArray[Any]:
        """Returns what a camera sees of one world, drawn on the host; size is (rows, columns).

        "rgb": uint8 (rows, columns, 3). "depth": float32 (rows, columns), metres. "segmentation":
        int32 (rows, columns), the index of the geom seen, -1 where there is none.
        """
        from interverse.sim.drawing import Camera

        self._named("camera", (camera,))  # an unknown one is told before anything is made
        if self._camera is None:
            self._camera = Camera(self.model)
        self._to_host(world, self._camera.model, self._camera.data)
        return self._camera.picture(camera, size, kind)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns what can be seen of one world, as solids; needs no GL."""
        import mujoco

        from interverse.sim.shapes import Shapes

        if self._seen is None:
            self._seen = Shapes(self.model), copy.copy(self.model), mujoco.MjData(self.model)
        shapes, model, data = self._seen
        self._to_host(world, model, data)
        mujoco.mj_forward(model, data)
        return shapes.read(model, data)

    def close(self) -> None:
        """Releases GL contexts and threads."""
        self._camera = None

    # ---------------------------------------------------------- what a simulator gives

    @abstractmethod
    def _rows(self, worlds: Index) -> Rows:
        """Returns an index of worlds as the simulator's arrays take it."""

    @abstractmethod
    def _output(self, field: str, stage: int = 0) -> Any:
        """Returns a derived field of every world at the present state, computed up to a stage."""

    @abstractmethod
    def _outdated(self, worlds: Index, *, places: bool = True) -> None:
        """Says that derived fields are out of date: those of forces, or of places too."""

    @abstractmethod
    def _state_size(self) -> int:
        """Returns how many numbers of one world integration starts from."""

    @abstractmethod
    def _save_physics(self, rows: Rows, count: int) -> Array:
        """Returns a copy of the numbers that integration starts from, (count, size)."""

    @abstractmethod
    def _load_physics(self, physics: Any, rows: Rows) -> None:
        """Puts saved numbers into some worlds."""

    @abstractmethod
    def _to_host(self, world: int, model: Any, data: Any) -> None:
        """Gives MuJoCo's own model and data the fields and state of one world."""

    @functools.cached_property
    def _found(self) -> dict[Any, Any]:
        """Numbers and columns that were looked up before."""
        return {}

    def _named(self, kind: str, names: Names) -> tuple[NDArray[np.int64], Any]:
        """Returns the numbers of elements of the model by their names, and as columns."""
        key = (kind, tuple(names))
        if key not in self._found:
            from interverse.sim.elements import element_ids

            numbers = element_ids(self.model, kind, names)
            self._found[key] = numbers, self._fields.index(numbers)
        return self._found[key]

    def _joints(self, joints: Names) -> tuple[Any, Any]:
        """Returns the columns of hinges and slides among positions and among velocities."""
        key = ("columns", tuple(joints))
        if key not in self._found:
            from interverse.sim.elements import find_joints

            both = find_joints(self.model, self._named("joint", joints)[0], joints)
            self._found[key] = tuple(self._fields.index(columns) for columns in both)
        return self._found[key]


ENGINES = Registry(
    "device",
    {
        "cpu": Entry("interverse.sim.mujoco:MujocoEngine"),
        "torch": Entry("interverse.sim.mujoco:MujocoEngine"),
        "cuda": Entry("interverse.sim.warp:WarpEngine"),
        "warp": Entry("interverse.sim.warp:WarpEngine"),
    },
)


def make_engine(scene: Scene, *, num_worlds: int, device: str = "cpu", threads: int = 0) -> Engine:
    """Returns the engine of a device.

    "cpu" is MuJoCo with NumPy arrays, "torch" the same with Torch tensors, "cuda" MuJoCo Warp on a
    GPU, "warp" MuJoCo Warp on the CPU, slow and for tests.

    Args:
        scene: what to simulate.
        num_worlds: how many copies.
        device: a name in `ENGINES`, with or without an index ("cuda:1").
        threads: threads of a CPU engine, 0 for every core; they never change a result.

    >>> ball = "<body name='ball'><freejoint/><geom size='0.1'/></body>"
    >>> scene = Scene(model=f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    >>> engine = make_engine(scene, num_worlds=2)
    >>> engine.step(np.arange(2), substeps=10)
    >>> engine.positions(("ball",)).shape
    (2, 1, 3)
    """
    kind: Callable[..., Engine] = ENGINES.load(device.partition(":")[0])
    return kind(scene, num_worlds=num_worlds, device=device, threads=threads)


def edits(variables: Mapping[str, Variable], values: Mapping[str, Array]) -> list[Edit]:
    """Returns the model edits that a set of values means, by the variables' bindings."""
    return [(b, value) for name, value in values.items() for b in variables[name].bindings]
