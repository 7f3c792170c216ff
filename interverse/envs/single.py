"""`WorldEnv`, one world as a `gymnasium.Env`: the batch of one; what all environments have."""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterventionError, RenderError, missing_extra
from interverse.core.rng import check_seed
from interverse.envs.build import (
    RESET_OPTIONS,
    build_world,
    check_render_mode,
    check_reset_options,
    select_worlds,
)
from interverse.envs.driver import Driver, Transition
from interverse.envs.snapshot import Snapshot
from interverse.envs.values import FirstWorld
from interverse.scm import CausalGraph, Intervention, Outcome, Variable
from interverse.worlds.world import World

_ALL = np.arange(1)
_ARRAYS = (np.ndarray, np.generic)
_FPS = 25  # pictures a second of a window or a video


_OF_ENV = ("spec", "action_space", "single_action_space", "_np_random", "_np_random_seed")
_OF_DRIVER = ("seeds", "episodes", "steps", "ended", "hook", "starting_values", "skips_diverged")
_LOG = ("_log", "_log_start")


class CopyableEnv:
    """An environment whose copy goes on as it does, bit for bit, and apart from it.

    A copy is not recorded by what records the original, and has a window of its own.
    """

    driver: Driver
    _made_with: Mapping[str, Any]  # what its constructor was given
    render_mode: str | None

    def _begin(self, num_worlds: int, options: Mapping[str, Any], **made_with: Any) -> World:
        """Makes the worlds, and sets what single and vector environments have alike."""
        self._made_with = {**made_with, **options}
        self.render_mode = made_with["render_mode"]
        world = build_world(made_with["world_id"], num_worlds, options)
        self.driver = Driver(made_with["world_id"], world)
        self.layout: Mapping[str, slice] = world.layout
        self.observation_bounds = world.observation_bounds
        return world

    @property
    def world(self) -> Any:
        """The world itself (`interverse.worlds.world.World`), a batch of one or more."""
        return self.driver.world

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Every variable, with its spaces as they are now (per world where they differ)."""
        return self.driver.variables

    @property
    def graph(self) -> CausalGraph:
        """The causal graph; a name that ends in ' is the next time slice."""
        return self.driver.world.graph

    def snapshot(self) -> Snapshot:
        """Returns this moment, restorable in any env of the same id and options."""
        return self.driver.snapshot()

    def __reduce__(self) -> tuple[Any, ...]:
        driver, begun = self.driver, self.driver.running.any()
        moment = driver.snapshot() if begun else None
        latched = {name: rows[0] for name, rows in driver.world.starting_values.items()}
        parts = [{n: vars(self)[n] for n in _OF_ENV if n in vars(self)}]
        parts += [{n: getattr(driver, n) for n in (*_OF_DRIVER, *_LOG)}]
        make = partial(type(self), **self._made_with)
        return make, (), (moment, latched, *parts)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        moment, latched, mine, of_driver = state
        if latched:
            self.driver.world.set_starting_state(latched)  # type: ignore[attr-defined]
        if moment is not None:
            self.driver.restore(moment, select_worlds(None, len(self.driver.steps)))
        vars(self.driver).update(of_driver)
        vars(self).update(mine)

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # worlds cannot be shared


@final
class WorldEnv(CopyableEnv, gym.Env[Any, Any]):
    """One world as a Gymnasium environment.

    `reset(options={"do": {...}})` starts under an intervention, `{"snapshot": s}` from a saved
    moment; `do`, `values`, `variables`, `graph`, `snapshot` and `restore` are interverse's own.
    It can be copied (`copy.deepcopy`) and pickled.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": _FPS}  # noqa: RUF012 - Gymnasium's

    def __init__(self, world_id: str, render_mode: str | None = None, **options: Any) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        world = self._begin(1, options, world_id=world_id, render_mode=render_mode)
        self._window = RenderWindow(world_id, _FPS) if render_mode == "human" else None
        self.observation_space = world.observation_space
        self.action_space = world.action_space
        self._owners = world.nested_info
        self._lasting: Mapping[str, Any] | None = None  # the latest `info` that lasts, ...
        self._entries: dict[str, Any] = {}  # ... world 0's entries of it, and those to be copied
        self._arrays: list[tuple[str, NDArray[Any]]] = []

    def __repr__(self) -> str:
        """Names the world, where it stands, and what it takes."""
        driver, world = self.driver, self.world
        where = f"seed {driver.seeds[0]}, episode {driver.episodes[0]}, step {driver.steps[0]}"
        where = where if driver.running.any() else "not reset"
        size = f"{len(world.variables)} variables, {world.max_steps} steps an episode"
        return f"<{driver.id}: {where}; {size}>"

    __str__ = __repr__

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see `RESET_OPTIONS` for the options.

        A snapshot goes on with its own seed and episode; a seed beside it is Gymnasium's own
        generator's alone.
        """
        names = self.world.reset_variables
        chosen = check_reset_options(options, RESET_OPTIONS, names)
        seed = None if seed is None else check_seed(seed)  # Gymnasium takes no NumPy number
        driver, seeds = self.driver, None if seed is None else [seed]
        if "snapshot" in chosen:
            driver.restore(chosen["snapshot"], _ALL)
        else:
            driver.reset(_ALL, seeds=seeds, episode=chosen.get("episode"), do=chosen.get("do"))
        super().reset(seed=seed)  # Gymnasium's own generator, once the rest is accepted
        moment = driver.transition()
        if self._window is not None:
            self.render()
        return first(moment.observation), self._info(moment)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advances the world by one action."""
        array = isinstance(action, _ARRAYS) or hasattr(action, "detach")
        moment = self.driver.step(action[None] if array else [action], _ALL)
        if self._window is not None:
            self.render()
        ends = bool(moment.terminated[0]), bool(moment.truncated[0])
        return first(moment.observation), float(moment.reward[0]), *ends, self._info(moment)

    def _info(self, moment: Transition) -> dict[str, Any]:
        """Returns world 0's entries; of what lasts, each call gives copies."""
        held = self._entries if moment.info is self._lasting else None
        out = held or {n: v[0].item() if v.ndim == 1 else v[0] for n, v in moment.info.items()}
        if moment.info_lasts:
            if held is None:
                self._lasting, self._entries = moment.info, out
                self._arrays = [(n, v) for n, v in out.items() if type(v) is np.ndarray]
            out = out.copy()
            for name, array in self._arrays:
                out[name] = array.copy()
        return nested(out, self._owners) if self._owners else out

    @property
    def values(self) -> Mapping[str, NDArray[Any]]:
        """Every variable's present value."""
        return FirstWorld(self.driver.host_values)

    def do(
        self, values: Mapping[str, Any] | Intervention, *, worlds: object = None, check: bool = True
    ) -> Outcome:
        """Intervenes now, or raises InterventionError and leaves everything as it was."""
        outcome = self.driver.do(values, worlds=worlds, check=check)
        if outcome.reasons:
            names = values.variables if isinstance(values, Intervention) else tuple(values)
            raise InterventionError(outcome.reasons[0], names)
        seen = first(outcome.observation)
        return Outcome(outcome.applied[0], outcome.reasons, outcome.changed, seen)

    def observe(self) -> Any:
        """Returns the present observation."""
        return first(self.driver.world.observe())

    def restore(self, snapshot: Snapshot) -> Any:
        """Goes back to a moment; returns its observation."""
        self.driver.restore(snapshot, _ALL)
        return self.observe()

    def render(self) -> Any:
        """Returns a picture (rows, columns, 3) in mode "rgb_array", shows it in mode "human"."""
        if self._window is not None:
            return self._window.show(self.driver.world.render(0))
        return None if self.render_mode is None else self.driver.world.render(0)

    def close(self) -> None:
        """Releases simulators and GL contexts, and closes the window if there is one."""
        if self._window is not None:
            self._window.close()
        self.driver.world.close()


def first(observation: Any, world: int = 0) -> Any:
    """Returns one world's part of a batched observation."""
    if isinstance(observation, dict):
        return {name: first(part, world) for name, part in observation.items()}
    return observation[world]


def nested(info: dict[str, Any], owners: Collection[str]) -> dict[str, Any]:
    """Returns entries with those of some owners in dicts: `state/gravity` is in `state`.

    >>> nested({"success": True, "state/gravity": -9.8}, ["state"])
    {'success': True, 'state': {'gravity': -9.8}}
    """
    out: dict[str, Any] = {}
    for name, value in info.items():
        owner, _, key = name.partition("/")
        if key and owner in owners:
            out.setdefault(owner, {})[key] = value
        else:
            out[name] = value
    return out


@final
class RenderWindow:
    """A window on the screen that shows so many pictures a second."""

    def __init__(self, title: str, fps: int) -> None:
        self._title, self._fps = title, fps
        self._screen: Any = None

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Shows a picture (rows, columns, 3); a person may close the window at any time."""
        if self._screen is None:
            self._open(picture.shape)
        pygame = _pygame()
        if not pygame.display.get_init():
            return
        self._screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(self._fps)
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()

    def _open(self, shape: tuple[int, ...]) -> None:
        pygame = _pygame()
        try:
            pygame.display.init()
            self._screen = pygame.display.set_mode((shape[1], shape[0]))
        except pygame.error as error:
            raise RenderError(
                f"no window can be opened ({error})",
                fix="Use render_mode='rgb_array', or `interverse view` with a browser",
            ) from error
        pygame.display.set_caption(self._title)
        self._clock = pygame.time.Clock()

    def close(self) -> None:
        """Closes the window if it is open."""
        if self._screen is not None:
            _pygame().display.quit()


def _pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it greets on standard output
    try:
        import pygame
    except ImportError:
        raise missing_extra("pygame", "view") from None
    return pygame
