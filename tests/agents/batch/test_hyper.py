"""Hyper-parameters that cannot be are refused in one line, by every learner, before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interverse.cli.flags import flag_words
from interverse.cli.train import parsed, training
from interverse.core.errors import InvalidValueError

pytest.importorskip("stable_baselines3")

DEVICE = "gamma=abc gamma=5 epochs=0 minibatches=1.5 minibatches=0 hidden=7 hidden=[] hidden=[0]"
DEVICE += " kl=[1] kl=[2,1] rates=[1,2,3] horizon=0 entropy=null clip=-1 privileged=3"
DEVICE += " reward_scale=1e999 least_std=x lam=-1 initial=3 starts=1.5 brief=x"
PPO = "gamma=abc gamma=5 n_epochs=0 batch_size=1.5 net=7 net=[0] tanh=3 clip_range=-1 ent_coef=null"
PPO += " gae_lambda=7 target_kl=x use_sde=3 max_grad_norm=x"
SAC = "tau=x tau=3 train_freq=0 gradient_steps=x target_update_interval=0 learning_starts=x"
PIXELS = "encoder_rate=x discount=5 render_size=abc alpha_momentum=1 critic_tau=2 beta=x"
REFUSED = {"ppo": DEVICE, "sb3_ppo": PPO, "sac": SAC, "sac_aug": PIXELS}


def asked(**flags: Any) -> Any:
    """Returns the settings that a command's flags stand for."""
    lists = {n: list(v) if isinstance(v, tuple) else v for n, v in flags.items()}
    return training(parsed(flag_words({"task": "trifinger/reaching-v1", **lists})))[0]


@pytest.mark.parametrize(
    ("algorithm", "word"), [(name, word) for name in REFUSED for word in REFUSED[name].split()]
)
def test_hyper_parameters_that_cannot_be(algorithm: str, word: str, tmp_path: Path) -> None:
    from interverse.agents.pixel.config import plan

    flags = {"device": "cpu", "out": tmp_path, "hyper": (word,), "algorithm": algorithm}
    if algorithm == "sac_aug":
        flags["task"] = "control/cartpole_balance-v1"
    with pytest.raises(InvalidValueError, match=rf"{word.partition('=')[0]}\b.* is "):
        plan(asked(**flags))  # what goes with a task is judged by its plan


def test_one_step_of_one_world_is_no_batch(tmp_path: Path) -> None:
    flags: dict[str, Any] = {"device": "cpu", "num_envs": 1, "hyper": ("horizon=1",)}
    with pytest.raises(InvalidValueError, match="one step of one world"):
        asked(out=tmp_path, **flags)


@pytest.mark.parametrize(
    ("brief", "worlds"), [(0.06, 8192), (0.7, 8192), (0.75, 2), (0.5, 7), (0.125, 1)]
)
def test_short_episodes_that_no_groups_have_are_refused(
    brief: float, worlds: int, tmp_path: Path
) -> None:
    flags: dict[str, Any] = {"device": "cpu", "num_envs": worlds, "hyper": (f"brief={brief}",)}
    with pytest.raises(InvalidValueError, match=rf"brief is {brief} of {worlds:,} worlds.*1/8"):
        asked(out=tmp_path, **flags)


@pytest.mark.parametrize(("worlds", "brief"), [(1, 0.0), (7, 0.0), (8, 0.75), (8192, 0.75)])
def test_by_default_short_episodes_are_those_that_are_played(
    worlds: int, brief: float, tmp_path: Path
) -> None:
    assert asked(out=tmp_path, device="cpu", num_envs=worlds).brief == brief


def test_groups_play_the_share_that_the_record_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interverse.agents.batch import train

    def built(*_: Any, groups: list[float], **__: Any) -> None:
        raise KeyError(groups)

    monkeypatch.setattr(train, "make_arena", built)
    for brief, short in ((0.0, 0), (0.125, 1), (0.625, 5), (1.0, 8)):
        config = train.DeviceTrain(
            task="trifinger/pushing-v1", out=tmp_path, device="torch", starts=1, brief=brief
        )
        with pytest.raises(KeyError) as raised:
            train.train_on_device(config)
        assert raised.value.args[0] == [1.0] * (8 - short) + [0.2] * short


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("placed=0.01", "starts=8"), r"placed is 0\.01, and of 8 starts that is none"),
        (("placed=0.0004",), r"placed is 0\.0004, and of 1,024 starts that is none"),
        (("shown=0.01", "starts=8"), r"shown is 0\.01, and of 8 starts that is none"),
    ],
)
def test_shares_of_which_no_start_comes_are_refused(
    words: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    flags: dict[str, Any] = {"device": "cpu", "hyper": words}
    with pytest.raises(InvalidValueError, match=problem):
        asked(task="trifinger/stacking2-v1", out=tmp_path, **flags)


def test_the_largest_seed_on_a_device_is_named_and_works(tmp_path: Path) -> None:
    from interverse.agents.batch.train import DeviceTrain, drawn_starts

    def config(seed: int) -> DeviceTrain:
        return asked(  # type: ignore[no-any-return]
            task="trifinger/pushing-v1", out=tmp_path, seed=seed, hyper=("starts=2",)
        )

    with pytest.raises(InvalidValueError, match=r"seed is 99999999999\. .*0 to 2,147,483,647"):
        config(99999999999)
    with pytest.raises(InvalidValueError, match="seed is 2147483648"):
        config(2**31)
    assert len(drawn_starts(config(2**31 - 1))) == 2


def test_a_space_that_a_device_does_not_train_in_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="option space is 'B'"):
        asked(out=tmp_path, option={"space": "B"})
