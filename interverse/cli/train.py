"""`interverse train`: SB3 baselines and pixel agents from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rich.console import Console

from interverse.agents.pixel.presets import PixelAlgorithm
from interverse.agents.presets import Algorithm
from interverse.cli.evaluate import parse_pairs, summary
from interverse.cli.json_output import print_json
from interverse.core.errors import (
    InvalidValueError,
    UnknownNameError,
    explain,
    missing_extra,
    unknown,
)
from interverse.core.files.json_text import read_json, read_json_object
from interverse.protocols.evaluate import EVALUATION_FILE
from interverse.reports.runs import CURVES_FILE, read_folder
from interverse.rollouts.policy_card import CARD
from interverse.scm.variable import SpaceName

if TYPE_CHECKING:
    from interverse.learning.train import DeviceTrain


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Trains a baseline; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as trifinger/pushing-v1."""
    out: Path
    """A folder for checkpoints, logs and the exported policy."""
    algorithm: Algorithm | PixelAlgorithm = "ppo"
    """ppo, sac, td3 on flat observations; the others learn from pictures."""
    preset: Literal["authors", "paper", "small"] = "small"
    """The paper's whole setting (CausalWorld's Table 5, DMCR's Table 4), or a small one; svea, soda
    and sgqn have their authors' own too."""
    steps: int | None = None
    """Steps in all; by default the preset's: 100,000 if small, CausalWorld's 100 million (ppo) or
    10 million (sac, td3), with pictures those of the task."""
    seed: int | None = None
    """The seed of everything; 0 by default."""
    seeds: tuple[int, ...] = ()
    """Pictures: several runs side by side in this process, one for each seed, in OUT/seed-N."""
    checkpoint_every: int | None = None
    """Steps between checkpoints; what a kill can cost at most."""
    threads: int = 1
    """Torch threads; with one, a resumed run equals an unbroken one to the last bit."""
    allow_other_code: bool = False
    """Go on with a folder that other code or libraries began."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."""
    curriculum: int | None = None
    """ppo, sac, td3: CausalWorld's curriculum: 0 none, 1 goals, 2 everything."""
    space: SpaceName | None = None
    """ppo, sac, td3: the space that training draws from; A, unless B or A_B is asked for."""
    actor: tuple[str, ...] = ()
    """ppo, sac, td3: actors of a curriculum, such as visual or physical_properties:group=block."""
    her: bool = False
    """sac, td3: hindsight experience replay, in worlds with goals."""
    num_envs: int | None = None
    """ppo, sac, td3: worlds in the batch; the preset's by default."""
    device: str | None = None
    """Where the networks are, with pictures the replay buffer too: cpu or cuda. ppo on a TriFinger
    task: cuda trains thousands of worlds on a GPU, torch the same on the CPU, slowly."""
    actors: int | None = None
    """Pictures: environments that act together, in processes of their own."""
    precision: Literal["float32", "tf32", "bf16"] | None = None
    """Pictures: float32, tf32 or bf16; the last two are for a GPU."""
    overlap: bool = False
    """Pictures: let actors step while the networks learn from what came before."""
    compiled: bool = False
    """Pictures: compile actor and critics: seconds at the start, faster updates on a GPU."""
    evaluate_every: int | None = None
    """Pictures: decisions between evaluations with the mean action."""
    evaluate_episodes: int | None = None
    """Episodes of an evaluation; ppo, sac, td3 have one at every checkpoint, 0 for none."""
    evaluate_protocols: str | None = None
    """ppo, sac, td3: protocols of an evaluation; P0 by default, train in control."""
    hyper: tuple[str, ...] = ()
    """Other hyper-parameters than the preset's, as NAME=VALUE, such as learning_rate=1e-4
    net=[64,64]; with pictures, such as beta=1.0 augmentation=rotate; ppo on a device: such as
    privileged=true (the critic sees masses and friction) or placed=0.5."""
    wandb: str | None = None
    """A project of Weights & Biases that gets the curves too; needs the extra wandb."""
    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""


def train(config: TrainCommand) -> list[Path]:
    """Trains and says where the policies are: one, or one for each seed."""
    with redirect_stdout(sys.stderr):  # a world of one's own may print
        if config.seeds and config.algorithm in get_args(PixelAlgorithm):
            folders = _train_seeds(config)
            hint = f"report {' '.join(str(folder.parent) for folder in folders)} --out page"
        else:
            settings, run = training(config)
            folders, hint = [run(settings, progress=True)], f"evaluate {config.out}"
    if config.json:
        print_json({"runs": [_told(folder) for folder in folders]})
        return folders
    console = Console()
    for folder in folders:
        console.print(str(folder), soft_wrap=True)
    console.print(f"Next: interverse {hint}", style="dim", soft_wrap=True)
    return folders


def _told(policy: Path) -> dict[str, Any]:
    """Returns where a run and its policy are, the steps made, and the end of its learning curve."""
    run = policy.parent
    last: list[dict[str, Any]] = []
    if any((run / name).exists() for name in (EVALUATION_FILE, CURVES_FILE)):
        scores = read_folder(run).final()
        last = [{"steps": int(max(scores.column("step"))), **row} for row in summary(scores)]
    elif (run / "curve.json").exists():  # of a run on a device
        last = read_json(run / "curve.json")[-1:]
    steps = read_json_object(policy / CARD)["trained"]["steps"]
    return {"run": run, "policy": policy, "steps": steps, "last": last}


def _train_seeds(config: TrainCommand) -> list[Path]:
    """Trains a run for each seed, all side by side."""
    if config.seed is not None:
        raise InvalidValueError(explain("--seed and --seeds are both given", allowed="one of them"))
    alone = [
        replace(config, seed=seed, seeds=(), out=config.out / f"seed-{seed}")
        for seed in config.seeds
    ]
    settings = [training(one)[0] for one in alone]
    from interverse.agents.pixel.train import train_together  # loads Torch

    return train_together(settings, progress=True)


def training(config: TrainCommand) -> tuple[Any, Callable[..., Path]]:
    """Returns the settings of the run that is asked for, and the function that trains with them.

    Flags that do not go together raise here, before anything is begun.
    """
    if config.task.startswith(("blocks/", "chemistry/")):
        raise InvalidValueError(
            explain(
                f"{config.task} has discrete actions on pictures, which no agent here learns",
                fix=f"interverse fit {config.task} learns a world model and plans with it",
            )
        )
    if config.algorithm in get_args(PixelAlgorithm):
        from interverse.agents.pixel.config import PixelTrain  # loads Torch
        from interverse.agents.pixel.train import train as train_pixels

        return PixelTrain(**_given(config, PixelTrain)), train_pixels
    if _is_on_device(config):
        return _device_settings(config), _train_on_device
    if find_spec("stable_baselines3") is None:  # its extra brings Torch too, which is loaded first
        raise missing_extra("stable-baselines3", "rl")
    from interverse.protocols.learning import (  # loads Torch, Stable-Baselines3
        TrainAndEvaluate,
        train_and_evaluate,
    )

    return TrainAndEvaluate(**_given(config, TrainAndEvaluate)), train_and_evaluate


def _is_on_device(config: TrainCommand) -> bool:
    """Returns whether the worlds themselves run on a device: PPO on TriFinger."""
    on_worlds = config.algorithm == "ppo" and config.task.startswith("trifinger/")
    return on_worlds and config.device not in (None, "cpu")


def _train_on_device(settings: DeviceTrain, *, progress: bool) -> Path:
    """Trains on a device, with a line of progress now and then."""
    from interverse.learning.train import train_on_device

    log = Console(stderr=True, quiet=not progress)
    return train_on_device(settings, report=lambda row: log.print(json.dumps(row)))


_DEVICE_FLAGS = (
    "task",
    "out",
    "seed",
    "curriculum",
    "actor",
    "space",
    "num_envs",
    "device",
    "steps",
    "checkpoint_every",
    "allow_other_code",
)
_DEVICE_PAIRS = ("option", "hyper")
_DEVICE_HYPER = (  # of the run; the others are PPO's
    "brief",
    "demonstrations",
    "initial",
    "placed",
    "plain",
    "shown",
    "starts",
)


def _device_settings(config: TrainCommand) -> DeviceTrain:
    """Returns the settings of PPO on thousands of worlds of a device."""
    from interverse.learning.ppo import PpoSettings
    from interverse.learning.train import DeviceTrain  # loads Torch

    known = (*_DEVICE_FLAGS, *_DEVICE_PAIRS)
    for item in fields(config):
        given = getattr(config, item.name)
        if item.name not in (*known, "json") and given != item.default:
            raise InvalidValueError(
                explain(
                    f"--{item.name.replace('_', '-')} does not go with --device {config.device}",
                    allowed=", ".join(known),
                )
            )
    values = {
        "num_worlds" if name == "num_envs" else name: getattr(config, name)
        for name in _DEVICE_FLAGS
        if getattr(config, name) is not None
    }
    hyper = parse_pairs(config.hyper)
    values |= {name: hyper.pop(name) for name in _DEVICE_HYPER if name in hyper}
    for name in hyper.keys() - {item.name for item in fields(PpoSettings)}:
        allowed = [*_DEVICE_HYPER, *(item.name for item in fields(PpoSettings))]
        raise UnknownNameError(unknown("hyper-parameter", name, allowed))
    hyper |= {name: tuple(v) for name, v in hyper.items() if isinstance(v, list)}
    options = {"skip_frame": 3, **parse_pairs(config.option)}
    return DeviceTrain(**values, options=options, settings=PpoSettings(**hyper))


def _given(config: TrainCommand, kind: type[Any]) -> dict[str, Any]:
    """Returns the flags that were given, or raises for one that this kind of run has not."""
    known = {item.name for item in fields(kind)} | {"option"}
    given = {f.name: getattr(config, f.name) for f in fields(config) if f.name != "json"}
    given = {n: v for n, v in given.items() if v is not None and v is not False and v != ()}
    for name in given:
        if name not in known:
            raise InvalidValueError(
                explain(
                    f"--{name.replace('_', '-')} does not go with --algorithm {config.algorithm}",
                    fix="`interverse train --help` says which flags belong together",
                )
            )
    given.pop("option", None)
    pairs = {"options": parse_pairs(config.option), "hyper": parse_pairs(config.hyper)}
    return given | pairs
