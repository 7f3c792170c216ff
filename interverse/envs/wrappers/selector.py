"""Planning without a robot: an action picks an object, moves it a little and turns it a little."""

from __future__ import annotations

from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from interverse.errors import InterventionError, InvalidValueError, explain

_ROBOT = 28  # numbers of a structured observation that speak of the robot
_STEP = 0.002  # m
_TURN = 0.1  # rad
_MOVES = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)], dtype=float
)
_TURNS = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)], dtype=float
)


@final
class ObjectSelector(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Makes a TriFinger task one of discrete planning: (block, move of seven, turn of seven).

    A move is 2 mm up, down, +x, -x, +y or -y; a turn is 0.1 rad about z, y or x, either way; 0 is
    none. The fingers are held at their lowest command, out of the way. A move into something is not
    made, and `info["refused"]` says why. The observation leaves the robot out.

    >>> import interverse as iv
    >>> env = ObjectSelector(iv.make("trifinger/pushing-v1", skip_frame=1))
    >>> env.reset(seed=0)[0].shape
    (28,)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        world = env.unwrapped.world  # type: ignore[attr-defined]
        if getattr(world.options, "skip_frame", None) != 1:
            raise InvalidValueError(
                explain(
                    "ObjectSelector needs single substeps", fix="Make the env with skip_frame=1"
                )
            )
        self._blocks = world.scene.block_count
        self._low = np.asarray(env.action_space.low)  # type: ignore[attr-defined]
        space = env.observation_space
        self.observation_space = gym.spaces.Box(
            space.low[_ROBOT:],  # type: ignore[attr-defined]
            space.high[_ROBOT:],  # type: ignore[attr-defined]
            dtype=np.float64,
        )
        self.action_space = gym.spaces.MultiDiscrete([self._blocks, len(_MOVES), len(_TURNS)])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return seen[_ROBOT:], info

    def step(self, action: Any) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Moves and turns one block, then lets a substep pass."""
        if not self.action_space.contains(np.asarray(action)):
            raise InvalidValueError(
                explain(f"the action is {action!r}", allowed=f"{self.action_space}")
            )
        block, move, turn = (int(a) for a in action)
        reason = self._place(f"block_{block}", _STEP * _MOVES[move], _TURN * _TURNS[turn])
        seen, reward, terminated, truncated, info = self.env.step(self._low)
        return seen[_ROBOT:], reward, terminated, truncated, {**info, "refused": reason}

    def _place(self, name: str, move: NDArray[Any], turn: NDArray[Any]) -> str:
        env: Any = self.env.unwrapped
        wanted = {}
        if move.any():
            place = f"{name}/cartesian_position"
            wanted[place] = env.values[place] + move
        if turn.any():
            pose = f"{name}/orientation"
            wanted[pose] = _turned(env.values[pose], turn)
        try:
            env.do(wanted, check=False)
        except InterventionError as error:
            return error.reason
        return ""


def _turned(quaternion: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    """Returns a quaternion (x, y, z, w) turned by a rotation vector in the world frame."""
    angle = np.sqrt((vector * vector).sum())
    (ax, ay, az), aw = vector / angle * np.sin(angle / 2), np.cos(angle / 2)
    x, y, z, w = quaternion
    return np.array(
        [
            aw * x + ax * w + ay * z - az * y,
            aw * y - ax * z + ay * w + az * x,
            aw * z + ax * y - ay * x + az * w,
            aw * w - ax * x - ay * y - az * z,
        ]
    )
