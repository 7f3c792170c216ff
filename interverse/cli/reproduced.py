"""Output of every `interverse reproduce`: results on standard output, the log on standard error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def write_found(found: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Writes the comparison as JSON, or the summary that lies in the output folder."""
    if as_json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.write((out / "summary.md").read_text())
