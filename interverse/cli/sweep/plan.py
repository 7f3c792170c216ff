"""Cells of a sweep: each task, algorithm, curriculum and seed of its file, as one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, final

from interverse.cli import UsageError, parse_flags
from interverse.cli.config_file import flag_words
from interverse.cli.evaluate import Evaluate, flag_names, parse_pairs
from interverse.cli.train import TrainCommand, training
from interverse.core.errors import InvalidValueError, explain
from interverse.core.files.yaml_text import check_keys, read_yaml
from interverse.core.rng import check_seed
from interverse.protocols.measures import select_metrics
from interverse.protocols.select import check_unset, select_protocols
from interverse.rollouts.executors import gpus_of
from interverse.worlds import WORLDS

_KEYS = ("algorithms", "curricula", "evaluate", "seeds", "tasks", "train")
_MADE_HERE = ("actor", "algorithm", "allow_other_code", "curriculum", "out", "seed", "seeds")
_OTHERS = {*_MADE_HERE, "json", "task"}
_TRAIN = tuple(sorted({item.name for item in fields(TrainCommand)} - _OTHERS))
_EVALUATE = ("device", "episodes", "metrics", "option", "protocols", "seed")
_MOST = 10_000
_NAME = re.compile(r"[\w.+-]{1,60}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCell:
    """One training run and its evaluation.

    Attributes:
        task: a world's id.
        experiment: the name of its rows, all seeds alike: algorithm and curriculum.
        seed: of the training; with `seed` of evaluate added, of the evaluation's episodes, so
            that the rows of two runs differ in their seed.
        train: flags of `interverse train`, without --out.
        evaluate: flags of `interverse evaluate`.
    """

    task: str
    experiment: str
    seed: int
    train: tuple[str, ...]
    evaluate: tuple[str, ...]

    @property
    def name(self) -> str:
        """A folder's name."""
        world = re.sub(r"[^\w.-]", "_", self.task)
        return f"{world}-{self.experiment}-s{self.seed}"

    def command(self, out: Path, *, allow_other_code: bool = False) -> TrainCommand:
        """Returns the training as a command that writes to a folder."""
        words = [*self.train, "--out", str(out)]
        words += ["--allow-other-code"] if allow_other_code else []
        config: TrainCommand = parse_flags(TrainCommand, "train", words)
        return config

    @property
    def gpus(self) -> int:
        """How many GPUs of a cluster it takes."""
        devices = self.command(Path()).device, self.evaluation().get("device")
        return max(map(gpus_of, devices))

    def evaluation(self) -> dict[str, Any]:
        """Returns the arguments of `evaluate` that the file gives, and the seed of the episodes."""
        config = parse_flags(Evaluate, "evaluate", list(self.evaluate))
        given = {name: getattr(config, name) for name in _EVALUATE}
        given["seed"] = check_seed(config.seed) + self.seed
        if config.device is None:
            del given["device"]
        return given | parse_pairs(given.pop("option"), flag_names(config))


def read_plan(file: Path) -> tuple[SweepCell, ...]:
    """Returns the cells of a sweep's file; any mistake in it raises before any work starts."""
    given = read_yaml(file, _KEYS)
    for key, known in (("train", _TRAIN), ("evaluate", _EVALUATE)):
        check_keys(_mapping(given, key), known, f"{file.name}, {key}")
    tasks, seeds = _listed(given, "tasks"), _seeds(given)
    algorithms = [_algorithm(entry) for entry in _listed(given, "algorithms", ["ppo"])]
    curricula = [_curriculum(entry) for entry in _listed(given, "curricula", [None])]
    count = len(tasks) * len(algorithms) * len(curricula) * len(seeds)
    if count > _MOST:
        raise InvalidValueError(
            explain(f"{file} has {count:,} cells", allowed=f"at most {_MOST:,}")
        )
    cells = tuple(
        _cell(task, f"{label}{suffix}", seed, {**_mapping(given, "train"), **flags, **stage}, given)
        for task, (label, flags), (suffix, stage), seed in product(
            tasks, algorithms, curricula, seeds
        )
    )
    _check_names(cells)
    for task in tasks:
        _ = WORLDS[task]
    for cell in cells:
        _check(cell, file)
    return cells


def _cell(
    task: str, experiment: str, seed: int, flags: Mapping[str, Any], given: Mapping[str, Any]
) -> SweepCell:
    return SweepCell(
        task=task,
        experiment=experiment,
        seed=seed,
        train=tuple(flag_words({"task": task, **flags, "seed": seed})),
        evaluate=tuple(flag_words(_mapping(given, "evaluate"))),
    )


def _check(cell: SweepCell, file: Path) -> None:
    """Raises for flags that do not parse or do not go together, naming the cell."""
    try:
        training(cell.command(Path(cell.name)))
        asked = cell.evaluation()
        check_unset(select_protocols(cell.task, asked["protocols"]), asked)
        select_metrics(asked["metrics"])
    except UsageError as error:
        raise InvalidValueError(f"{file.name}, {cell.name}: {error}") from None


def _check_names(cells: Sequence[SweepCell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.name in seen:
            raise InvalidValueError(
                explain(
                    f"two cells of the sweep are called {cell.name}",
                    fix="Give algorithms with the same algorithm names of their own",
                )
            )
        seen.add(cell.name)


def _algorithm(entry: Any) -> tuple[str, dict[str, Any]]:
    """Returns an algorithm's label and its flags of `train`."""
    if isinstance(entry, str):
        entry = {"algorithm": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("algorithm"), str):
        raise InvalidValueError(
            explain(
                f"algorithms has {entry!r}",
                allowed="a name, or a mapping with algorithm, flags of train, and name",
            )
        )
    check_keys(entry, ("algorithm", "name", *_TRAIN), "an algorithm")
    label = entry.get("name", entry["algorithm"])
    if not isinstance(label, str) or not _NAME.fullmatch(label):
        raise InvalidValueError(explain(f"an algorithm is named {label!r}", allowed="letters, - +"))
    return label, {name: value for name, value in entry.items() if name != "name"}


def _curriculum(entry: Any) -> tuple[str, dict[str, Any]]:
    """Returns the suffix of a curriculum's label and its flags of `train`."""
    if entry is None:
        return "", {}
    if isinstance(entry, int) and not isinstance(entry, bool):
        return f"-c{entry}", {"curriculum": entry}
    words = entry if isinstance(entry, list) else [entry]
    if not words or not all(isinstance(word, str) for word in words):
        raise InvalidValueError(
            explain(
                f"curricula has {entry!r}", allowed="null, 0, 1, 2, an actor, or a list of actors"
            )
        )
    return "-" + re.sub(r"[^\w.+-]", "_", "+".join(words))[:60], {"actor": words}


def _seeds(given: Mapping[str, Any]) -> list[int]:
    seeds = given.get("seeds", 1)
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= _MOST:
        return list(range(seeds))
    whole = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
    if not whole or not seeds:
        raise InvalidValueError(
            explain(f"seeds is {seeds!r}", allowed=f"how many, from 1 to {_MOST:,}, or a list")
        )
    return list(dict.fromkeys(seeds))


def _listed(given: Mapping[str, Any], key: str, default: Sequence[Any] = ()) -> list[Any]:
    value = given.get(key, default)
    listed = list(value) if isinstance(value, list | tuple) else [value]
    texts = key != "tasks" or all(isinstance(entry, str) for entry in listed)
    if not listed or not texts or len(listed) > _MOST:
        raise InvalidValueError(
            explain(f"{key} is {str(value)[:80]!r}", allowed="a list", fix=f"Write {key}: [...]")
        )
    return list(_unique(listed))


def _unique(listed: Sequence[Any]) -> Iterator[Any]:
    return (entry for place, entry in enumerate(listed) if entry not in listed[:place])


def _mapping(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = given.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidValueError(explain(f"{key} is {value!r}", allowed="flags by name"))
    return value
