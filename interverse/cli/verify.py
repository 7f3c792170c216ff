"""`interverse verify`: do results hold what their episodes give? `diff`: how two differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from interverse.cli.flags import AsJson, Trust, tell
from interverse.protocols.verify import Verdict, VerificationError
from interverse.protocols.verify import verify as run
from interverse.reports.runs import read_folder
from interverse.results.comparisons import made_by, scored
from interverse.results.text import Estimate, TextTable
from interverse.rollouts.saved import shipped_path


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Checks the hashes of an evaluation's files and plays a sample of its episodes again."""

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `interverse evaluate --out` wrote."""
    policy: str | None = None
    """The policy that was scored, its run, or its name; by default the one that the results name or
    lie beside, where it is unchanged."""
    episodes: int = 20
    """How many episodes to play again, drawn from all."""
    all: bool = False
    """Play every episode again."""
    seed: int = 0
    """The seed of the draw."""
    trust: Trust = False
    json: AsJson = False


def verify(config: Verify) -> Verdict:
    """Prints the verdict; results that do not hold raise."""
    verdict = run(
        config.folder,
        policy=None if config.policy is None else shipped_path(config.policy),
        episodes=None if config.all else config.episodes,
        seed=config.seed,
        trust=config.trust,
    )
    told = [] if verdict.problems else [str(verdict)]
    tell(config, {"verified": not verdict.problems, **asdict(verdict)}, *told)
    if verdict.problems:
        raise VerificationError(str(verdict))
    return verdict


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Compares two evaluations: what made them, and the scores of the episodes they share."""

    a: Annotated[Path, tyro.conf.Positional]
    """A folder that `interverse evaluate --out` or `train --out` wrote."""
    b: Annotated[Path, tyro.conf.Positional]
    """Another one."""
    json: AsJson = False


def diff(config: Diff) -> None:
    """Prints both tables and one line with the verdict."""
    a, b = (read_folder(folder).final() for folder in (config.a, config.b))
    made, scores = made_by(a, b), scored(a, b)
    rows = [dict(zip(scores.header, row, strict=True)) for row in scores.rows]
    differ = [
        f"{row['score']} under {row['protocol']}" for row in rows if row["verdict"] == "differs"
    ]
    told = "The shared scores are equal to the last bit."
    if not rows:
        told = "Nothing to compare: they share no scored episode."
    elif differ:
        told = f"It matters: {', '.join(differ[:8])} differ beyond chance."
    elif any(row["verdict"] == "within chance" for row in rows):
        told = "Scores differ, but no more than chance explains."
    found = {"made_by": _rows(made), "scores": _rows(scores)}
    document = {**found, "note": scores.caption, "verdict": told}
    tell(config, document, made.lifted(), scores.lifted(), told)


def _rows(table: TextTable) -> list[dict[str, Any]]:
    """Returns the rows by column; an estimate as its value and the ends of its interval."""
    names = [name.lower().rstrip("?").replace(" ", "_") for name in table.header]
    cells = ([asdict(c) if isinstance(c, Estimate) else c for c in row] for row in table.rows)
    return [dict(zip(names, row, strict=True)) for row in cells]
