"""`--json`: what a verb found or wrote, as one JSON document on standard output."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from interverse.core.files.json_text import plain


def print_json(document: Any) -> None:
    """Writes one JSON document to standard output; paths are text, NaN and infinity are null."""
    text = json.dumps(_finite(plain(document)), indent=1, allow_nan=False)
    sys.stdout.write(text + "\n")


def _finite(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _finite(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree
