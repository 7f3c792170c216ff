"""`interverse train`: `--task` and `--algorithm` are read first and tell what flags there are."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, make_dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.text import Text

from interverse.agents import AGENTS, tagged
from interverse.cli import UsageError, parse_flags
from interverse.cli.evaluate import summary
from interverse.cli.flags import AsJson, OptionWords, parse_pairs, tell, value_of
from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    UnknownNameError,
    check_whole,
    explain,
    missing_extra,
    unknown,
)
from interverse.core.files.json_text import read_json, read_json_object
from interverse.protocols.evaluate import EVALUATION_FILE
from interverse.reports.runs import CURVES_FILE, read_folder
from interverse.rollouts.saved import CARD
from interverse.worlds import WORLDS

Trainer = Callable[..., Any]

_LEARN_FROM = {
    "batch": "thousands of TriFinger worlds",
    "states": "states, with Stable-Baselines3",
    "pictures": "pictures",
}
_HYPER = "Hyper-parameters, as NAME=VALUE, instead of the usual ones; a wrong name lists all."
_SEEDS = (
    "How many runs, from seed 0 on; several numbers are the seeds themselves. They learn side by"
    " side in this process, each in OUT/seed-N."
)
_MOST_SEEDS = 1000


def usual_algorithm(task: str) -> str:
    """Returns the agent that learns a task unless another is named.

    >>> usual_algorithm("trifinger/pushing-v1"), usual_algorithm("tutorial/slider-v1")
    ('ppo', 'sb3_ppo')
    """
    from interverse.worlds.trifinger import DEVICE_TASKS

    learns = not task or WORLDS[task].options.get("task") in DEVICE_TASKS
    return "ppo" if learns else "sb3_ppo"


def choose(words: Sequence[str]) -> tuple[type[Any], Trainer]:
    """Returns the config whose flags a command's words are, and the function that takes it."""
    task, algorithm = value_of("--task", words), value_of("--algorithm", words)
    if task.startswith("rooms/"):
        return pairs_command(), train_pairs
    if task.startswith(("blocks/", "chemistry/")):
        raise InvalidValueError(
            f"{task} has discrete actions on pictures, which no agent here learns",
            fix=f"interverse fit {task} learns a world model and plans with it",
        )
    if algorithm and algorithm not in AGENTS:
        raise UsageError(unknown("value of --algorithm", algorithm, AGENTS))
    if {"--seed", "--seeds"} <= {word.partition("=")[0] for word in words}:
        raise InvalidValueError("--seed and --seeds are both given", allowed="one of them")
    algorithm = algorithm or usual_algorithm(task)
    family = AGENTS[algorithm].tags[0]
    if family == "states" and find_spec("stable_baselines3") is None:
        raise missing_extra("stable-baselines3", "rl")  # its extra brings Torch too
    for name in [word.partition("=")[0] for word in words if word.startswith("--")]:
        if _has(family, name):
            continue
        others = [agent for one in _LEARN_FROM if _has(one, name) for agent in tagged(one)]
        if others:
            problem = f"{name} does not go with --algorithm {algorithm}"
            raise UsageError(explain(problem, allowed=f"with {', '.join(others)}"))
    return command_of(family), train


def _has(family: str, flag: str) -> bool:
    """Returns whether agents of a family have a flag; those that are not installed have none."""
    try:
        known = command_of(family).__dataclass_fields__
    except InterverseError:
        return False
    return flag.removeprefix("--").removeprefix("no-").replace("-", "_") in {*known, "help"}


@functools.cache
def command_of(family: str) -> type[Any]:
    """Returns the settings of a family of agents as a command: with flags for what is no field."""
    kind: type[Any] = _family(family)[0]
    usual = kind.__dataclass_fields__["algorithm"].default
    agents = "; ".join(f"{what}: {', '.join(tagged(name))}" for name, what in _LEARN_FROM.items())
    text = f"The agent, each family with flags of its own: `--algorithm NAME --help`. {agents}."
    more: list[tuple[str, Any, Any]] = [
        ("algorithm", Annotated[str, tyro.conf.arg(help=text)], field(default=usual)),
        ("option", OptionWords, field(default=())),
        ("hyper", Annotated[tuple[str, ...], tyro.conf.arg(help=_HYPER)], field(default=())),
    ]
    if family == "pictures":
        seeds = Annotated[tuple[int, ...], tyro.conf.arg(help=_SEEDS)]
        more.append(("seeds", seeds, field(default=())))
    more.append(("json", AsJson, field(default=False)))
    # Values are checked where the settings are made: there a mistake has its own words.
    body: dict[str, Any] = {"__post_init__": lambda self: None, "__doc__": kind.__doc__}
    body["family"] = family
    # A file with both would be refused: `seeds` say all that `seed` does.
    body["unsaid"] = property(lambda self: ("seed",) if getattr(self, "seeds", ()) else ())
    return make_dataclass(
        f"{kind.__name__}Command", more, bases=(kind,), namespace=body, frozen=True, kw_only=True
    )


def _family(name: str) -> tuple[type[Any], Trainer]:
    """Returns the settings of a family of agents, and what trains with them."""
    if name == "batch":
        from interverse.agents.batch.train import DeviceTrain, train_on_device

        return DeviceTrain, train_on_device
    if name == "pictures":
        from interverse.agents.pixel.config import PixelTrain
        from interverse.agents.pixel.train import train as train_pixels

        return PixelTrain, train_pixels
    from interverse.protocols.learning import TrainAndEvaluate, train_and_evaluate

    return TrainAndEvaluate, train_and_evaluate


def commands() -> list[type[Any]]:
    """Returns the command of every family of agents, for shells to complete."""
    return [command_of(family) for family in _LEARN_FROM]


def parsed(words: Sequence[str]) -> Any:
    """Returns the command that words stand for, without the verb."""
    return parse_flags(choose(words)[0], "train", list(words))


def training(command: Any) -> tuple[Any, Trainer]:
    """Returns the settings of the run that is asked for, and the function that trains with them.

    Values that cannot be raise here, before anything is begun.
    """
    kind, run = _family(command.family)
    values = {item.name: getattr(command, item.name) for item in fields(kind)}
    hyper, options = parse_pairs(command.hyper), parse_pairs(command.option)
    if command.family == "batch":  # the run's own hyper-parameters, and those of PPO
        from interverse.agents.batch.ppo import PpoSettings  # loads Torch

        hidden = {"brief", "demonstrations", "initial", "placed", "plain", "shown", "starts"}
        ppo = {item.name for item in fields(PpoSettings)}
        for name in hyper.keys() - hidden - ppo:
            raise UnknownNameError(unknown("hyper-parameter", name, sorted(hidden | ppo)))
        given: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in hyper.items()
        }
        values |= {name: value for name, value in given.items() if name in hidden}
        values["settings"] = PpoSettings(**{n: v for n, v in given.items() if n in ppo})
        options = {"skip_frame": 3, **options}
    else:
        values["hyper"] = hyper
    return kind(**{**values, "options": options}), run


def train(command: Any) -> list[Path]:
    """Trains and says where the policies are: one, or one for each seed."""
    if seeds := getattr(command, "seeds", ()):
        from interverse.agents.pixel.train import train_together  # loads Torch

        if len(seeds) == 1:  # as in the other verbs
            check_whole(seeds[0], "seeds", _MOST_SEEDS)
            seeds = range(seeds[0])
        apart = [replace(command, seed=n, out=command.out / f"seed-{n}") for n in seeds]
        folders = train_together([training(one)[0] for one in apart], progress=True)
        hint = f"report {' '.join(str(folder.parent) for folder in folders)} --out page"
    else:
        settings, run = training(command)
        folders, hint = [run(settings, progress=True)], f"evaluate {command.out}"
    made = {"runs": [_told(folder) for folder in folders]} if command.json else None
    tell(command, made, *map(str, folders), Text(f"Next: interverse {hint}", style="dim"))
    return folders


def _told(policy: Path) -> dict[str, Any]:
    """Returns where a run and its policy are, the steps made, and the end of its learning curve."""
    run = policy.parent
    last: list[dict[str, Any]] = []
    if any((run / name).exists() for name in (EVALUATION_FILE, CURVES_FILE)):
        scores = read_folder(run).final()
        last = [{"steps": int(max(scores.column("step"))), **row} for row in summary(scores)]
    elif (run / "curve.json").exists():  # of the batch learner
        last = read_json(run / "curve.json")[-1:]
    steps = read_json_object(policy / CARD)["trained"]["steps"]
    return {"run": run, "policy": policy, "steps": steps, "last": last}


@functools.cache
def pairs_command() -> type[Any]:
    """Returns the settings of recognition models on pairs of rooms as a command."""
    from interverse.models.pairs.train import TrainPairs  # loads Torch

    flags, body = [("json", AsJson, field(default=False))], {"__doc__": TrainPairs.__doc__}
    return make_dataclass(
        "TrainPairsCommand", flags, bases=(TrainPairs,), namespace=body, frozen=True, kw_only=True
    )


def train_pairs(config: Any) -> dict[str, Any]:
    """Trains; curves go to standard error, the results to standard output."""
    from interverse.models.pairs.train import train_pairs as run  # loads Torch

    def listener(row: Mapping[str, Any]) -> None:
        sys.stderr.write(
            f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  train {row['train']:.3f}"
            f"  valid {row['valid']:.3f}  ID {row['test_id']:.3f}  OOD {row['test_ood']:.3f}"
            f"  {row['seconds']:.1f} s\n"
        )

    found = run(config, [listener]).record()
    file = config.out / "result.json"
    told = {name: found[name] for name in ("weights", "sizes", "selection")}
    ends = {"epochs": len(found["history"]), "last": found["history"][-1:]}
    lines = [f"{'epoch chosen by':<16}{'ID':>7}{'OOD':>7}"]
    for rule, row in found["selection"].items():
        lines.append(f"{rule:<16}{row['test_id']:7.3f}{row['test_ood']:7.3f}")
    lines.append(f"encoder weights: {found['weights']}; written: {file}")
    tell(config, {"run": config.out, "path": file, **ends, **told}, *lines)
    return found
