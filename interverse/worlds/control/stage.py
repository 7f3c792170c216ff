"""One control world: dm_control's physics and task, a look, and the pictures of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise
from interverse.scm import Variable
from interverse.sim.drawing import QUALITIES, Drawing, Kind, open_drawing
from interverse.sim.shapes import Shape, Shapes, sky_shape
from interverse.sim.single import SingleWorld, place_cameras, settle
from interverse.worlds.control.distraction import Distraction
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.dynamics import Dynamics
from interverse.worlds.control.options import CONTROL_STEPS, ControlOptions
from interverse.worlds.control.paint import Paint
from interverse.worlds.control.suite import PhysicsError, new_physics, template

KINDS: dict[str, Kind] = {"pixels": "rgb", "depth": "depth", "segmentation": "segmentation"}
# What tasks write into the model where an episode starts: targets and what is hidden.
_TASK_FIELDS = ("geom_pos", "geom_size", "geom_rgba", "site_pos", "site_size", "site_rgba")


Moment = NDArray[np.float64]


@final
class ControlStage:
    """A single world; everything that lasts is in `values`, the physics and the past frames.

    `values` are views of the world's rows in the store: whoever writes there says so by `start`,
    `change` or `load`.
    """

    def __init__(
        self,
        options: ControlOptions,
        looks: Iterable[Variable],
        distraction: Distraction | None,
        thread: int = 0,
    ) -> None:
        """Makes a world that has not started.

        Args:
            options: of the world.
            looks: the variables that are written with the look.
            distraction: what moves at every step, if anything.
            thread: which of the process's threads draws.
        """
        self._options, self._distraction, self._thread = options, distraction, thread
        self._drawn_kinds = tuple(kind for kind in options.kinds if kind in KINDS)
        self.is_bare = not self._drawn_kinds and distraction is None  # nothing but physics
        made = template(options.domain, options.task)
        self._key, self._substeps = made.key, made.substeps
        self.physics, self._task = new_physics(made), deepcopy(made.task)
        self._model, self._data = self.physics.model.ptr, self.physics.data.ptr
        self._single = SingleWorld(self._model, self._data)  # keeps the physics of a mark
        self._mark: Any = ({}, {}, {})  # what it comes back to beside physics and reward
        self._earned = 0.0, 0
        self._warnings = self._data.warning.number  # how often MuJoCo has warned, by kind
        self._silence = bytes(self._warnings.nbytes)
        self._begin(0)  # lets the task write what it always writes
        self._dynamics = Dynamics(self.physics, options.domain)
        self._paint = Paint(self._model, looks)
        self._camera = self.physics.model.name2id(DOMAINS[options.domain].camera, "camera")
        self.values: dict[str, NDArray[Any]] = {}
        self.has_started = False
        self.reward, self.ticks = 0.0, 0
        self._start: tuple[Any, Moment, Moment] | None = None  # the latest: what decided it, where
        self._drawings: dict[Any, Drawing] = {}
        self._shapes: Shapes | None = None
        self._now: dict[str, NDArray[Any]] = {}  # newest frame by kind, once drawn
        self._past: dict[str, list[NDArray[Any]]] = {}  # older frames by kind

    # ---------------------------------------------------------------- episodes

    def start(self) -> None:
        """Begins an episode under the present values."""
        self.has_started = True
        seed = int(self.values["dynamics_seed"])
        dynamics = self._dynamics_values()
        self._dynamics.write(dynamics)
        key = seed, *dynamics.values()
        if self._start is not None and self._start[0] == key:
            _, moment, task = self._start  # a task may simulate for a while until it starts
            self._put_task_fields(task)
            self._single.load(moment)
        else:
            self._begin(seed)
            self._dynamics.rewrite_damping()
            self._start = key, self._single.save(), self._task_fields()
        self._write_look()
        self.reward, self.ticks = 0.0, 0
        self._past = {}

    def _task_fields(self) -> NDArray[np.float64]:
        """Returns what the task has written into the model."""
        fields = (np.asarray(getattr(self._model, name), float) for name in _TASK_FIELDS)
        return np.concatenate([field.ravel() for field in fields])

    def _put_task_fields(self, saved: NDArray[np.float64]) -> None:
        begin = 0
        for name in _TASK_FIELDS:
            field = getattr(self._model, name)
            field[:] = saved[begin : begin + field.size].reshape(field.shape)
            begin += field.size

    def _begin(self, seed: int) -> None:
        self._task.random.seed(seed)
        with self.physics.reset_context():
            self._task.initialize_episode(self.physics)

    def change(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Sets qpos and qvel, where given, beside changed values; consequences follow."""
        moved = self._dynamics.write(self._dynamics_values())
        for name, value in state.items():
            getattr(self._data, name)[:] = value
            moved = True
        if moved:
            settle(self._model, self._data)
        self._write_look()
        if self.ticks == 0:
            self._past = {}  # before the first step nothing has been seen in another way

    def _dynamics_values(self) -> dict[str, float]:
        return {name: float(self.values[name]) for name in self._options.dynamics_names}

    def _write_look(self) -> None:
        self._paint.write(self.values)
        self._dynamics.derive()  # tracking cameras and lamps use copies of their places
        place_cameras(self._model, self._data)
        self._now = {}

    def step(self, action: NDArray[Any], noise: Noise) -> None:
        """Repeats an action for the frame skip, or to the end of the episode; then distracts."""
        for kind in self._drawn_kinds:  # the newest frames are past before time goes on
            self._past[kind] = self.frames(kind)[1:]
        repeats = self.begin()
        for _ in range(repeats):
            self.push(action)
            self.advance()
            self.earn()
        self._now = {}
        if self._distraction is not None:
            for name, value in self._distraction.step(self.values, noise, repeats).items():
                self.values[name][...] = value
            self._write_look()

    def begin(self) -> int:
        """Begins a decision; returns how many control steps it has, each to be made."""
        left, skip = CONTROL_STEPS - self.ticks, self._options.frame_skip
        repeats = min(skip, left) if left > 0 else skip
        self.reward = 0.0
        self.ticks += repeats
        return repeats

    def push(self, action: NDArray[Any]) -> None:
        """First part of a control step: the actuators."""
        self._task.before_step(action, self.physics)

    def advance(self) -> None:
        """Second part; what dm_control's own step does, without its checks' overhead."""
        self._warnings[:] = 0  # MuJoCo counts anew when it gives up on a state: each time is one
        self._single.advance(self._substeps)
        if self._warnings.tobytes() != self._silence:  # faster than the array's own
            raise PhysicsError("MuJoCo warns of a state that it cannot go on from")

    def earn(self) -> None:
        """Last part: the reward."""
        self._task.after_step(self.physics)
        self.reward += float(self._task.get_reward(self.physics))

    def mark(self) -> None:
        """Keeps this moment, to come back to if a step fails."""
        self._single.keep()
        self._earned = self.reward, self.ticks
        if self.is_bare:
            return
        moving = {} if self._distraction is None else self.values
        values = {name: value.copy() for name, value in moving.items()}
        self._mark = self._past.copy(), self._now.copy(), values

    def undo(self) -> None:
        """Goes back to the marked moment of the same episode and values."""
        past, now, values = self._mark
        self._single.restore()
        self.reward, self.ticks = self._earned
        for name, value in values.items():
            self.values[name][...] = value
        self._write_look()
        self._past, self._now = dict(past), dict(now)

    # ------------------------------------------------------------ observations

    def seen(self) -> Mapping[str, Any]:
        """Returns the task's own observation as the suite's code gives it."""
        observation: Mapping[str, Any] = self._task.get_observation(self.physics)
        return observation

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Returns the task's own observation: what the stock suite gives."""
        return {n: np.atleast_1d(np.asarray(part, float)) for n, part in self.seen().items()}

    @property
    def is_drawn(self) -> bool:
        """Whether everything that an observation of this moment shows is drawn."""
        return all(kind in self._now for kind in self._drawn_kinds)

    def draw(self) -> None:
        """Draws what is missing for an observation of this moment."""
        for kind in self._drawn_kinds:
            self._frame(kind)

    def show(self, drawing: Any) -> None:
        """Brings the pictures of the look to what draws it."""
        self._paint.show(self.values, drawing)

    def put_frame(self, picture: NDArray[np.uint8]) -> None:
        """Takes a picture of this moment that was drawn elsewhere."""
        self._now["pixels"] = picture

    def frames(self, kind: str) -> list[NDArray[Any]]:
        """Returns the stack of pictures, the oldest first."""
        now = self._frame(kind)
        past = self._past.setdefault(kind, [now] * (self._options.frame_stack - 1))
        return [*past, now]

    def _frame(self, kind: str) -> NDArray[Any]:
        if kind not in self._now:
            self._now[kind] = self.picture(self._options.size, self._options.quality, KINDS[kind])
        return self._now[kind]

    def picture(
        self,
        size: tuple[int, int],
        quality: str,
        kind: Kind = "rgb",
        *,
        camera: int | None = None,
    ) -> NDArray[Any]:
        """Returns a picture of this moment, (rows, columns[, 3]), through the task's camera."""
        drawing = self._drawings.get((size, quality))
        if drawing is None:
            wanted = QUALITIES[quality]
            drawing = open_drawing(
                self._model, size=size, quality=wanted, key=self._key, thread=self._thread
            )
            self._drawings[size, quality] = drawing
        self._paint.show(self.values, drawing)
        seen_by = self._camera if camera is None else camera
        return drawing.picture(self._model, self._data, seen_by, kind)

    def shapes(self) -> tuple[Shape, ...]:
        """Returns the solids of this moment."""
        if self._shapes is None:
            self._shapes = Shapes(self._model)
        self._paint.fill(self.values)
        side = self._paint.sky_side(self.values)
        solids = self._shapes.read(self._model, self._data)
        return solids if side is None else (*solids, sky_shape(side))

    # --------------------------------------------------------------- snapshots

    def save(self) -> dict[str, NDArray[Any]]:
        """Returns all beside the values that makes later steps what they are.

        The task's random stream is not part of it: every episode seeds it anew, and no task of the
        suite draws between an episode's start and its end.
        """
        out = {
            "moment": self._single.save(),
            "task": self._task_fields(),
            "reward": np.array(self.reward),
            "ticks": np.array(self.ticks),
        }
        for kind in self._drawn_kinds:
            shape = (self._options.frame_stack - 1, *self._frame(kind).shape)
            past = self.frames(kind)[:-1]
            empty = np.empty(shape, self._frame(kind).dtype)
            out[f"frames/{kind}"] = np.stack(past) if past else empty
        return out

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Goes to a saved moment under the present values."""
        self.has_started = True
        self._dynamics.write(self._dynamics_values())
        self._put_task_fields(saved["task"])
        self.reward, self.ticks = float(saved["reward"]), int(saved["ticks"])
        self._single.load(saved["moment"])
        self._write_look()
        self._past = {kind: list(np.array(saved[f"frames/{kind}"])) for kind in self._drawn_kinds}

    def close(self) -> None:
        """Gives the drawings back."""
        for drawing in self._drawings.values():
            drawing.close()
        self._drawings = {}
