"""Planning without a robot: an action picks an object, moves it a little and turns it a little."""

from __future__ import annotations

from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.core.arrays import from_rotation_vector, to_rotation_vector
from interverse.core.errors import InterventionError, InvalidValueError, explain
from interverse.envs.checks import select_worlds

_STEP = 0.002  # m
_TURN = 0.1  # rad
_SPEEDS = ("linear", "angular")
_MOVES = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)], dtype=float
)
_TURNS = np.array(
    [(0, 0, 0), (0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)], dtype=float
)


@final
class ObjectSelector(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
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

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._low = np.asarray(env.action_space.low)  # type: ignore[attr-defined]
        self._kept, self.observation_space, self.action_space = _spaces(
            env.unwrapped, env.observation_space
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        if "snapshot" not in (options or {}):
            env: Any = self.env.unwrapped
            seen = env.do(
                {"joint_positions": np.array(env.world.raised_joints)}, check=False
            ).observation
        return seen[self._kept], info

    def step(self, action: Any) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Moves and turns one block, then lets a substep pass."""
        if not self.action_space.contains(np.asarray(action)):
            raise InvalidValueError(
                explain(f"the action is {action!r}", allowed=f"{self.action_space}")
            )
        block, move, turn = (int(a) for a in action)
        reason = self._place(f"block_{block}", _STEP * _MOVES[move], _TURN * _TURNS[turn])
        seen, reward, terminated, truncated, info = self.env.step(self._low)
        return seen[self._kept], reward, terminated, truncated, {**info, "refused": reason}

    def _place(self, name: str, move: NDArray[Any], turn: NDArray[Any]) -> str:
        env: Any = self.env.unwrapped
        wanted = {}
        if move.any():
            place = f"{name}/cartesian_position"
            wanted[place] = env.values[place] + move
        if turn.any():
            pose = f"{name}/orientation"
            wanted[pose] = _turned(env.values[pose], turn)
        if not wanted:
            return ""
        wanted |= {f"{name}/{speed}_velocity": np.zeros(3) for speed in _SPEEDS}
        try:
            env.do(wanted, check=False)
        except InterventionError as error:
            return error.reason
        return ""


@final
class ObjectSelectorVector(VectorWrapper):
    """The same for N worlds: an action is (N, 3), and each world moves and turns its own block.

    `info["refused"]` holds a reason, or an empty text, for every world.

    >>> import interverse as iv
    >>> venv = ObjectSelectorVector(iv.make_vec("trifinger/pushing-v1", num_envs=2, skip_frame=1))
    >>> venv.reset(seed=0)[0].shape
    (2, 28)
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._kept, one, act = _spaces(env.unwrapped, env.single_observation_space)
        self._low = np.tile(np.asarray(env.single_action_space.low), (env.num_envs, 1))
        self.single_observation_space, self.single_action_space = one, act
        self.observation_space = batch_space(one, env.num_envs)
        self.action_space = batch_space(act, env.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Starts episodes."""
        seen, info = self.env.reset(seed=seed, options=options)
        options = options or {}
        if "snapshot" not in options:
            seen = self._raise(select_worlds(options.get("reset_mask"), self.num_envs))
        return seen[:, self._kept], info

    def _raise(self, worlds: NDArray[np.int64]) -> NDArray[Any]:
        """Raises the fingers of worlds that start anew; returns every world's observation."""
        env: Any = self.env.unwrapped
        outcome = env.do(
            {"joint_positions": np.array(env.world.raised_joints)}, worlds=worlds, check=False
        )
        if outcome.reasons:
            world, reason = next(iter(outcome.reasons.items()))
            raise InterventionError(f"{reason} (world {world})", ("joint_positions",))
        seen: NDArray[Any] = outcome.observation
        return seen

    def step(self, actions: Any) -> tuple[NDArray[Any], Any, Any, Any, dict[str, Any]]:
        """Moves and turns one block in each world, then lets a substep pass."""
        given = np.asarray(actions)
        if given.shape != self.action_space.shape or not self.action_space.contains(given):
            raise InvalidValueError(
                explain(f"the actions are {actions!r}", allowed=f"{self.action_space}")
            )
        inner: Any = self.env.unwrapped
        refused, fresh = self._place(given), inner.resets_next
        seen, reward, terminated, truncated, info = self.env.step(self._low)
        if "final_obs" in info:
            last, fresh = info["final_obs"].copy(), info["_final_obs"]
            for i in np.flatnonzero(fresh).tolist():
                last[i] = last[i][self._kept]
            info = {**info, "final_obs": last}
        if fresh.any():
            seen = self._raise(np.flatnonzero(fresh))
        told = {"refused": refused, "_refused": np.ones(len(refused), dtype=bool)}
        return seen[:, self._kept], reward, terminated, truncated, info | told

    def _place(self, actions: NDArray[Any]) -> NDArray[np.object_]:
        env: Any = self.env.unwrapped
        refused = np.full(len(actions), "", dtype=object)
        moving = actions[:, 1:].any(axis=1) & ~env.resets_next
        for block in np.unique(actions[moving, 0]).tolist():
            worlds = np.flatnonzero(moving & (actions[:, 0] == block))
            place, pose = f"block_{block}/cartesian_position", f"block_{block}/orientation"
            places, poses = env.values[place], env.values[pose]
            places[worlds] += _STEP * _MOVES[actions[worlds, 1]]
            for world in worlds[actions[worlds, 2] > 0].tolist():
                poses[world] = _turned(poses[world], _TURN * _TURNS[actions[world, 2]])
            still = {f"block_{block}/{speed}_velocity": np.zeros(3) for speed in _SPEEDS}
            outcome = env.do({place: places, pose: poses, **still}, worlds=worlds, check=False)
            for world, reason in outcome.reasons.items():
                refused[world] = reason
        return refused


def _spaces(
    env: Any, seen: Any
) -> tuple[NDArray[np.int64], gym.spaces.Box, gym.spaces.MultiDiscrete]:
    """Returns which numbers are not the robot's, their space, and that of the choices."""
    if getattr(env.world.options, "skip_frame", None) != 1:
        raise InvalidValueError(
            explain("ObjectSelector needs single substeps", fix="Make the env with skip_frame=1")
        )
    parts = [part for name, part in env.layout.items() if "/" in name or name == "mask"]
    kept = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    return (
        kept,
        gym.spaces.Box(seen.low[kept], seen.high[kept], dtype=seen.dtype),
        gym.spaces.MultiDiscrete([env.world.scene.block_count, len(_MOVES), len(_TURNS)]),
    )


def _turned(quaternion: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    """Returns a quaternion (x, y, z, w) with a little added to its rotation vector."""
    return np.asarray(from_rotation_vector(to_rotation_vector(quaternion) + vector))
