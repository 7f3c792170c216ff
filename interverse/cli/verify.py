"""`interverse verify`: are the results what was written, and what their episodes give?"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from interverse.cli.json_output import print_json
from interverse.protocols.verify import Verdict, VerificationError
from interverse.protocols.verify import verify as run
from interverse.rollouts.shipped import shipped_path


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
    trust: bool = False
    """Import the code of a world of one's own (MODULE:ID) that the results name."""
    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""


def verify(config: Verify) -> Verdict:
    """Prints the verdict; results that do not hold raise."""
    with redirect_stdout(sys.stderr):  # a policy may print
        verdict = run(
            config.folder,
            policy=None if config.policy is None else shipped_path(config.policy),
            episodes=None if config.all else config.episodes,
            seed=config.seed,
            trust=config.trust,
        )
    if config.json:
        print_json({"verified": not verdict.problems, **asdict(verdict)})
    if verdict.problems:
        raise VerificationError(str(verdict))
    if not config.json:
        Console().print(str(verdict), soft_wrap=True, highlight=False)
    return verdict
