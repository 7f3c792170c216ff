"""World to data set: random play, recorded in units that a restart need not play again.

Episode e of a data set with seed s starts as `reset(seed=s, options={"episode": e})` does, and its
actions are drawn by address, so the arrays depend on the configuration alone: not on the size of
the units, on a restart, or on what else runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.rng import SEED_REGIONS, Noise
from interverse.core.type_checks import Seed, Share, validated
from interverse.data.collector import (
    MOST_EPISODES,
    Count,
    collection,
    collection_header,
    locked,
    plain_options,
    progress_bar,
)
from interverse.data.dataset import (
    ContactWorld,
    Drawn,
    GridScene,
    Header,
    SceneWorld,
    read_header,
    value_path,
    write_dataset,
    write_part,
)
from interverse.envs.build import build_world
from interverse.envs.values import to_numpy
from interverse.rollouts.executors import gpus_of
from interverse.worlds.own_code import data_code
from interverse.worlds.world import World

_UNIT_FRAMES = 60_000  # scenes of a unit take some megabytes, pixels 7.5 kB a frame:
_UNIT_PICTURES = 20_000  # what is lost when it is killed while pixels are written
EXPORTS = (".h5", ".hdf5")  # endings of a file instead of a folder of shards
_ACTION = "policy/action"  # the address `rollout`'s random policy draws at
_NOT_SHAPING = ("threads", "device")  # options that change no result


@dataclass(frozen=True, kw_only=True)
@validated
class Collect:
    """What to collect. `interverse collect ID --episodes 1000 --out FILE.h5` is made from this."""

    id: Annotated[str, tyro.conf.Positional]
    """A grid world's id, such as blocks/observed-3-v1."""
    out: Path
    """The folder to write, or with `.h5` at its end the file."""
    episodes: Count = 1000
    """How many episodes."""
    steps: Count = 100
    """Actions per episode."""
    seed: Seed = SEED_REGIONS["collecting"]
    """Episode e starts as `reset(seed=seed, options={"episode": e})` does. The published splits,
    tests among them, are seeds 1 to 8."""
    images: bool = False
    """Store pixels too. Without, they are drawn when asked for, which is faster than reading them
    and gives the same bytes; set it for programs that read the file by themselves."""
    contacts: Share = 0.0
    """Blocks only: how often, from 0 to 1, an action that pushes is drawn where there is one. With
    0 play is uniform, and 1.7% of its actions push with three blocks, 3.0% with five; with 0.5
    8.2% and 15.1%; with 1 10.6% and 18.2%, measured over 1,000 episodes of 100 steps."""
    options: Annotated[Mapping[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for `make`."""
    overwrite: bool = False
    """Replace another data set that is there."""
    workers: Count = 1
    """How many units of about 60,000 frames are played at a time; it changes no byte."""
    cluster: str | None = None
    """A Ray cluster to play on: local, auto or HOST:PORT; without, this machine's processes."""
    progress: Annotated[bool, tyro.conf.Suppress] = False
    """Show a bar on standard error."""

    def __post_init__(self) -> None:
        check_whole(self.episodes * self.steps, "episodes x steps", 100 * MOST_EPISODES)
        object.__setattr__(self, "out", Path(self.out))

    @property
    def gpus(self) -> int:
        """How many GPUs of a cluster it takes."""
        return gpus_of(self.options.get("device"))


def collect(config: Collect) -> Path:
    """Returns the path of the data set, collected now or, if it is there already, before.

    Killed at any point and started again, it goes on after the last finished unit and ends with
    the same files. Two processes that want the same data share the work: one waits for the other.
    """
    header = header_of(config)
    if config.out.suffix.lower() not in EXPORTS:
        _collect(config, header, config.out, overwrite=config.overwrite)
        return config.out
    with locked(config.out):
        if config.out.exists() and not config.overwrite:
            found = read_header(config.out)
            if found.key == header.key and found.file_name == header.file_name:
                return config.out
            how = f"interverse {found.version}" + ", other code" * (found.code != header.code)
            told = f"{found.episodes} x {found.steps} of {found.id} {dict(found.options)}"
            raise InvalidValueError(
                f"{config.out} holds another data set: {told} with seed {found.seed}, made by"
                f" {how}",
                fix="Choose another file, or pass overwrite=True",
            )
        folder = config.out.with_name(f".{config.out.name}.{header.file_name}.parts")
        files = _collect(config, header, folder, overwrite=False)
        write_dataset(config.out, header, files)
        shutil.rmtree(folder)
    return config.out


def _collect(config: Collect, header: Header, folder: Path, *, overwrite: bool) -> list[Path]:
    """Returns the shards of a folder, in order, played where they are missing."""
    size = (_UNIT_PICTURES if header.images else _UNIT_FRAMES) // (config.steps + 1)
    units = {}
    for first in range(0, config.episodes, max(1, size)):
        unit = range(first, min(first + max(1, size), config.episodes))
        units[f"grid_{unit.start:09d}_{unit.stop - 1:09d}.h5"] = unit
    told = {n: v for n, v in asdict(header).items() if n not in ("options", "version", "code")}
    whole = collection_header("grid", options=header.options, **told)
    title = f"{config.id} episodes"
    with (
        collection(folder, whole, grows="episodes", overwrite=overwrite) as held,
        progress_bar(title, config.episodes, show=config.progress) as advance,
    ):
        held.make_all(_play, units, config, advance)
    return [folder / name for name in units]


def header_of(config: Collect) -> Header:
    """Returns the header of the data set that a configuration stands for; nothing is played."""
    world = _build(config, 1)
    options = {n: plain_options(v) for n, v in config.options.items() if n not in _NOT_SHAPING}
    if config.steps > world.max_steps:
        raise InvalidValueError(
            f"steps is {config.steps}, but an episode of {config.id} ends after {world.max_steps}",
            allowed=f"1 to {world.max_steps}",
            fix="Pass options={'max_steps': ...} for longer episodes",
        )
    if config.contacts and not isinstance(world, ContactWorld):
        raise InvalidValueError(f"{config.id} has no contacts to choose", fix="Leave contacts out")
    palette = str(world.options.colormap)  # type: ignore[attr-defined]
    if "palette" in world.variables:  # the name of the colours, and each in hexadecimal
        rows = np.rint(255 * world.variables["palette"].default).astype(np.uint8)
        palette = " ".join([palette, *(row.tobytes().hex() for row in rows)])
    return Header(
        id=config.id,
        options=options,
        seed=int(config.seed),
        episodes=int(config.episodes),
        steps=int(config.steps),
        images=bool(config.images) or not isinstance(world, SceneWorld),
        targets="target" in world.observation_space.spaces,  # type: ignore[attr-defined]
        actions=int(world.action_space.n),  # type: ignore[attr-defined]
        palette=palette,
        graph=world.graph.to_json(),
        code=data_code(config.id, config.options),
        contacts=float(config.contacts),
    )


def _build(config: Collect, count: int) -> World:
    world = build_world(config.id, count, config.options)
    seen = world.observation_space
    pictured = isinstance(seen, gym.spaces.Dict) and {"image", "state"} <= set(seen.spaces)
    if not (pictured and isinstance(world.action_space, gym.spaces.Discrete)):
        raise InvalidValueError(
            f"{config.id} is no grid world",
            allowed="ids of blocks and chemistry",
            fix="See: interverse list",
        )
    return world


# --------------------------------------------------------------------------- playing


def _play(path: Path, unit: range, config: Collect) -> dict[str, int]:
    """Writes the shard of some episodes of random play."""
    world = _build(config, len(unit))
    everyone = np.arange(len(unit))
    noise = Noise(
        np.full(len(unit), config.seed, dtype=np.int64),
        np.arange(unit.start, unit.stop, dtype=np.int64),
        np.zeros(len(unit), dtype=np.int64),
    )
    world.reset(everyone, noise, {})
    values = {value_path(name): to_numpy(world.read(name)) for name in world.variables}
    first = _look(world)
    moving = [name for name in first if not name.startswith("target")]
    frames = {name: [first[name]] for name in moving}
    actions = np.empty((len(unit), config.steps), dtype=np.int64)
    rewards = np.empty((len(unit), config.steps))
    for t in range(config.steps):
        actions[:, t] = _act(world, noise.at(t + 1), config.contacts)
        rewards[:, t] = to_numpy(world.score().reward)
        seen = _look(world)
        for name in moving:
            frames[name].append(seen[name])
    world.close()
    out: dict[str, Any] = first | {name: np.stack(f, axis=1) for name, f in frames.items()}
    for group, name in (("scene", "images"), ("target", "target_images")):
        if config.images and f"{group}/positions" in out:
            out[name] = Drawn(GridScene(*(out[f"{group}/{part}"] for part in GridScene._fields)))
    out |= {"actions": actions, "rewards": rewards, **values}
    write_part(path, out | {"seeds": np.array(noise.seeds), "episodes": np.array(noise.episodes)})
    return {"episodes": len(unit)}


def _act(world: World, noise: Noise, contacts: float) -> NDArray[np.int64]:
    """Takes a random action in every world, another where a push was invalid; returns them.

    An invalid push moves nothing, so the world is as it was when the next action is tried.
    """
    space: Any = world.action_space
    actions = np.empty(len(noise), dtype=np.int64)
    todo, attempt = np.arange(len(noise)), 0
    if isinstance(world, ContactWorld) and contacts:
        able = to_numpy(world.pushes())
        counts = able.sum(1)
        wanted = (noise.uniform("policy/contact") < contacts) & (counts > 0)
        places = np.floor(noise.uniform("policy/push") * counts).astype(np.int64)
        ranks = np.cumsum(able, axis=1) - 1  # the place of an action among those that push
        chosen = np.argmax(able & (ranks == places[:, None]), axis=1)
        pushed = np.flatnonzero(wanted)
        actions[pushed] = chosen[pushed]
        world.step(actions[pushed], pushed, noise.take(pushed))
        todo = np.flatnonzero(~wanted)
    while len(todo):
        address = f"{_ACTION}/{attempt}" if attempt else _ACTION
        here = noise.take(todo)
        actions[todo] = here.integers(address, int(space.n)) + int(space.start)
        world.step(actions[todo], todo, here)
        info = world.score().info
        if "invalid_push" not in info:
            break
        todo = todo[to_numpy(info["invalid_push"])[todo]]
        attempt += 1
    return actions


def _look(world: World) -> dict[str, NDArray[Any]]:
    """Returns the present frame: the scene where the world tells it, else the pictures."""
    if not isinstance(world, SceneWorld):
        seen = {name: to_numpy(array) for name, array in world.observe().items()}
        out = {"images": seen["image"], "states": seen["state"]}
        return out | ({"target_images": seen["target"]} if "target" in seen else {})
    out = {"states": to_numpy(world.state())}
    for key, scene in world.scenes().items():
        group = "scene" if key == "image" else key
        for part, array in zip(GridScene._fields, scene, strict=True):
            out[f"{group}/{part}"] = to_numpy(array).astype(np.uint8)
    return out
