"""Wrappers of actions: averaged over the last few, or planning by hand without a robot."""

from __future__ import annotations

from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.core.arrays import from_rotation_vector, to_rotation_vector
from interverse.core.errors import InterventionError, InvalidValueError, check_whole
from interverse.envs.wrappers.forms import Rules, SingleForm, VectorForm


class _Mean(Rules):
    acts = True

    def __init__(self, env: Any, window: int = 8) -> None:
        super().__init__(env, window=window)
        check_whole(window, "window", 10**6)
        space: Any = self.action_of_one
        self._last = np.zeros((window, self.count, *space.shape), dtype=space.dtype)
        self._count = np.zeros(self.count, dtype=np.int64)  # actions remembered, by world

    def opened(self, worlds: NDArray[np.int64]) -> None:
        self._count[worlds] = 0

    def asked(self, actions: NDArray[Any]) -> NDArray[Any]:
        window = len(self._last)
        self._last = np.concatenate([self._last[1:], actions[None]])
        self._count = np.minimum(self._count + 1, window)
        full = (self._count == window).reshape(-1, *(1,) * (actions.ndim - 1))
        return np.where(full, np.mean(self._last, axis=0).astype(actions.dtype), actions)


@final
class MovingAverageAction(_Mean, SingleForm):
    """Passes on the mean of the last `window` actions; an action before that many as it is.

    A reset forgets all of them.
    """

    def action(self, action: Any) -> NDArray[Any]:
        """Returns the mean of this action and those before it."""
        passed: NDArray[Any] = self.asked(np.asarray(action)[None])[0]
        return passed


@final
class MovingAverageActionVector(_Mean, VectorForm):
    """Passes on each world's mean of its last `window` actions, bit for bit as the single form.

    A world that starts anew forgets its actions, also when it does so by itself.
    """


_STEP = 0.002  # m
_TURN = 0.1  # rad
_MOVES = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)], dtype=float
)
_TURNS = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)], dtype=float
)


class _Selector(Rules):
    acts = True
    action_space: gym.Space[Any]

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        inner: Any = self.unwrapped
        if getattr(inner.world.options, "skip_frame", None) != 1:
            raise InvalidValueError(
                "ObjectSelector needs single substeps", fix="Make the env with skip_frame=1"
            )
        robot: Any = self.action_of_one
        self._low = np.tile(np.asarray(robot.low), (self.count, 1))
        parts = [part for name, part in inner.layout.items() if "/" in name or name == "mask"]
        kept = self._kept = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        seen: Any = self.seen_space
        choices = [inner.world.scene.block_count, len(_MOVES), len(_TURNS)]
        box = gym.spaces.Box(seen.low[kept], seen.high[kept], dtype=seen.dtype)
        self.set_spaces(box, gym.spaces.MultiDiscrete(choices))
        self._choices = batch_space(gym.spaces.MultiDiscrete(choices), self.count)
        self._refused = np.full(self.count, "", dtype=object)

    def opened(self, worlds: NDArray[np.int64]) -> NDArray[Any]:
        """Raises the fingers, out of the way."""
        inner = self.unwrapped
        raised = {"joint_positions": np.array(inner.world.raised_joints)}
        outcome = inner.driver.do(raised, worlds=worlds, check=False)
        if outcome.reasons:
            world, reason = next(iter(outcome.reasons.items()))
            where = f" (world {world})" if self.many else ""
            raise InterventionError(reason + where, tuple(raised))
        seen: NDArray[Any] = outcome.observation
        return seen

    def asked(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Moves and turns one block in each world; the fingers stay at their lowest command."""
        if actions.shape != self._choices.shape or not self._choices.contains(actions):
            given = f"actions are {actions.tolist()}" if self.many else f"action is {actions[0]}"
            raise InvalidValueError(f"the {given}", allowed=f"{self.action_space}")
        driver = self.unwrapped.driver
        self._refused = np.full(len(actions), "", dtype=object)
        moving = actions[:, 1:].any(axis=1)
        if self.many:
            moving &= ~self.unwrapped.resets_next
        for block in np.unique(actions[moving, 0]).tolist():
            worlds = np.flatnonzero(moving & (actions[:, 0] == block))
            place, pose = f"block_{block}/cartesian_position", f"block_{block}/orientation"
            places, poses = driver.host_values[place], driver.host_values[pose]
            places[worlds] += _STEP * _MOVES[actions[worlds, 1]]
            for world in worlds[actions[worlds, 2] > 0].tolist():
                turned = to_rotation_vector(poses[world]) + _TURN * _TURNS[actions[world, 2]]
                poses[world] = from_rotation_vector(turned)
            still = {
                f"block_{block}/{kind}_velocity": np.zeros(3) for kind in ("linear", "angular")
            }
            outcome = driver.do({place: places, pose: poses, **still}, worlds=worlds, check=False)
            for world, reason in outcome.reasons.items():
                self._refused[world] = reason
        return self._low

    def shown(self, seen: Any, told: Any) -> Any:
        """Returns the observation without the robot."""
        return seen[..., self._kept]

    def more(self) -> dict[str, NDArray[Any]]:
        """Returns why moves were refused; an empty text where they were not."""
        return {"refused": self._refused}


@final
class ObjectSelector(_Selector, SingleForm):
    """Makes a TriFinger task one of discrete planning: (block, move of seven, turn of seven).

    A move is 2 mm up, down, +x, -x, +y or -y; a turn adds 0.1 rad to the z, y or x component of the
    rotation vector, either way; 0 is none. A block that is moved or turned is at rest. The fingers
    are raised at reset and held at their lowest command, out of the way. A move into something is
    not made, and `info["refused"]` says why. The observation leaves the robot out.

    >>> import interverse as iv
    >>> env = ObjectSelector(iv.make("trifinger/pushing-v1", skip_frame=1))
    >>> env.reset(seed=0)[0].shape
    (28,)
    """


@final
class ObjectSelectorVector(_Selector, VectorForm):
    """The same for N worlds: an action is (N, 3), and each world moves and turns its own block.

    `info["refused"]` holds a reason, or an empty text, for every world.

    >>> import interverse as iv
    >>> venv = ObjectSelectorVector(iv.make_vec("trifinger/pushing-v1", num_envs=2, skip_frame=1))
    >>> venv.reset(seed=0)[0].shape
    (2, 28)
    """
