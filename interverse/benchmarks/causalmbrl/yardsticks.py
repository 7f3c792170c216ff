"""Yardsticks of a world: scores of the true world, and of answers that know nothing.

`python -m interverse.benchmarks.causalmbrl.yardsticks OUT WORLD [OPTION=VALUE ...]` writes one
record, at the sizes of the full budget. The page of results prints them above the models.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from interverse.fit.materials import GraphTrials, Materials
from interverse.fit.scores import ceiling
from interverse.fit.settings import Budget, budget
from interverse.fit.work import Record, run_stamp
from interverse.models.checkpoint import read_json
from interverse.models.effects import score_effects

TRUE, UNCHANGED = "true world", "altered scene, nothing done"


def write_yardsticks(
    out: Path, world: str, sizes: Budget, options: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Returns a world's yardsticks after writing them to `out`; what is there stays."""
    asked = {"world": world, "references": sizes.test, "trials": sizes.trials}
    asked |= {"options": dict(options)} if options else {}
    record = Record(yardstick_file(out, world, options), asked)
    if not record.content["scores"]:
        words = [world, *(f"{name}={value}" for name, value in options.items())]
        command = f"python -m {__spec__.name} OUT {shlex.join(words)}"
        record.made_by_run(run_stamp(command, "cpu"))
        with TemporaryDirectory() as data:
            made = Materials(world, sizes, device="cpu", folder=Path(data), options=options)
            record.note("scores", _scores(made))
    return record.content["scores"]


def _scores(materials: Materials) -> dict[str, Any]:
    return {
        "unchanged": materials.unchanged,
        "graph": ceiling(materials.graph),
        "all_edges": _all_edges(materials.graph),
        "counterfactual": materials.counterfactual_ceilings,
    }


def yardstick_file(
    folder: Path, world: str, options: Mapping[str, Any] = MappingProxyType({})
) -> Path:
    """Returns where a world's yardsticks lie."""
    told = "".join(f".{name}-{value}" for name, value in options.items())
    return folder / f"{world.replace('/', '-')}{told}.json"


def yardstick_values(folder: Path, world: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields each yardstick of a world under `folder` with its scores by their short names."""
    path = yardstick_file(folder, world)
    if not path.exists():
        return
    scores = read_json(path)["scores"]
    for name, found in scores["counterfactual"].items():
        values = {"CF-H@1": found["hits"], "effect error": found["effect_error"]}
        if name == TRUE:
            values |= graph_values(scores["graph"])
        if name == UNCHANGED:
            values |= {f"H@1 after {k}": scores["unchanged"][k]["hits"] for k in ("1", "5")}
        yield name, values
    if "all_edges" in scores:
        yield "all edges", graph_values(scores["all_edges"])


def graph_values(scores: Mapping[str, Any]) -> dict[str, float]:
    """Returns what the page shows of a graph's scores, by short names."""
    fixed, precision = scores["fixed"], scores["edges"]["average_precision"]
    return {"graph AP": precision, "graph F1": fixed["f1"], "graph SHD": fixed["shd"]}


def _all_edges(graph: GraphTrials) -> dict[str, Any]:
    """Returns the scores of an answer that has every edge, equally strong."""
    every = np.ones_like(graph.truth.total)
    found = replace(graph.truth, total=every, direct=every)
    return asdict(
        score_effects(graph.trials.graph, truth=graph.truth, found=found, one_step=graph.one_step)
    )


def main(words: Sequence[str]) -> None:
    """Writes the record of one world with its options."""
    out, world, *pairs = words
    options = dict(pair.split("=", 1) for pair in pairs)
    write_yardsticks(Path(out), world, budget("full", "contrastive"), options)


if __name__ == "__main__":
    main(sys.argv[1:])
