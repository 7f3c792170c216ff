"""`interverse train --task rooms/...`: recognition models on before/after pairs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from interverse.models.pairs.train import TrainPairs
from interverse.models.pairs.train import train_pairs as run

__all__ = ["TrainPairs", "train_pairs"]


def train_pairs(config: TrainPairs) -> dict[str, Any]:
    """Trains; curves go to standard error, the results to standard output."""

    def listener(row: Mapping[str, Any]) -> None:
        sys.stderr.write(
            f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  train {row['train']:.3f}"
            f"  valid {row['valid']:.3f}  ID {row['test_id']:.3f}  OOD {row['test_ood']:.3f}"
            f"  {row['seconds']:.1f} s\n"
        )

    found = run(config, [listener]).record()
    lines = [f"{'epoch chosen by':<16}{'ID':>7}{'OOD':>7}"]
    for rule, row in found["selection"].items():
        lines.append(f"{rule:<16}{row['test_id']:7.3f}{row['test_ood']:7.3f}")
    lines.append(f"encoder weights: {found['weights']}; written: {config.out / 'result.json'}")
    sys.stdout.write("\n".join(lines) + "\n")
    return found
