"""The observations of TriFinger worlds: numbers in a fixed layout, pictures, or both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace
from interverse.core.errors import InvalidValueError, check_name
from interverse.scm.store import Store
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.pictures import (
    BatchPhotographer,
    PictureObservations,
    observation_space,
)
from interverse.worlds.trifinger.robot import TORQUE_LIMIT, action_bounds
from interverse.worlds.trifinger.scene import ArenaScene, remembered
from interverse.worlds.trifinger.store import ADDRESS, CLOCK, COMMANDS, noise_of

if TYPE_CHECKING:
    from interverse.worlds.trifinger.tasks.task import Task

_NOISE = "robot/observation_noise"
FloatArray = NDArray[np.float64]

# Type numbers of objects, as the original observes them.
CUBE, MESH, FIXED, GOAL_CUBE, GOAL_SPHERE, GOAL_MESH = 1, 2, 10, 20, 21, 23

_TIPS = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.5))
_BOUNDS: Mapping[str, tuple[Any, Any]] = {  # what becomes -1 and 1
    "type": (-1.0, 1.0),  # never mapped
    "size": (0.03, 0.1),
    "cartesian_position": _TIPS,
    "orientation": (-10.0, 10.0),
    "linear_velocity": (-0.5, 0.5),
    "angular_velocity": (-np.pi, np.pi),
}
ROBOT = (
    "time_left_for_task",
    "joint_positions",
    "joint_velocities",
    "end_effector_positions",
)
_WIDTHS = {"type": 1, "orientation": 4, "friction": 1, "mass": 1}
# What can be observed beside the usual: what becomes -1 and 1.
_MORE_ROBOT: Mapping[str, tuple[Any, Any]] = {
    "joint_torques": (-TORQUE_LIMIT, TORQUE_LIMIT),
    "action_joint_positions": action_bounds("joint_positions"),
}
_MORE_OBJECT: Mapping[str, tuple[Any, Any]] = {
    "cylindrical_position": ((0.0, 0.0, 0.0), (0.2, np.pi, 0.5)),
    "color": (0.0, 1.0),
    "friction": (0.0, 10.0),
    "mass": (0.02, 0.2),
}
_SENSED = ("position", "orientation", "velocity")
STILL = ("type", "size", "cartesian_position", "orientation")
MOVING = (*STILL, "linear_velocity", "angular_velocity")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ObservationLayout:
    """Where everything stands in the flat observation.

    Attributes:
        slices: key -> slice, in order.
        low, high: the raw numbers that become -1 and 1, (width,).
        columns: for each place, its column in the parts laid side by side (blocks, then goals).
    """

    slices: Mapping[str, slice]
    low: FloatArray
    high: FloatArray
    columns: NDArray[np.int64]

    @property
    def width(self) -> int:
        """How many numbers an observation has."""
        return len(self.low)

    @functools.cache  # noqa: B019 - there are few layouts, and they are kept
    def sensed(self) -> FloatArray:
        """Returns what one unit of sensor noise means: half a number's range, 0 for what is known.

        Joints, fingertips and blocks are sensed; time, goals, types, sizes and flags are known.
        """
        scale = (self.high - self.low) / 2.0
        for name, part in self.slices.items():
            owner, _, key = name.partition("/")
            robot = name in (*ROBOT[1:], "joint_torques")
            block = owner.startswith("block_") and key.endswith(_SENSED)
            if not (robot or block):
                scale[part] = 0.0
        return scale


@functools.lru_cache(maxsize=32)
def layout(
    groups: tuple[tuple[str, tuple[str, ...]], ...],
    stored: tuple[str, ...],
    *,
    seconds: float,
    more: tuple[tuple[str, int], ...] = (),
    keys: tuple[str, ...] = (),
    custom: tuple[str, ...] = (),
) -> ObservationLayout:
    """Returns the layout of robot, objects and what follows them, or of the keys asked for.

    Args:
        groups: the objects in the order they are observed, and the keys they show.
        stored: their names in the order their numbers are laid side by side.
        seconds: length of an episode.
        more: names and widths of what is laid after them: keys beside the usual, a mask of the
            blocks in use, keys of one's own.
        keys: those asked for, in order; none: the usual ones, and all of `more`.
        custom: the keys of one's own, which follow at the end in any case.
    """
    low_joints, high_joints = action_bounds("joint_positions")
    parts: dict[str, tuple[Any, Any, NDArray[np.int64]]] = {}
    start = 0
    for name, low, high, width in (
        ("time_left_for_task", 0.0, seconds, 1),
        ("joint_positions", low_joints, high_joints, 9),
        ("joint_velocities", -50.0, 50.0, 9),
        ("end_effector_positions", _TIPS[0] * 3, _TIPS[1] * 3, 9),
    ):
        parts[name] = low, high, start + np.arange(width)
        start += width
    widths = {owner: sum(_WIDTHS.get(key, 3) for key in shown) for owner, shown in groups}
    starts = dict(zip(stored, start + np.cumsum([0, *(widths[n] for n in stored)]), strict=False))
    for owner, shown in groups:
        place = starts[owner]
        for key in shown:
            width = _WIDTHS.get(key, 3)
            parts[f"{owner}/{key}"] = *_BOUNDS[key], place + np.arange(width)
            place += width
    start += sum(widths.values())
    for name, width in more:
        usual = _MORE_ROBOT.get(name) or _MORE_OBJECT.get(name.partition("/")[2], (-1.0, 1.0))
        parts[name] = *((-1.0, 1.0) if name in custom else usual), start + np.arange(width)
        start += width
    slices: dict[str, slice] = {}
    lows, highs, columns = list[FloatArray](), list[FloatArray](), list[NDArray[np.int64]]()
    end = 0
    for name in (*keys, *custom) if keys else parts:
        low, high, places = parts[name]
        slices[name] = slice(end, end + len(places))
        for bound, out in ((low, lows), (high, highs)):
            out.append(np.broadcast_to(np.asarray(bound, dtype=np.float64), places.shape))
        columns.append(places)
        end += len(places)
    low, high, places = np.concatenate(lows), np.concatenate(highs), np.concatenate(columns)
    return ObservationLayout(MappingProxyType(slices), low, high, places)


@remembered
def _shown(kind: type[Task], scene: ArenaScene) -> tuple[Any, tuple[str, ...], Any]:
    """Returns the objects as they are observed, their stored order, and what is read of them."""
    task = kind()
    groups, stored = task.groups(scene)
    return tuple(groups.items()), tuple(stored), task.observed(scene)


@final
class Observer:
    """The observations of N worlds, made from their store."""

    def __init__(
        self,
        task: Task,
        scene: ArenaScene,
        options: TriFingerOptions,
        *,
        store: Store,
        seconds: float,
        values: Mapping[str, Array],
        torques: Callable[[], Array],
        photographer: Callable[[], PictureObservations | BatchPhotographer],
        asarray: Callable[[Any], Array],
    ) -> None:
        """Works out what stands where.

        Args:
            task: whose objects are observed.
            scene: what is in the world.
            options: what is shown, and how.
            store: it is read whenever somebody looks.
            seconds: length of an episode.
            values: every variable by name, for keys beside the usual ones and of one's own.
            torques: gives what the joints get from their motors now, (N, 9), N m.
            photographer: makes what pictures are taken with, when the first is asked for.
            asarray: makes arrays of the store's kind.
        """
        self._options, self._store, self._seconds = options, store, seconds
        self._values, self._photographer, self._torques = values, photographer, torques
        self._pictures: PictureObservations | BatchPhotographer | None = None
        self._asarray, self._step_time = asarray, options.step_time
        groups, stored, observed = _shown(type(task), scene)
        self._masked = scene.max_blocks is not None
        keys = tuple(options.observation_keys or ())
        self._extra = self._readers(keys, groups) if keys else {}
        own = {name: rows.shape[1] for name, rows in self._custom().items()}
        more = {
            name: 9 if name in _MORE_ROBOT else _WIDTHS.get(name.partition("/")[2], 3)
            for name in self._extra
        }
        more |= ({"mask": scene.block_count} if self._masked else {}) | own
        self.layout = layout(
            groups,
            stored,
            seconds=seconds,
            more=tuple(more.items()),
            keys=keys,
            custom=tuple(own),
        )
        self._more = bool(more)
        places = self.layout
        self._columns, self._low = asarray(places.columns), asarray(places.low)
        self._span, self._noisy = asarray(places.high - places.low), asarray(places.sensed())
        self._objects = [
            (kind, keys, None if types is None else asarray(types))
            for kind, keys, types in observed
        ]
        flat = gym.spaces.Box(-np.inf, np.inf, (places.width,), np.float64)
        self.space = observation_space(flat, options)
        numbers = options.observation_mode == "structured"
        self.observe: Callable[[Array], Any] = self._numbers if numbers else self._with_pictures
        """Gives every world's observation, from where the fingertips are, (N, 9)."""

    def _readers(self, keys: Sequence[str], groups: Any) -> dict[str, Callable[[], Array]]:
        """Returns what reads each key that is asked for beside the usual ones; refuses others."""
        rows = self._store.rows
        usual = {*ROBOT, *(f"{owner}/{key}" for owner, shown in groups for key in shown)}
        robot: dict[str, Callable[[], Array]] = {"joint_torques": self._torques}
        if "joint_torques" not in self._options.action_mode:
            robot["action_joint_positions"] = lambda: rows[COMMANDS][:, 0]
        found = {name for name in self._values if name.partition("/")[2] in _MORE_OBJECT}
        owners = ("block_", "goal_", "obstacle_")
        allowed = usual | robot.keys() | {n for n in found if n.startswith(owners)}
        allowed |= {"mask"} if self._masked else set()
        for name in keys:
            check_name("observation key", name, sorted(allowed))
        if len(set(keys)) < len(keys):
            raise InvalidValueError(
                f"observation_keys names a key twice: {keys}", allowed="each once"
            )

        def reader(name: str) -> Callable[[], Array]:
            return lambda: self._values[name].reshape(self._store.num_worlds, -1)

        beside = [name for name in keys if name not in usual and name != "mask"]
        return {name: robot.get(name) or reader(name) for name in beside}

    @property
    def bounds(self) -> Mapping[str, tuple[FloatArray, FloatArray]]:
        """The raw numbers of each key that become -1 and 1."""
        low, high = self.layout.low, self.layout.high
        return MappingProxyType(
            {n: (low[part].copy(), high[part].copy()) for n, part in self.slices.items()}
        )

    @property
    def slices(self) -> Mapping[str, slice]:
        """Where everything stands in a flat observation; empty where there is none."""
        pixels = self._options.observation_mode == "pixel"
        return MappingProxyType({}) if pixels else self.layout.slices

    def _with_pictures(self, tips: Array) -> Any:
        """Returns every world's observation where it holds pictures."""
        if self._pictures is None:
            self._pictures = self._photographer()
        pictures = {n: self._asarray(shots) for n, shots in self._pictures.take().items()}
        if self._options.observation_mode == "pixel":
            return pictures["pixels"]
        return {"structured": self._numbers(tips), **pictures}

    def close(self) -> None:
        """Releases the GL contexts."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def _numbers(self, tips: Array) -> Array:
        """Returns the structured observations, (N, width)."""
        store, rows, options = self._store, self._store.rows, self._options
        xp = namespace(tips)
        left = self._seconds - xp.astype(rows[CLOCK], tips.dtype) * self._step_time
        parts = [left[:, None], rows["joint_positions"], rows["joint_velocities"], tips]
        parts += [_object_numbers(store, *objects) for objects in self._objects]
        if self._more:
            parts += [xp.astype(read(), tips.dtype) for read in self._extra.values()]
            parts += [xp.astype(rows["block/used"], tips.dtype)] if self._masked else []
            parts += self._custom().values()
        raw = xp.concat(parts, axis=1)[:, self._columns]
        if store.cached("noisy", (_NOISE,), lambda: bool((rows[_NOISE] != 0).any())):
            draw = noise_of(rows[ADDRESS]).normal("observation", (self.layout.width,))
            raw = raw + rows[_NOISE][:, None] * self._noisy * draw
        return 2.0 * (raw - self._low) / self._span - 1.0 if options.normalize_observations else raw

    def _custom(self) -> dict[str, Array]:
        """Returns the observations of one's own, (N, k) each."""
        return {
            name: self._asarray(function(self._values)).reshape(self._store.num_worlds, -1)
            for name, function in self._options.custom_observations.items()
        }


def _object_numbers(store: Store, kind: str, keys: Sequence[str], types: Array | None) -> Array:
    """Returns the numbers of all objects of a kind, one after another; absent ones are zero."""
    rows, used = store.rows, store.rows[f"{kind}/used"]
    xp = namespace(used)
    numbers = [] if types is None else [(used * types)[..., None]]
    flat = xp.concat([*numbers, *(rows[f"{kind}/{key}"] for key in keys)], axis=-1)
    if not store.cached(f"{kind}s in use", (f"{kind}/used",), lambda: bool(used.all())):
        flat = xp.where(used[..., None], flat, 0.0)
    return flat.reshape(flat.shape[0], -1)
