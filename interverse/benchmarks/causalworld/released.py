"""The policies that the original released, played here beside its own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causalworld.records import RELEASED_EPISODES, SCORE, released_scores
from interverse.core.errors import InvalidValueError, explain
from interverse.models.checkpoint import write_json
from interverse.protocols.evaluate import evaluate
from interverse.results.provenance import command
from interverse.rollouts.saved import Released, released

_PROTOCOLS = "P0-P12"  # reaching has P0, P5 and P12, the others P0 to P11
_SEED = 0  # of the original's own run, too
_REACHING = {"P0": 0.47, "P5": 0.49, "P12": 0.32}  # of the original, which no figure of ours shows
_ABOUT = (
    "Last fractional success, {episodes} episodes of each protocol: the original's by its own code "
    "in its own simulator, and those here at the rate its policies were trained at, `skip_frame` "
    "3. A cell of 20 episodes has a standard error of up to 0.11, and all episodes of P0 are one "
    "path. The original ran its protocols in order, with defects that move blocks and goals after "
    "P3."
)


def find_released(given: Sequence[Path]) -> list[tuple[Released, Path]]:
    """Returns the released policies among zips and in folders, told by their content.

    Raises if there is none.
    """
    folders = [sorted(path.rglob("*.zip")) if path.is_dir() else [path] for path in given]
    files = [file for folder in folders for file in folder]
    found = sorted((known, file) for file in files if (known := released(file)) is not None)
    if not found:
        raise InvalidValueError(
            explain(
                f"no policy that CausalWorld released is in {', '.join(map(str, given))}",
                fix="Give the folder causal_world/assets/baseline_actors of its release 1.2",
            )
        )
    return found


def play_released(
    given: Sequence[Path], out: Path, *, episodes: int = RELEASED_EPISODES
) -> list[dict[str, Any]]:
    """Plays the released policies, and writes summary.md and released.json; returns the scores.

    Args:
        given: their zips, or folders that hold them.
        out: a folder; what it holds of the same tests is not played again.
        episodes: of each protocol.
    """
    theirs, kept = {("reaching", 1): _REACHING, **released_scores()}, []
    for policy, file in find_released(given):
        results = evaluate(
            file,
            f"trifinger/{policy.task}-v1",
            _PROTOCOLS,
            episodes=episodes,
            seed=_SEED,
            out=out / file.stem,
            progress=True,
        )
        played = {
            protocol: [None if np.isnan(score) else round(float(score), 4) for score in rows[SCORE]]
            for protocol, rows in results.to_pandas().groupby("protocol", sort=False)
        }
        about = {"policy": file.stem, **policy._asdict(), "original": theirs.get(policy, {})}
        kept.append({**about, "engine": results.provenance.get("engine", {}), "scores": played})
    about = {"command": command(), "seed": _SEED, "episodes": episodes}
    write_json(out / "released.json", {**about, "policies": kept})
    (out / "summary.md").write_text(released_page(kept, episodes))
    return kept


def released_page(kept: Sequence[Mapping[str, Any]], episodes: int) -> str:
    """Returns the table: two rows a policy, the original's numbers and those played here."""
    names = sorted({n for row in kept for n in row["scores"]}, key=lambda n: int(n[1:]))
    lines = ["# CausalWorld's released policies", "", _ABOUT.format(episodes=episodes), ""]
    lines += [f"| policy | | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for row in kept:
        shown = {n: [s for s in scores if s is not None] for n, scores in row["scores"].items()}
        here = {n: np.mean(scores) for n, scores in shown.items() if scores}
        for title, where, cells in (
            (row["policy"], "original", row["original"]),
            ("", "here", here),
        ):
            told = " | ".join(f"{cells[n]:.2f}" if n in cells else "" for n in names)
            lines.append(f"| {title} | {where} | {told} |")
    return "\n".join(lines) + "\n"
