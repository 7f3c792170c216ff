"""Hyper-parameters that cannot be are refused in one line, by every learner, before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interverse.cli.train import TrainCommand, training
from interverse.core.errors import InvalidValueError

pytest.importorskip("stable_baselines3")

DEVICE = [
    "gamma=abc",
    "gamma=5",
    "epochs=0",
    "minibatches=1.5",
    "minibatches=0",
    "hidden=7",
    "hidden=[]",
    "hidden=[0]",
    "kl=[1]",
    "kl=[2,1]",
    "rates=[1,2,3]",
    "horizon=0",
    "entropy=null",
    "clip=-1",
    "privileged=3",
    "reward_scale=1e999",
    "least_std=x",
    "lam=-1",
    "initial=3",
    "starts=1.5",
    "brief=x",
]
PPO = [
    "gamma=abc",
    "gamma=5",
    "n_epochs=0",
    "batch_size=1.5",
    "net=7",
    "net=[0]",
    "tanh=3",
    "clip_range=-1",
    "ent_coef=null",
    "gae_lambda=7",
    "target_kl=x",
    "use_sde=3",
    "max_grad_norm=x",
]
SAC = [
    "tau=x",
    "tau=3",
    "train_freq=0",
    "gradient_steps=x",
    "target_update_interval=0",
    "learning_starts=x",
]
PIXELS = [
    "encoder_rate=x",
    "discount=5",
    "render_size=abc",
    "alpha_momentum=1",
    "critic_tau=2",
    "beta=x",
]


def refused(word: str, out: Path, **flags: Any) -> None:
    given = {"task": "trifinger/reaching-v1", "out": out, "hyper": (word,), **flags}
    with pytest.raises(InvalidValueError, match=rf"{word.partition('=')[0]}\b.* is "):
        training(TrainCommand(**given))


@pytest.mark.parametrize("word", DEVICE)
def test_on_a_device(word: str, tmp_path: Path) -> None:
    refused(word, tmp_path, device="torch")


@pytest.mark.parametrize("word", PPO)
def test_of_ppo(word: str, tmp_path: Path) -> None:
    refused(word, tmp_path)


@pytest.mark.parametrize("word", SAC)
def test_of_sac(word: str, tmp_path: Path) -> None:
    refused(word, tmp_path, algorithm="sac")


@pytest.mark.parametrize("word", PIXELS)
def test_of_pixel_agents(word: str, tmp_path: Path) -> None:
    from interverse.agents.pixel.config import plan

    task, flags = "control/cartpole_balance-v1", {"hyper": (word,), "algorithm": "sac_aug"}
    settings, _ = training(TrainCommand(task=task, out=tmp_path, **flags))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=f"{word.partition('=')[0]} is "):
        plan(settings)


def test_one_step_of_one_world_is_no_batch(tmp_path: Path) -> None:
    flags: dict[str, Any] = {"device": "torch", "num_envs": 1, "hyper": ("horizon=1",)}
    with pytest.raises(InvalidValueError, match="one step of one world"):
        training(TrainCommand(task="trifinger/reaching-v1", out=tmp_path, **flags))
