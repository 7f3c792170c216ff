"""Confounding curves and recovery scores, from the sets of `recognition_sets.py`.

Usage: python tools/recognition_runs.py curve|recovery SETS OUT [--seeds 10] [--device cpu]
[--epochs 100] [--steps 3000] [--methods M ...] [--time-limit S] [--unscored]. Rows that are there
are not made again. `--unscored` keeps latents in place of scores: `rescore SETS OUT` makes them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recognition_sets import SETS, TWINNED, read
from torch import Tensor
from torch.nn import functional

from interverse.benchmarks.causaltriplet.confounding import confounding_curve
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import read_json_object
from interverse.core.files.zip_archive import read_npz
from interverse.data.pairs import Split, SplitConfig, split_pairs
from interverse.fit.work import run_stamp
from interverse.models.pairs.config import recipe
from interverse.models.pairs.readout import feature_scores, picture_groups
from interverse.models.pairs.recovery import (
    METHODS,
    SIZE,
    Method,
    Recovered,
    Recovery,
    picture_score,
    recover,
    small_images,
)
from interverse.models.pairs.tensors import PairTensors
from interverse.results.provenance import command

_TEST_HOUSES, _VALID = 0.25, 100


def curves(sets: Path, out: Path, asked: argparse.Namespace) -> None:
    """Trains heads at every strength that was drawn, and tests them without the confounder."""
    held = {}
    for name in SETS:
        kind, _, strength = name.partition("-")
        if kind == "confounded" and (sets / f"{name}.npz").exists():
            held[float(strength)] = read(sets, name)[0].to(asked.device)
    fit = replace(recipe("lite0").fit, epochs=asked.epochs, device=asked.device)
    for row in confounding_curve(held, out, seeds=asked.seeds, fit=fit, say=_say):
        _say(f"{row['model']} {row['strength']} {row['test_id']['mean']} {row['test_ood']['mean']}")


class Twins:
    """Pictures of what another action would have given, beside those of the fact."""

    def __init__(self, sets: Path, images: Tensor) -> None:
        held = read_npz(sets / f"{TWINNED}-twins.npz")
        self.images, self.verb = images, torch.from_numpy(held["twin_verb"])
        pictures = torch.from_numpy(held["twins"]).float()
        self.true = functional.interpolate(pictures, size=(SIZE, SIZE), mode="area") / 255

    def scores(self, model: Any, rows: np.ndarray[Any, Any], verb: Tensor) -> dict[str, float]:
        """Returns how much of the counterfactual change is imagined, and what trivial ones have."""
        at = torch.as_tensor([row for row in rows.tolist() if self.verb[row] >= 0])
        before, fact, true = self.images[at, 0], self.images[at, 1].float() / 255, self.true[at]
        device = next(model.parameters()).device
        imagined, same = (
            model.imagine(before.to(device), verbs[at].to(device)).cpu()
            for verbs in (self.verb, verb)
        )
        return {
            "pairs": len(at),
            "picture_score": picture_score(imagined, true, fact),
            "before_score": picture_score(before.float() / 255, true, fact),
            "fact_action_score": picture_score(same, true, fact),
        }


def recovery(sets: Path, out: Path, asked: argparse.Namespace) -> None:
    """Trains each method on graded pairs, seed by seed, and scores factors and pictures."""
    pairs, told = read(sets, TWINNED)
    twins = Twins(sets, small_images(pairs))
    until = time.monotonic() + asked.time_limit
    for seed in range(1, asked.seeds + 1):
        split = _split(pairs, seed)
        for method in asked.methods:
            path = out / f"{method}.seed-{seed}.json"
            if path.exists() or time.monotonic() > until:
                continue
            began = time.monotonic()
            how = Recovery(method=method, steps=asked.steps, device=asked.device)
            found = recover(pairs, split, how, seed=seed, scored=not asked.unscored)
            row = _row(found, method, seed) | {"set": told}
            row["sizes"] = {"train": len(split.train), "test_id": len(split.test_id)}
            row["runs"] = [run_stamp(command(), asked.device)]
            if method == "citris":
                row["pictures"] = twins.scores(found.model, split.test_id, pairs.verb)
            if asked.unscored:
                _keep_latents(path, found, pairs.take(split.test_id))
            row["seconds"] = round(time.monotonic() - began, 1)
            write_json(path, row, sort_keys=False)
            _say(
                f"{method} seed {seed}: {row['seconds']} s, MCC {found.scores.get('mcc_spearman')}"
            )


def _keep_latents(path: Path, found: Recovered, tested: PairTensors) -> None:
    """Writes latents and true factors of the test pairs, for scores that are made elsewhere."""
    device = next(found.model.parameters()).device
    with torch.no_grad():
        parts = small_images(tested).split(256)
        latents = torch.cat([found.model.encode(p.flatten(0, 1).to(device))[0] for p in parts])
    content: dict[str, Any] = {
        f"factor/{name}": values.ravel() for name, values in tested.factors.items()
    }
    content |= {"latents": latents.cpu().numpy()}
    content |= {"groups": picture_groups(tested, np.arange(len(tested)))}
    np.savez_compressed(path.with_suffix(".npz"), **content)


def rescore(_: Path, out: Path, asked: argparse.Namespace) -> None:
    """Makes the scores of methods that were only trained; latents are then dropped."""
    for path in sorted(out.glob("*.npz")):
        row, held = read_json_object(path.with_suffix(".json")), read_npz(path)
        latents = held.pop("latents")
        groups = held.pop("groups", np.arange(len(latents)) // 2)  # older files: by pair
        factors = {name.removeprefix("factor/"): values for name, values in held.items()}
        blocks = list(range(latents.shape[1]))
        scores = feature_scores(latents, factors, blocks, row["seed"], groups)
        row["scores"] = {name: value for name, value in scores.items() if name != "r2_blocks"}
        row["runs"].append(run_stamp(command(), asked.device))
        write_json(path.with_suffix(".json"), row, sort_keys=False)
        path.unlink()


def _split(pairs: PairTensors, seed: int) -> Split:
    config = SplitConfig(
        shift="random",
        variant="mended",
        test_houses=_TEST_HOUSES,
        valid=min(_VALID, len(pairs) // 10),
        train=len(pairs),
    )
    return split_pairs(pairs.labels, config, seed, "graded")


def _row(found: Recovered, method: Method, seed: int) -> dict[str, Any]:
    scores = {name: value for name, value in found.scores.items() if name != "r2_blocks"}
    return {
        "method": method,
        "seed": seed,
        "steps": found.how.steps,
        "latents": found.how.latents,
        "losses": list(found.losses),
        "scores": scores,
    }


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description="Confounding curves and recovery scores.")
    parser.add_argument("kind", choices=["curve", "recovery", "rescore"])
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--unscored", action="store_true", help="leaves scores to rescore")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds, of recovery")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    {"curve": curves, "recovery": recovery, "rescore": rescore}[asked.kind](
        asked.sets, asked.out, asked
    )


if __name__ == "__main__":
    main()
