"""The options of the TriFinger worlds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.type_checks import named, one_of, validated, whole
from interverse.scm.variable import SpaceName
from interverse.worlds.trifinger.contacts import contact_mode
from interverse.worlds.trifinger.drag import Drag
from interverse.worlds.trifinger.robot import SUBSTEP, Mode, RobotControl
from interverse.worlds.trifinger.scene import (
    LOOKS,
    METAL,
    OBSERVATION_CAMERAS,
    ArenaScene,
    ContactMode,
    remembered,
)
from interverse.worlds.world import WorldOptions

if TYPE_CHECKING:
    from interverse.worlds.trifinger.tasks.task import Task

ObservationMode = Literal["structured", "pixel", "mixed"]
ScoreRule = Literal["aabb", "oriented"]
PICTURES = ("rgb", "depth", "segmentation")

_MOST = 10_000  # more would run for hours or fill the memory
_MOST_WEIGHT = 1e12  # of a term of the reward; sums stay far from where numbers end


_Count = Annotated[int, whole(_MOST)]


@dataclass(frozen=True, kw_only=True)
@validated
class TriFingerOptions(WorldOptions):
    """Options of every TriFinger task. A task's own parameters are defaults of its variables."""

    task: str = "pushing"
    """A task's name, or "package.module:Class" of your own. The id sets it."""
    skip_frame: _Count = 10
    """Substeps of 4 ms in one step. The published policies were trained with 3."""
    action_mode: Annotated[Mode, named("action mode", one_of(get_args(Mode)))] = "joint_positions"
    """What an action means; with `delta_` it is an offset."""
    normalize_actions: bool = True
    """Whether actions live in [-1, 1] or in their own units."""
    observation_mode: ObservationMode = "structured"
    """Numbers, pictures, or a dict of both."""
    normalize_observations: bool = True
    """Whether numbers are mapped so that their usual range becomes [-1, 1]; never clipped."""
    score: ScoreRule = "aabb"
    """`aabb` compares bounding boxes, as the paper does; `oriented` the boxes themselves."""
    dense_reward_weights: Sequence[float] | None = None
    """Weights of the task's dense terms; None takes the published ones."""
    fractional_reward_weight: float | None = None
    """Weight of the fractional success in the reward; None takes the published one."""
    mended_reward: bool = False
    """Whether to follow the paper where the original's code slips: in pick_and_place the velocity
    is compared with the last step's, not the start's; in reaching success earns, not distance."""
    sparse_reward: bool = False
    """Whether the reward is the step time on success and 0 otherwise, and nothing else."""
    observation_keys: Sequence[str] | None = None
    """Which keys the observation's numbers have, in order: those of the usual layout,
    `joint_torques`, `action_joint_positions` (the last command), and an object's `mass`,
    `friction`, `color` and `cylindrical_position`. None: the usual ones."""
    custom_observations: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(
        default_factory=dict
    )
    """Keys of your own at the end of the observation: functions of all variables' values, each
    with a leading world axis, that return (N,) or (N, k). They are passed on as they are."""
    cameras: Sequence[int] = (0, 1, 2)
    """Which cameras a picture observation holds."""
    image_size: _Count = 128
    """Pixels along an edge of a picture."""
    picture_kinds: Sequence[str] = ("rgb",)
    """What `mixed` shows of every camera: rgb, depth, segmentation."""
    shadows: bool = True
    """Whether things cast shadows in picture observations; without them they cost a third."""
    mirrored_images: bool = False
    """Whether pictures are mirrored left to right, as the original's are."""
    max_blocks: _Count | None = None
    """Room for this many blocks in tasks that build their scene. None: the default scene's, or with
    `space` A or B, as many as that space can ask for."""
    draw_scenes: bool = False
    """Whether a built scene is drawn anew in each episode. Otherwise it follows from the seed and
    the variables that it is built from, and stays what it is."""
    drag: Drag = "exact"
    """`exact` applies the original's drag each substep; `joint_damping` is a fast stand-in."""
    contact: ContactMode | None = None
    """`exact` is Coulomb friction; `convex` is MuJoCo's own, by which sliding things hop. None is
    `exact`, but `convex` on a GPU, in scenes of more than ten blocks, and where there is no C
    compiler. The world's `options.contact` says which it became."""
    contacts: _Count | None = None
    """On MuJoCo Warp: room for contacts a world; None: by the number of blocks. Where it is too
    little, `CapacityError` says so."""
    constraints: _Count | None = None
    """On MuJoCo Warp: room for constraint rows a world; None: four a contact."""
    look: Annotated[str, one_of(LOOKS)] = "default"
    """`realistic` paints the robot grey."""
    contact_sensors: bool = False
    """Whether `world.contact(a, b)` and `world.contact_force(a, b)` can be asked."""
    active_edges: bool = False
    """Whether `info["active_edges"]` says which contacts acted in a step: the local causal graph.
    Its columns are `world.contact_edges`."""
    legacy_time_left: bool = False
    """Whether the time left is steps minus seconds, as where the original was given a length: its
    own evaluation from a saved tracker did so."""
    legacy_unchecked: bool = False
    """Whether an intervention that names what a scene is built from (`tower/...`, `stack/...`,
    `general/...`, `goal_tower/...`) may leave things standing in each other, as in the original."""
    info_state: bool = False
    """Whether `info` holds every variable, under "state"."""
    info_solution: bool = False
    """Whether `info` holds a pose that solves the task, under "solution"."""

    def __post_init__(self) -> None:
        if self.device in ("cpu", "torch") and (self.contacts or self.constraints):
            raise InvalidValueError(
                f"contacts or constraints are given with device={self.device!r}",
                allowed="None, for MuJoCo on the CPU has room for any number",
            )
        count, chosen = len(OBSERVATION_CAMERAS), tuple(self.cameras)
        known = all(c in range(count) for c in chosen)
        if not chosen or not known or len(set(chosen)) < len(chosen):
            raise InvalidValueError(
                f"cameras is {self.cameras!r}", allowed=f"distinct numbers of 0 to {count - 1}"
            )
        for kind in tuple(self.picture_kinds) or (None,):
            check_name("picture_kinds", kind, PICTURES)
        weights, single = self.dense_reward_weights, self.fractional_reward_weight
        numbers = [*(() if weights is None else weights), *(() if single is None else (single,))]
        if not all(isinstance(w, int | float | np.number) and _is_weight(w) for w in numbers):
            raise InvalidValueError(
                f"reward weights are {numbers}", allowed=f"numbers within ±{_MOST_WEIGHT:g}"
            )

    @property
    def step_time(self) -> float:
        """Seconds of one step."""
        return SUBSTEP * self.skip_frame


def _is_weight(number: float | np.number[Any]) -> bool:
    try:
        return abs(float(number)) <= _MOST_WEIGHT
    except (OverflowError, TypeError):  # too many digits, a complex number
        return False


def scene_of(kind: type[Task], options: TriFingerOptions, control: RobotControl) -> ArenaScene:
    """Returns the scene of a kind of task with the options' room, drag, looks and motors."""
    sensors = options.contact_sensors or options.active_edges
    space, look = options.space, options.look
    scene: ArenaScene = _scene(
        kind, control, options.max_blocks, space, look, options.drag, sensors
    )
    # Asked anew each time: it may warn.
    return _in_contact(scene, contact_mode(options.contact, options.device, scene.block_count))


@remembered  # tasks may drop heaps to find their scene
def _scene(
    kind: type[Task],
    control: RobotControl,
    most: int | None,
    space: SpaceName,
    look: str,
    drag: Drag,
    sensors: bool,
) -> ArenaScene:
    task: Any = kind()
    scene = task.scene()
    room: dict[str, Any] = {}
    if most is not None and not task.varies:
        raise InvalidValueError(
            f"max_blocks is {most}, but the blocks of {task.name} are fixed", allowed="None"
        )
    if most is None and task.varies and space != "A_B":
        own = [v for v in task.variables(scene) if v.name in task.generators]
        regions = {v.name: region for v in own if (region := v.region(space)) is not None}
        asked = task.most_blocks(regions)
        most = asked if asked > scene.block_count else None
    if most is not None:
        room = task.room(scene, most)
    if look == "realistic":  # grey to begin with; colours can still be set
        room["link_colors"] = (METAL,) * 3
    return replace(
        replace(scene, **room),
        drag=drag,
        look=look,
        torques=control.torques,
        servo_lag=control.servo_lag,
        sensors=sensors,
    )


@functools.lru_cache(maxsize=64)
def _in_contact(scene: ArenaScene, contact: ContactMode) -> ArenaScene:
    return replace(scene, contact=contact)
