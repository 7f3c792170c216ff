"""TriFinger on a device: physics, observations and success of thousands of worlds as tensors.

Episodes start from rows that the world itself drew and saved; then nothing leaves the device.
Worlds stand in groups that start one after the other, so the host knows which episodes end without
asking the device, and a few worlds start anew every few steps. What is observed and scored is what
`iv.make` gives for the same options; a test holds the two side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.arrays import from_mujoco, rotate
from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.sim import Scene as EngineScene
from interverse.sim import make_engine
from interverse.sim.recorded import Recorded
from interverse.worlds.trifinger.device_options import check_device_options
from interverse.worlds.trifinger.drag import RecordedDrag, drag_law
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.rewards import aabb_score, bounds, oriented_score, reaching_score
from interverse.worlds.trifinger.robot import DATUM, REST, action_bounds, tip_positions
from interverse.worlds.trifinger.scene import box_inertia
from interverse.worlds.trifinger.tasks.task import SUCCESS
from interverse.worlds.trifinger.variables import JOINTS
from interverse.worlds.trifinger.world import TriFinger

Tensor = torch.Tensor

_HIDDEN = ("block/friction", "block/mass", "floor/friction", "gravity", "link/mass")
_HELD = (  # what a start sets and no step changes, by its name in the store
    *_HIDDEN,
    "block/size",
    "goal/orientation",
    "goal/position",
    "goal/size",
    "obstacle/orientation",
    "obstacle/position",
    "obstacle/size",
    "robot/height",
)
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, lie evenly
_MUST_BE = {  # what the arena does not do
    "robot/action_delay": 0,
    "robot/command_wait": 0,
    "robot/control_period": 1,
    "robot/observation_noise": 0,
}
_NO_ROOM: Mapping[str, Any] = MappingProxyType({})


_NAME = "device/start_order"  # in the address of an order


@final
class StartOrder:
    """Starts in pass after pass, every one once a pass; orders are drawn by seed and pass.

    The first pass takes them as they were given. In one order for ever, starts and groups of worlds
    would keep step: a world could meet the same start again and again.
    """

    def __init__(self, count: int, *, seed: int) -> None:
        self._count, self._seed = count, seed
        self._passes = np.zeros(1, dtype=np.int64)
        self._orders = np.arange(count)[None]  # of these passes, kept: many calls ask for one pass

    def rows(self, first: int, number: int) -> NDArray[np.int64]:
        """Returns which starts the episodes from `first` on take, (number,).

        >>> StartOrder(3, seed=0).rows(0, 3).tolist()
        [0, 1, 2]
        """
        places = np.arange(first, first + number)
        passes = np.arange(first // self._count, places[-1] // self._count + 1)
        if not np.array_equal(passes, self._passes):
            self._passes, self._orders = passes, self._drawn(passes)
        return self._orders[places // self._count - passes[0], places % self._count]

    def _drawn(self, passes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the order of every pass, (passes, count)."""
        noise = Noise(np.full_like(passes, self._seed), passes, np.zeros_like(passes))
        orders = np.argsort(noise.uniform(_NAME, (self._count,)), axis=1, kind="stable")
        orders[passes == 0] = np.arange(self._count)
        return orders


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArenaView:
    """What is seen at one moment, by worlds.

    Attributes:
        tips: fingertips, (N, 3, 3), m.
        blocks: places of the blocks, (N, B, 3), m; `turns`: their quaternions, (N, B, 4).
        goals: places of the goals, (N, G, 3), m.
        sizes: of the blocks, (N, B, 3), m.
        fraction: fractional success, (N,).
        observation: the structured observation, as `iv.make` gives it, float32.
        hidden: what is not observed (masses, friction, gravity) over its spread among the starts,
            (N, k), float32: for critics.
    """

    tips: Tensor
    blocks: Tensor
    turns: Tensor
    goals: Tensor
    sizes: Tensor
    fraction: Tensor
    observation: Tensor
    hidden: Tensor


@final
class DeviceArena:
    """N TriFinger worlds of one task on a device."""

    def __init__(
        self,
        world: TriFinger,
        *,
        num_worlds: int,
        device: str,
        starts: Mapping[str, NDArray[Any]],
        groups: int | Sequence[float] = 16,
        room: Mapping[str, Any] = _NO_ROOM,
    ) -> None:
        """Builds the engine and loads the first starts.

        Args:
            world: one of the kind, on the CPU, to take options, model and layout from.
            num_worlds: how many worlds.
            device: "cuda", "warp", or "torch" for MuJoCo on the CPU.
            starts: rows of saved worlds, where episodes begin; used in order, then in one new order
                after another.
            groups: how many groups of worlds start one after the other; or what share of a whole
                episode each group plays, from some moment of its time on.
            room: for `contacts` and `constraints` a world, where the default is too little.
        """
        check_device_options(world.options, device)
        self.task, self.num_worlds, self.max_steps = world.task.name, num_worlds, world.max_steps
        self.options, self._seconds = world.options, world._seconds
        self.layout = world._observer.layout
        self._exact_drag = world.options.drag == "exact"
        self.engine: Any = make_engine(
            EngineScene(model=world._physics.model, **room),
            num_worlds=num_worlds,
            device=device,
            threads=world.options.threads,
        )
        self._qpos, self._qvel, self._force = (
            self.engine.live(name) for name in ("qpos", "qvel", "qfrc_applied")
        )
        self.device = self._qpos.device
        self._low, self._high = self._real(self.layout.low), self._real(self.layout.high)
        self._observed = [
            (name, keys, None if numbers is None else torch.as_tensor(numbers).to(self._low))
            for name, keys, numbers in world.task.observed(world.scene)
        ]
        self._floor = self._real((0.0, 0.0, DATUM))
        self._least, self._most = map(self._real, action_bounds("joint_positions"))
        self._order = torch.as_tensor(self.layout.columns, device=self.device)
        for name, wanted in _MUST_BE.items():
            if np.any(starts.get(f"store/{name}", wanted) != wanted):
                raise InvalidValueError(f"starts set {name}", allowed=f"{wanted} on a device")
        self._count, kept = len(starts["physics"]), {f"store/{name}" for name in _HELD}
        self._physical = [name for name in starts if not name.startswith("store/")]
        kept |= set(self._physical)
        self._starts = {name: self._real(rows) for name, rows in starts.items() if name in kept}
        self.order_starts(seed=0)
        shares = [1.0] * groups if isinstance(groups, int) else list(groups)
        self._lengths = np.ceil(np.array(shares[:num_worlds]) * self.max_steps).astype(np.int64)
        count = len(self._lengths)
        self._groups = np.array_split(np.arange(num_worlds), count)
        self._ends = np.zeros(count, dtype=np.int64)  # the clock at which a group starts anew
        self._begun = 0  # groups started so far
        self._held = {
            name: self._starts[f"store/{name}"][:1].repeat_interleave(num_worlds, 0)
            for name in _HELD
        }
        self._spread = {name: _spread(self._starts[f"store/{name}"]) for name in _HIDDEN}
        self._next = 0  # episodes started so far: what their starts are taken by
        self.clock = np.zeros(num_worlds, dtype=np.int64)
        self._clock = self._real(self.clock)
        self._drag = RecordedDrag(self._qpos, self._qvel, self._force)
        self._oriented = world.options.score == "oriented"
        # which boxes meet is asked of the device, so that score cannot be recorded
        self._look = self._see if self._oriented else Recorded(self._see, self.device)
        self._begin({k: k * int(self._lengths[k]) // count for k in range(count)})

    def _real(self, values: Any) -> Tensor:
        """Returns numbers on the device, in the engine's precision."""
        return torch.as_tensor(values, device=self.device, dtype=self._qpos.dtype)

    # ------------------------------------------------------------------ episodes

    def restart(self) -> None:
        """Starts an episode in every world at once, with the first starts in order."""
        self._next = 0
        self._begin(dict.fromkeys(range(len(self._groups)), 0))

    def order_starts(self, *, seed: int) -> None:
        """Takes starts by a seed's orders from now on, but for the first pass, which has none."""
        self._taken = StartOrder(self._count, seed=seed)

    def _begin(self, groups: Mapping[int, int]) -> None:
        """Starts episodes in groups with the next starts, each so many steps on by the clock."""
        parts = []
        for k, elapsed in groups.items():
            worlds, spare = self._groups[k], self.max_steps - int(self._lengths[k])
            self._begun += 1
            first = int(spare * (self._begun * _GOLDEN % 1.0))
            self._ends[k] = first + self._lengths[k]
            self.clock[worlds] = first + elapsed
            self._clock[int(worlds[0]) : int(worlds[-1]) + 1] = first + elapsed
            parts.append(worlds)
        self._load(np.concatenate(parts))

    def _load(self, worlds: NDArray[np.int64]) -> None:
        """Puts worlds at the next starts; what follows from masses is derived once for all."""
        picked = torch.as_tensor(self._taken.rows(self._next, len(worlds)), device=self.device)
        self._next += len(worlds)
        state: dict[str, Any] = {name: self._starts[name][picked] for name in self._physical}
        if self.device.type == "cpu":
            state = {name: part.numpy() for name, part in state.items()}
        self.engine.load(state, worlds)
        where = torch.as_tensor(worlds, device=self.device)
        for name, held in self._held.items():
            held[where] = self._starts[f"store/{name}"][picked]
        self._follow_masses()

    def begin_ended(self) -> None:
        """Starts new episodes in the worlds whose episodes have ended."""
        if over := self._over():
            self._begin(dict.fromkeys(over, 0))

    @property
    def ended(self) -> list[slice]:
        """The groups of worlds whose episodes have just ended by time."""
        groups = (self._groups[k] for k in self._over())
        return [slice(int(group[0]), int(group[-1]) + 1) for group in groups]

    def _over(self) -> list[int]:
        """Returns the groups whose time is up."""
        pairs = enumerate(zip(self._groups, self._ends, strict=True))
        return [k for k, (group, end) in pairs if self.clock[group[0]] >= end]

    def save(self) -> dict[str, Tensor]:
        """Returns a copy of all that makes later steps and episodes what they are."""
        rows = self.engine.save(np.arange(self.num_worlds))
        return {
            **{f"engine.{name}": torch.as_tensor(part) for name, part in rows.items()},
            **{f"held.{name}": part.clone() for name, part in self._held.items()},
            "clock": torch.tensor(self.clock),
            "ends": torch.tensor(self._ends),
            "counts": torch.tensor((self._begun, self._next)),
        }

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Goes back to where `save` was called."""
        rows = {n.partition(".")[2]: v for n, v in saved.items() if n.startswith("engine.")}
        state = {name: part.numpy() for name, part in rows.items()}
        self.engine.load(state, np.arange(self.num_worlds))
        for name, held in self._held.items():
            held.copy_(saved[f"held.{name}"])
        self.clock[:], self._ends[:] = saved["clock"].numpy(), saved["ends"].numpy()
        self._clock.copy_(saved["clock"])
        self._begun, self._next = saved["counts"].tolist()
        self._follow_masses()

    def _follow_masses(self) -> None:
        """Makes the drag that of the blocks and links that are there now."""
        mass, size = self._held["block/mass"], self._held["block/size"]
        law = drag_law(self._held["link/mass"], mass, box_inertia(mass, size))
        self._push = self._drag.follow(law) if self._exact_drag else None

    # ---------------------------------------------------------------------- time

    def step(self, actions: Tensor) -> None:
        """Advances every world by one step of `skip_frame` substeps."""
        command = self.limited(actions)
        if self.options.normalize_actions:
            command = self._least + (command + 1.0) / 2.0 * (self._most - self._least)
        everyone = np.arange(self.num_worlds)
        self.engine.set_controls(JOINTS, command, everyone)
        self.engine.step(everyone, self.options.skip_frame, self._push)
        self.clock += 1
        self._clock += 1

    def limited(self, actions: Tensor) -> Tensor:
        """Returns actions within the limits of the world, as a step takes them."""
        if self.options.normalize_actions:
            return actions.clip(-1.0, 1.0)
        return torch.minimum(torch.maximum(actions, self._least), self._most)

    def rest_action(self) -> Tensor:
        """Returns the action that holds the resting pose, (9,)."""
        rest = self._real(REST)
        if self.options.normalize_actions:
            rest = 2.0 * (rest - self._least) / (self._most - self._least) - 1.0
        return rest.to(torch.float32)

    @staticmethod
    def action_limits(options: TriFingerOptions) -> tuple[list[float], list[float]]:
        """Returns the least and the greatest action of worlds with these options, (9,) each."""
        if options.normalize_actions:
            return [-1.0] * len(REST), [1.0] * len(REST)
        least, most = action_bounds("joint_positions")
        return least.tolist(), most.tolist()

    # -------------------------------------------------------------------- seeing

    def view(self) -> ArenaView:
        """Returns what is there now; it stays as it is when time goes on."""
        return ArenaView(*(part.clone() for part in self._look()))

    def _see(self) -> tuple[Tensor, ...]:
        """Returns the parts of a view."""
        held = self._held
        pose = self._qpos[:, 9:].reshape(self.num_worlds, held["block/size"].shape[1], 7)
        turns, size = from_mujoco(pose[..., 3:]), held["block/size"]
        places = pose[..., :3] - self._floor
        tips = tip_positions(self._qpos[:, :9], held["robot/height"])
        fraction = self._fraction(tips, (places, turns, size))
        seen = self._observation(tips, places, turns)
        hidden = []  # what no observation shows
        for name in _HIDDEN:
            centre, scale = self._spread[name]
            hidden.append(((held[name] - centre) * scale).reshape(self.num_worlds, -1))
        unseen, tips = torch.cat(hidden, dim=1).to(torch.float32), tips.reshape(-1, 3, 3)
        return tips, places, turns, held["goal/position"], size, fraction, seen, unseen

    def _fraction(self, tips: Tensor, blocks: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Returns the fractional success of fingertips and poses of blocks, (N,)."""
        keys = ("position", "orientation", "size")
        place, turn, size = (self._held[f"goal/{key}"] for key in keys)
        if self.task == "reaching":
            return reaching_score(tips, place.reshape(-1, 9))[0]
        if self._oriented:
            return oriented_score(blocks, (place, turn, size))
        return aabb_score(bounds(*blocks), bounds(place, turn, size))

    def _observation(self, tips: Tensor, places: Tensor, turns: Tensor) -> Tensor:
        """Returns the structured observation of every world."""
        n, held = self.num_worlds, self._held
        motion = self._qvel[:, 9:].reshape(n, turns.shape[1], 6)
        left = self._seconds - self._clock * self.options.step_time
        moving = {
            "block/position": places,
            "block/orientation": turns,
            "block/linear_velocity": motion[..., :3],
            "block/angular_velocity": rotate(turns, motion[..., 3:]),
        }
        rows = [left[:, None], self._qpos[:, :9], self._qvel[:, :9], tips]
        for kind, keys, numbers in self._observed:
            parts = [{**held, **moving}[f"{kind}/{key}"] for key in keys]
            if numbers is not None:
                parts.insert(0, numbers[None, :, None].expand(n, -1, 1))
            rows.append(torch.cat(parts, dim=-1).reshape(n, -1))
        raw = torch.cat(rows, dim=1)[:, self._order]
        if self.options.normalize_observations:
            raw = 2.0 * (raw - self._low) / (self._high - self._low) - 1.0
        return raw.to(torch.float32)

    def solved(self, view: ArenaView) -> Tensor:
        """Returns which worlds are solved now, (N,)."""
        return view.fraction >= 1.0 if self.task == "reaching" else view.fraction > SUCCESS

    def close(self) -> None:
        """Releases the engine."""
        self.engine.close()


def _spread(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the mean of rows and the factor that makes their deviations one; 0 if all agree."""
    mean = rows.mean(0)
    deviation = ((rows - mean) ** 2).mean(0).sqrt()
    varies = deviation > 1e-6
    return mean, torch.where(varies, 1.0 / deviation.clip(min=1e-6), 0.0)
