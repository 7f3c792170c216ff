"""Policies: callables on observations with a leading world axis, or what is made into one.

A policy may have `reset(mask, seeds)`, called when worlds in the mask start new episodes. Stable-
Baselines3 models and Torch modules are recognised by their methods, so neither library is imported.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast, final, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from interverse.core.arrays import leaves, mapped
from interverse.core.errors import (
    ActionError,
    InvalidValueError,
    UnknownNameError,
    unknown,
)
from interverse.core.files.json_text import read_json_object
from interverse.core.rng import Noise
from interverse.envs.values import to_numpy
from interverse.rollouts.saved import CARD, NAMES, SHIPPED, policy_path
from interverse.rollouts.saved import PolicyLike as PolicyLike
from interverse.worlds.world import World

RATES = ("frame_skip", "skip_frame")  # options that say how often there is a decision
_GOALS = ("achieved_goal", "desired_goal")


@runtime_checkable
class Policy(Protocol):
    """A callable from batched observations to batched actions."""

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Forgets what belongs to the past episode of the worlds in the mask."""


@final
class RandomPolicy:
    """Uniform actions, drawn by address: the same for a world whatever the batch it is in."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.space = space
        self._noise = Noise(*(np.zeros(0, dtype=np.int64) for _ in range(3)))

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Starts the action noise of the masked worlds afresh."""
        zero = np.zeros(len(mask), dtype=np.int64)
        old = self._noise if len(self._noise) == len(mask) else Noise(np.array(seeds), zero, zero)
        steps = np.where(mask, 0, old.steps)
        self._noise = Noise(np.where(mask, seeds, old.seeds), zero, steps)

    def __call__(self, observations: Any) -> Any:
        """Returns one uniform action per world."""
        n = len(leaves(observations)[0])
        if len(self._noise) != n:
            self.reset(np.ones(n, dtype=bool), np.arange(n))
        noise = self._noise
        self._noise = Noise(noise.seeds, noise.episodes, noise.steps + 1)
        return uniform_action(self.space, noise)


def uniform_action(space: gym.Space[Any], noise: Noise) -> NDArray[Any]:
    """Returns one action per world, uniform in the space, from the address "policy/action"."""
    if isinstance(space, gym.spaces.Box):
        u = noise.uniform("policy/action", space.shape)
        return (space.low + u * (space.high - space.low)).astype(space.dtype)
    if isinstance(space, gym.spaces.Discrete):
        return noise.integers("policy/action", int(space.n)) + space.start
    if isinstance(space, gym.spaces.MultiDiscrete):
        u = noise.uniform("policy/action", space.shape)
        return space.start + np.floor(u * space.nvec).astype(np.int64)
    raise InvalidValueError(
        f"no uniform action for a {type(space).__name__} space",
        allowed="Box, Discrete, MultiDiscrete",
    )


@final
class CallablePolicy:
    """A function made into a policy: its `reset`, if it has one, is passed on."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._reset: Any = getattr(function, "reset", None)
        self._takes_worlds = True
        try:
            inspect.signature(cast("Any", self._reset)).bind(None, None)
        except TypeError:  # or there is none, and it is never called
            self._takes_worlds = False
        except ValueError:  # built in, without a signature: nobody can say
            pass

    def __call__(self, observations: Any) -> Any:
        """Returns what the function returns."""
        return self._function(observations)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Passes the call on; a `reset()` that takes nothing forgets the past of every world."""
        if not callable(self._reset):
            return
        if self._takes_worlds:
            self._reset(mask, seeds)
        elif np.all(mask):
            self._reset()
        elif np.any(mask):
            raise InvalidValueError(
                f"the policy's reset() takes no arguments, and only {int(np.sum(mask))} of"
                f" {len(mask)} worlds start anew",
                allowed="reset(mask, seeds), which forgets the past of the worlds in the mask",
            )


def as_policy(given: PolicyLike, world: World) -> Policy:
    """Returns the policy meant by a name, a model or a callable, for this world.

    Args:
        given: "random", "scripted" (where the world has one), the name of a policy of the package
            (`interverse.rollouts.saved`), the folder of a training run or of its policy, a zip
            that Stable-Baselines saved, a Stable-Baselines3 model, a Torch module on float32
            observations (a dict of tensors where they are a Dict), which acts in eval mode and is
            left as it was, or any callable on batched observations.
        world: the world it will act in.
    """
    if (path := policy_path(given)) is not None:
        given = load_policy(path)
        # Nothing else shows that a policy decides at another rate than in its training.
        trained = getattr(getattr(given, "card", None), "trained", {})
        trained = trained.get("options") or trained.get("config", {}).get("options") or {}
        for name in RATES:
            here = getattr(getattr(world, "options", None), name, None)
            if name in trained and here is not None and trained[name] != here:
                warnings.warn(
                    f"the policy was trained with {name}={trained[name]} and acts with"
                    f" {name}={here}; pass {name}={trained[name]} for its own rate",
                    stacklevel=2,
                )
    # A policy trained on dicts with goals, as hindsight replay needs them: an SB3 model, or a card.
    space = getattr(given, "observation_space", None)
    held = getattr(getattr(given, "card", None), "inputs", ())
    parts = space.spaces if isinstance(space, gym.spaces.Dict) else held
    if set(_GOALS) <= set(parts) and not isinstance(world.observation_space, gym.spaces.Dict):
        return GoalPolicy(given, world)
    if isinstance(given, str):
        if given == "random":
            return RandomPolicy(world.action_space)
        if given == "scripted" and (scripted := world.scripted_policy()) is not None:
            return CallablePolicy(scripted)
        fix = "Or pass the folder of a run or of a policy, or a zip of Stable-Baselines"
        names = (*policy_names(world), *SHIPPED)
        raise UnknownNameError(unknown("policy", given, names, fix=fix))
    if callable(getattr(given, "predict", None)):
        return CallablePolicy(_predictor(given))
    if callable(getattr(given, "state_dict", None)):
        from interverse.rollouts.torch_module import ModulePolicy  # loads Torch

        return ModulePolicy(given)
    if callable(given):
        return CallablePolicy(given)
    raise InvalidValueError(
        f"a policy cannot be a {type(given).__name__}",
        allowed='a callable, "random", "scripted", an SB3 model, a Torch module',
    )


@final
class GoalPolicy:
    """A policy trained on dicts with goals, on flat observations: it asks for the goals."""

    def __init__(self, given: PolicyLike, world: World) -> None:
        self._policy = _predictor(given) if callable(getattr(given, "predict", None)) else given
        self._world = world
        self.shown = np.arange(world.num_worlds)

    def __call__(self, observations: Any) -> Any:
        """Returns one action per row."""
        told = self._world.score().info
        goals = {name: to_numpy(told[name])[self.shown] for name in _GOALS}
        return self._policy({"observation": observations} | goals)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Has nothing to forget."""


def _predictor(model: Any) -> Callable[[Any], Any]:
    """Returns the function of a Stable-Baselines3 model, which leaves its networks' mode alone."""
    network = getattr(model, "policy", model)
    if not callable(getattr(network, "modules", None)):
        return lambda seen: model.predict(seen, deterministic=True)[0]
    from interverse.rollouts.torch_module import eval_mode  # loads Torch

    def act(observations: Any) -> Any:
        with eval_mode(network):
            return model.predict(observations, deterministic=True)[0]

    return act


def policy_names(world: World) -> tuple[str, ...]:
    """Returns the names of the policies that can act in a world as it was made."""
    try:
        return NAMES if world.scripted_policy() is not None else NAMES[:1]
    except InvalidValueError:  # it has one, for other actions or observations
        return NAMES[:1]


def load_policy(path: Path) -> Any:
    """Returns the policy of a folder that training wrote, or of a zip of Stable-Baselines."""
    if path.is_file():
        from interverse.rollouts.archives import load_archive  # loads Torch, as the others below

        return load_archive(path)
    from interverse.rollouts.exported import ExportedPolicy, PixelPolicy
    from interverse.rollouts.planned import PlannedPolicy

    told = None
    with suppress(OSError, ValueError):  # the reader says what is wrong
        told = read_json_object(path / CARD).get("format")
    kinds: dict[Any, Any] = {kind.file_format: kind for kind in (PixelPolicy, PlannedPolicy)}
    return kinds.get(told, ExportedPolicy).load(path)


@final
class FixedBatchPolicy:
    """A policy whose batch has `rows` rows, of which each world has one of its own."""

    def __init__(self, policy: Policy, numbers: NDArray[np.int64], rows: int) -> None:
        """Gives each world the row of its episode's number; others show the first one."""
        self._policy, self._seats = policy, numbers % rows
        self._numbers = numbers[0] // rows * rows + np.arange(rows)  # of every row
        self._shown = np.zeros(rows, dtype=np.int64)
        self._shown[self._seats] = np.arange(len(numbers))
        if isinstance(policy, GoalPolicy):
            policy.shown = self._shown

    def start(self, seed: int) -> None:
        """Starts the episodes of a seed, in rows without a world too: those must not matter."""
        every = np.ones(len(self._numbers), dtype=bool)
        self._policy.reset(every, seed + (self._numbers << 32))

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""
        with one_thread():
            told = self._policy(mapped(lambda seen: to_numpy(seen)[self._shown], observations))
        if isinstance(told, tuple):  # as `predict` of Stable-Baselines3 gives a state as well
            raise ActionError(
                "the policy returned a tuple", allowed="actions", fix="Return its first part"
            )
        actions = to_numpy(told)
        # A hand-written policy may read the worlds themselves, and then it acts for those alone.
        check_rows(actions, len(self._shown), len(self._seats))
        return actions[self._seats] if len(actions) == len(self._shown) else actions


def check_rows(actions: NDArray[Any], *worlds: int) -> None:
    """Raises unless a policy returned an action for each world, of which there are so many."""
    if (len(actions) if actions.ndim else 0) not in worlds:
        raise ActionError(
            f"the policy returned actions of shape {actions.shape}",
            allowed=f"one row for each of {worlds[0]} worlds",
            fix="Give every row of the observations its action",
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps matrix products to one thread: long sums are cut differently by several."""
    torch = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    try:
        if torch is not None:
            torch.set_num_threads(1)
        with _libraries(len(sys.modules)).limit(limits=1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Returns the libraries with threads of their own; a module loaded since may have one more."""
    return ThreadpoolController()
