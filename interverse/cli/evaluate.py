"""`interverse evaluate`: a policy under protocols, as a table and Parquet files."""

from __future__ import annotations

import inspect
import math
import os
import re
from dataclasses import MISSING, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import tyro

from interverse.cli.flags import (
    CONFIG_FILE,
    AsJson,
    OptionWords,
    Trust,
    parse_pairs,
    tell,
    values_of,
)
from interverse.core.errors import InvalidValueError
from interverse.core.files.yaml_text import read_yaml
from interverse.metrics import METRICS, metric_facts
from interverse.protocols.evaluate import RESULT_FILE
from interverse.protocols.evaluate import evaluate as run
from interverse.results import Results, tables
from interverse.results.schema import SCORES
from interverse.results.text import TextTable, metric_label
from interverse.rollouts.policy_world import PolicyWorld, policy_world
from interverse.rollouts.saved import SHIPPED, shipped_path
from interverse.worlds.own_code import check_trusted

# What is written otherwise on a command line than in Python; all else is the signature's.
_WRITTEN: dict[str, tuple[Any, Any]] = {
    "policy": (str, "random"),
    "task": (str | None, None),
    "protocols": (str, "all"),
    "out": (Path | None, None),
    "seeds": (tuple[int, ...], (1,)),
    "metrics": (tuple[str, ...], ()),
}
_RUN = "The folder of a training run, or a policy of the package: in the world it was trained in."


def _config() -> Any:
    """Returns the dataclass of the flags: the arguments of `evaluate`, with its words on each."""
    hints, told = get_type_hints(run), argument_help(run)
    told["seeds"] = (
        "how many seeds, counted on from `seed`; several numbers are the seeds themselves"
    )
    told["metrics"] += "; the table shows one primary metric and what is named here, or all"
    made: list[tuple[str, Any, Any]] = []
    for name, given in inspect.signature(run).parameters.items():
        if given.kind is given.VAR_KEYWORD or name == "progress":
            continue
        kind, default = _WRITTEN.get(name, (hints[name], given.default))
        text = f"{told[name][:1].upper()}{told[name][1:]}".rstrip(".") + "."
        default = field(default=MISSING if default is given.empty else default)
        made.append((name, Annotated[kind, tyro.conf.arg(help=text)], default))
    run_kind = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(help=_RUN)]
    made += [("run", run_kind, field(default=None)), ("option", OptionWords, field(default=()))]
    made += [("trust", Trust, field(default=False)), ("json", AsJson, field(default=False))]
    config = make_dataclass("Evaluate", made, frozen=True, kw_only=True)
    config.__module__ = __name__
    config.__doc__ = "Scores a policy under protocols; started again, it goes on where it stopped."
    return config


def argument_help(function: Any) -> dict[str, str]:
    """Returns what a function's docstring says of each argument, by name."""
    text = inspect.getdoc(function) or ""
    section = re.split(r"\n\n", text.partition("Args:\n")[2], maxsplit=1)[0]
    found = re.findall(r"^    (\*{0,2}\w+): (.*(?:\n     .*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


Evaluate = _config()


def evaluate(config: Any) -> Results:
    """Runs the evaluation that an `Evaluate` asks for and writes its table."""
    given = values_of(config, "option")
    options = parse_pairs(config.option, [*given, "trust", "json"])
    # Scores that every table has need no computing: naming one shows it.
    asked = given["metrics"]
    if "help" in asked:
        rows = []
        for name in METRICS:
            facts = metric_facts(name)
            ends = "{:g} to {:g}".format(*facts["range"]) if facts.get("range") else ""
            rows.append((name, ends, facts.get("better", "more"), facts.get("about", "")))
        header = ("metric", "range", "better", "what it is")
        tell(config, rows, TextTable(header=header, rows=tuple(rows)))
        return Results()
    given["metrics"] = tuple(name for name in asked if name not in (*SCORES, "all"))
    given["seeds"] = config.seeds[0] if len(config.seeds) == 1 else config.seeds
    known = known_policy(given.pop("run") or config.policy, config.task)
    given |= {"policy": known.policy, "task": known.task}
    results = run(**given, progress=True, **options)
    shown: list[Any] = [_shown(results, asked)]
    if config.out is not None:
        shown.append(f"Results in {config.out}. Next: interverse report {config.out}")
    tell(config, summary(results), *shown)
    return results


def _shown(results: Results, asked: tuple[str, ...]) -> TextTable:
    """Returns the table for a terminal: one primary metric, whether solved, and what was asked."""
    metrics = list(results.metrics)
    if "all" not in asked:
        wanted = [*tables.brief_metrics(results), *asked]
        metrics = [name for name in metrics if name in wanted]
    table = tables.scores(results, metrics=metrics).lifted()
    rest = [name for name in results.metrics if name not in metrics]
    more = f"; also measured: {', '.join(rest)} (--metrics NAME or all)" if rest else ""
    header = tuple(metric_label(name) for name in table.header)
    return replace(table, header=header, caption=table.caption + more)


def known_policy(given: str, task: str | None) -> PolicyWorld:
    """Returns a policy by name or folder with its world; a `task` given replaces its own."""
    given = shipped_path(given)
    named = given in ("random", "scripted")
    if (os.sep in given or (task is None and not named)) and not Path(given).exists():
        raise InvalidValueError(
            f"there is no {given}",
            allowed=f"the folder of a run or of a policy, or one of {', '.join(SHIPPED)}",
        )
    known = policy_world(given)
    if known.task is None:
        _check_folder(Path(given))
    if task is None and known.task is None:
        raise InvalidValueError(
            f"{given} does not say which world it is for",
            fix="Name the folder of a training run, or pass an id with --task",
        )
    if task is not None:
        return known.in_task(task)
    check_trusted(given, known.task, {})
    return known


def _check_folder(folder: Path) -> None:
    """Raises for a folder of the package without a policy: a run's that goes on, or no run's."""
    config, scored = folder / CONFIG_FILE, (folder / RESULT_FILE).is_file()
    if not config.is_file() and not scored:
        return
    told = read_yaml(config) if config.is_file() else {}
    verb = told.get("verb", "evaluate" if scored else "train")
    if verb == "train":
        problem = f"the run {folder} has no policy yet"
        fix = f"Go on with it: interverse train --config {config}"
    else:
        problem = f"{folder} is a folder of `interverse {verb}` and holds no policy"
        named = told.get("run") or told.get("policy", "POLICY")
        task = f" --task {told['task']}" if "task" in told else ""
        scores = f"what it scored ({named}{task})" if verb == "evaluate" else "a policy"
        fix = f"Name {scores}, or the folder of a training run"
    raise InvalidValueError(problem, fix=fix)


def summary(results: Results) -> list[dict[str, Any]]:
    """Returns one entry per protocol: scored, refused, and each metric's mean."""
    out = []
    for protocol in results.protocols:
        part = results.select(protocol=protocol)
        refused = int(part.refused.sum())
        entry: dict[str, Any] = {"task": results.tasks[0], "protocol": protocol}
        entry |= {"episodes": len(part), "refused": refused}
        for metric in part.metrics:
            scores = part.scores(metric)[~part.refused]
            mean = float(scores.mean()) if len(scores) else math.nan
            entry[metric] = mean if math.isfinite(mean) else None
        out.append(entry)
    return out
