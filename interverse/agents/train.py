"""`interverse train`: SB3 baselines under a curriculum, with checkpoints that lose nothing."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from interverse._version import __version__
from interverse.actors.curriculum import paper_curriculum
from interverse.agents import training_state
from interverse.agents.presets import Algorithm, Preset, preset
from interverse.agents.sb3 import WorldVecEnv, export
from interverse.errors import InvalidValueError, explain, missing_extra
from interverse.rng import check_seed

try:
    import numpy as np
    import torch
    from stable_baselines3 import PPO, SAC, TD3
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.noise import NormalActionNoise
except ImportError as error:
    raise missing_extra("stable-baselines3", "rl") from error

ALGORITHMS = {"ppo": PPO, "sac": SAC, "td3": TD3}


@dataclass(frozen=True, kw_only=True)
class Train:
    """Trains a baseline; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as trifinger/pushing-v1."""
    out: Path
    """A folder for checkpoints, logs and the exported policy."""
    algorithm: Algorithm = "ppo"
    """ppo, sac or td3."""
    preset: Preset = "small"
    """Hyper-parameters: "paper" (CausalWorld's Table 5) or "small"."""
    steps: int = 100_000
    """Environment steps in all; an algorithm finishes the batch it is in."""
    curriculum: int = 0
    """CausalWorld's: 0 none, 1 goals, 2 everything."""
    seed: int = 0
    """The seed of everything."""
    num_envs: int | None = None
    """Worlds in the batch; the preset's by default."""
    checkpoint_every: int = 20_000
    """Steps between checkpoints; what a kill can cost at most."""
    options: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for make."""
    threads: int = 1
    """Torch threads; with one, a resumed run equals an unbroken one to the last bit."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name in ("steps", "checkpoint_every", "threads"):
            if getattr(self, name) < 1:
                raise InvalidValueError(
                    explain(f"{name} is {getattr(self, name)}", allowed="a whole number from 1")
                )


def train(config: Train, *, progress: bool = False) -> Path:
    """Trains and returns the folder of the exported policy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    env = _make_env(config)
    try:
        model = _make_model(config, env)
        _claim(config)
        model.set_logger(configure(str(config.out / "tensorboard"), ["tensorboard"]))
        held = training_state.find(config.out / "checkpoint")
        if held is not None:
            training_state.load(model, env, held)
        _learn(config, model, env, show=progress)
        trained = {"config": _record(config), "steps": model.num_timesteps, "version": __version__}
        return export(model, trained).save(config.out / "policy")
    finally:
        env.close()
        torch.set_num_threads(threads)


def _record(config: Train) -> dict[str, Any]:
    record = asdict(config)
    del record["out"]
    return json.loads(json.dumps(record, default=str))


def _claim(config: Train) -> None:
    """Marks the folder as this run's; another run's is left alone. More steps may be asked for."""
    config.out.mkdir(parents=True, exist_ok=True)
    file = config.out / "train.json"
    mine = _record(config)
    if file.exists():
        held = json.loads(file.read_text())
        if {**held, "steps": 0} != {**mine, "steps": 0}:
            different = sorted(k for k in mine if k != "steps" and mine[k] != held.get(k))
            raise InvalidValueError(
                explain(
                    f"{config.out} holds another run: {', '.join(different)} differ",
                    fix="Choose another folder, or delete that one",
                )
            )
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(mine, indent=1))
    os.replace(partial, file)


def _make_env(config: Train) -> WorldVecEnv:
    hyper = preset(config.algorithm, config.preset)
    curriculum = paper_curriculum(config.curriculum) if config.curriculum else None
    count = hyper.num_envs if config.num_envs is None else config.num_envs
    env = WorldVecEnv(config.task, count, curriculum, **config.options)
    for name, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
            env.close()
            raise InvalidValueError(
                explain(
                    f"{config.task} has a {type(space).__name__} {name} space",
                    allowed="flat boxes: train learns a multilayer perceptron",
                    fix="Train on a trifinger or tutorial world, or use SB3 directly",
                )
            )
    env.seed(config.seed)
    return env


def _make_model(config: Train, env: WorldVecEnv) -> BaseAlgorithm:
    hyper = preset(config.algorithm, config.preset)
    network = {
        "net_arch": list(hyper.net),
        "activation_fn": torch.nn.Tanh if hyper.tanh else torch.nn.ReLU,
    }
    settings = dict(hyper.settings)
    if config.algorithm == "td3":
        size = env.action_space.shape
        settings["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, 0.1))
    kind = ALGORITHMS[config.algorithm]
    model = kind(
        "MlpPolicy", env, seed=config.seed, policy_kwargs=network, device="cpu", **settings
    )
    env.seed(config.seed)
    return model


def _learn(config: Train, model: BaseAlgorithm, env: WorldVecEnv, *, show: bool) -> None:
    """Learns in equal pieces with a checkpoint after each, broken run or not."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not show)
    with bar:
        task = bar.add_task(f"{config.algorithm} {config.task}", total=config.steps)
        bar.update(task, completed=model.num_timesteps)
        while model.num_timesteps < config.steps:
            piece = min(config.checkpoint_every, config.steps - model.num_timesteps)
            model.learn(piece, reset_num_timesteps=model.num_timesteps == 0)
            training_state.save(model, env, config.out / "checkpoint")
            bar.update(task, completed=model.num_timesteps)
