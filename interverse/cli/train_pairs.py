"""`interverse train --task rooms/...`: recognition models on before/after pairs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from interverse.cli.json_output import print_json
from interverse.models.pairs.train import TrainPairs
from interverse.models.pairs.train import train_pairs as run


@dataclass(frozen=True, kw_only=True)
class TrainPairsCommand(TrainPairs):
    """What the library's `TrainPairs` says, and how to print."""

    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""


TrainPairsCommand.__doc__ = TrainPairs.__doc__  # what --help teaches


def train_pairs(config: TrainPairsCommand) -> dict[str, Any]:
    """Trains; curves go to standard error, the results to standard output."""

    def listener(row: Mapping[str, Any]) -> None:
        sys.stderr.write(
            f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  train {row['train']:.3f}"
            f"  valid {row['valid']:.3f}  ID {row['test_id']:.3f}  OOD {row['test_ood']:.3f}"
            f"  {row['seconds']:.1f} s\n"
        )

    with redirect_stdout(sys.stderr):  # libraries may print
        found = run(config, [listener]).record()
    file = config.out / "result.json"
    if config.json:
        told = {name: found[name] for name in ("weights", "sizes", "selection")}
        ends = {"epochs": len(found["history"]), "last": found["history"][-1:]}
        print_json({"run": config.out, "path": file, **ends, **told})
        return found
    lines = [f"{'epoch chosen by':<16}{'ID':>7}{'OOD':>7}"]
    for rule, row in found["selection"].items():
        lines.append(f"{rule:<16}{row['test_id']:7.3f}{row['test_ood']:7.3f}")
    lines.append(f"encoder weights: {found['weights']}; written: {file}")
    sys.stdout.write("\n".join(lines) + "\n")
    return found
