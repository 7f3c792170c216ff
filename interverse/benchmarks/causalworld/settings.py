"""Settings of CausalWorld's figures: tasks, curricula, seeds and how much work."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, final

from interverse.agents.batch.ppo import PpoSettings
from interverse.agents.presets import preset
from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import one_of, validated, whole
from interverse.rollouts.saved import PAPER_WORLDS

CURRICULA = (0, 1, 2)
FIGURE_TASKS = ("pushing", "picking", "pick_and_place", "stacking2")
_DEVICES = ("cpu", "torch", "warp")
_WORLDS = 8000  # side by side; 15 steps of them are the paper's batch of 120,000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CausalWorldSizes:
    """How much work: steps of learning, worlds, starts, episodes a protocol, options, PPO.

    `brief` and `plain` are shares as in `DeviceTrain`; `caution` stands in the record and on the
    page.
    """

    steps: int
    num_worlds: int
    starts: int = 16384
    episodes: int = 256
    options: dict[str, Any] = field(default_factory=lambda: {"skip_frame": 3})
    ppo: PpoSettings = field(default_factory=PpoSettings)
    brief: float = 0.75
    plain: float = 0.1
    caution: str = ""


_NOT_THE_PAPERS = (
    "not all is the paper's: ELU for its tanh, gradients of policy and critic clipped at 1 each for"
    " 0.5 of both, value weight 1 for 0.5, an entropy weight that falls to 0 in the second half, "
    "rewards, observations and goals as this learner shapes, scales and sees them, and 15 steps of "
    "8,000 worlds a batch for 6,000 of 20"
)


def paper_sizes() -> CausalWorldSizes:
    """Returns the sizes of `train --preset paper`, with its 20 workers' batch spread over a GPU.

    Steps, layers, discount, batch, minibatches, epochs, learning rate and first entropy weight are
    the preset's, and all episodes are whole ones under the curriculum. What is not the paper's, for
    the device learner has no setting of it, is said by `caution`.
    """
    hyper = preset("sb3_ppo", "paper")
    given = hyper.settings
    batch, rate = hyper.num_envs * given["n_steps"], given["learning_rate"]
    return CausalWorldSizes(
        steps=hyper.steps,
        num_worlds=_WORLDS,
        episodes=200,
        options={"skip_frame": PAPER_WORLDS["trifinger/pushing-v1"]["skip_frame"]},
        ppo=PpoSettings(
            horizon=batch // _WORLDS,
            epochs=given["n_epochs"],
            minibatches=batch // given["batch_size"],
            gamma=given["gamma"],
            entropy=given["ent_coef"],
            rate=rate,
            rates=(rate, rate),
            hidden=hyper.net,
        ),
        brief=0.0,
        plain=0.0,
        caution=_NOT_THE_PAPERS,
    )


BUDGETS = {
    "smoke": CausalWorldSizes(
        steps=256,
        num_worlds=8,
        starts=8,
        episodes=2,
        options={"skip_frame": 3, "max_steps": 8},
        ppo=PpoSettings(horizon=8, epochs=1, minibatches=1, hidden=(16,)),
    ),
    "cpu": CausalWorldSizes(steps=30_000_000, num_worlds=1024),
    "paper": paper_sizes(),
    "gpu": CausalWorldSizes(steps=100_000_000, num_worlds=8192),
}


@dataclass(frozen=True, kw_only=True)
@validated
class CausalWorldSettings:
    """Trains PPO under curricula 0, 1 and 2 and tests it on the twelve protocols.

    Started again with the same flags, it goes on where it stopped.
    """

    out: Path
    """A folder for runs, figures and the summary."""
    budget: Literal["smoke", "cpu", "paper", "gpu"] = "smoke"
    """smoke tries everything in minutes on the CPU; cpu is 30 million steps a run in 1,024 worlds,
    about an hour of one core each; paper is 100 million steps with those of the paper's
    hyper-parameters that the device learner has; gpu is as many with those of thousands of
    worlds."""
    task: tuple[Annotated[str, one_of(FIGURE_TASKS)], ...] = FIGURE_TASKS
    """Which tasks."""
    curriculum: tuple[int, ...] = CURRICULA
    """Which curricula: 0 none, 1 goals, 2 everything, in space A."""
    seeds: Annotated[int, whole(1000)] = 1
    """How many runs of each."""
    device: str = "torch"
    """cuda or cuda:1; or cpu (torch says the same) for MuJoCo on the CPU, warp for MuJoCo Warp."""
    stored: tuple[Path, ...] = ()
    """Result files, such as results/causalworld/h200.json, to draw as they are, instead of
    training."""
    released: tuple[Path, ...] = ()
    """Zips that CausalWorld released, or folders of them (causal_world/assets/baseline_actors), to
    play on P0 to P11, 20 episodes each, beside the original's own numbers, instead of training."""
    time_limit: float | None = None
    """Seconds after which no new run begins."""

    def __post_init__(self) -> None:
        for number in self.curriculum:
            if number not in CURRICULA:
                raise InvalidValueError(f"curriculum is {number}", allowed="0, 1, 2")
        if self.device not in _DEVICES and not re.fullmatch(r"cuda(:\d+)?", self.device):
            allowed = ", ".join((*_DEVICES, "cuda", "cuda:1 and so on"))
            raise InvalidValueError(f"device is {self.device!r}", allowed=allowed)
        if self.stored and self.released:
            raise InvalidValueError("stored and released are given", allowed="one of them")
        names = ("budget", "task", "curriculum", "seeds", "device", "time_limit")
        usual = {item.name: item.default for item in fields(self)}
        given = [name for name in names if getattr(self, name) != usual[name]]  # of training
        if (self.stored or self.released) and given:
            raise InvalidValueError(
                f"{'stored draws all runs of' if self.stored else 'released plays'} its files, "
                f"and {', '.join(given)} would not count",
                fix="Leave out what is named, or give fewer files",
            )

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU is asked for."""
        return self.device.startswith("cuda")

    @property
    def engine_device(self) -> str:
        """The device of the arena's engine; MuJoCo on the CPU is torch there."""
        return "torch" if self.device == "cpu" else self.device

    def sizes(self) -> CausalWorldSizes:
        """Returns how much work the budget means."""
        return BUDGETS[self.budget]
