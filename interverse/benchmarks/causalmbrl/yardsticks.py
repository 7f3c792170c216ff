"""Yardsticks of a world: scores of the true world, and of answers that know nothing.

`python -m interverse.benchmarks.causalmbrl.yardsticks OUT WORLD ...` writes one record per world,
at the sizes of the full budget. The page of results prints them above the models.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interverse.benchmarks.causalmbrl.budgets import Budget, budget
from interverse.benchmarks.causalmbrl.materials import Materials
from interverse.benchmarks.causalmbrl.provenance import commit, source_digest
from interverse.benchmarks.causalmbrl.rows import Record
from interverse.benchmarks.causalmbrl.scores import ceiling
from interverse.models.checkpoint import read_json

TRUE, UNCHANGED = "true world", "altered scene, nothing done"


def write_yardsticks(out: Path, world: str, sizes: Budget) -> Mapping[str, Any]:
    """Returns a world's yardsticks after writing them to `out`; what is there stays."""
    name = world.replace("/", "-")
    asked = {"world": world, "references": sizes.test, "trials": sizes.trials}
    record = Record(out / f"{name}.json", asked)
    if not record.content["scores"]:
        materials = Materials(world, sizes, device="cpu", folder=out / "data")
        command = f"python -m {__spec__.name} OUT {shlex.quote(world)}"
        run = {"commit": commit(), "source": source_digest(), "command": command, "device": "CPU"}
        record.made_by_run(run)
        scores = {
            "unchanged": materials.unchanged,
            "graph": ceiling(materials.graph),
            "counterfactual": materials.counterfactual_ceilings,
        }
        record.note("scores", scores)
    return record.content["scores"]


def yardstick_values(folder: Path, world: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields each yardstick of a world under `folder` with its scores by their short names."""
    path = folder / f"{world.replace('/', '-')}.json"
    if not path.exists():
        return
    scores = read_json(path)["scores"]
    for name, found in scores["counterfactual"].items():
        values = {"CF-H@1": found["hits"], "effect error": found["effect_error"]}
        if name == TRUE:
            fixed = scores["graph"]["fixed"]
            values |= {"graph F1": fixed["f1"], "graph SHD": fixed["shd"]}
        if name == UNCHANGED:
            values |= {f"H@1 after {k}": scores["unchanged"][k]["hits"] for k in ("1", "5")}
        yield name, values


def main(words: Sequence[str]) -> None:
    """Writes the records of some worlds."""
    for world in words[1:]:
        write_yardsticks(Path(words[0]), world, budget("full", "contrastive"))


if __name__ == "__main__":
    main(sys.argv[1:])
