"""Cost of `import interverse` beside `import gymnasium`, in fresh processes."""

from __future__ import annotations

import subprocess
import sys

from interverse.bench.measure import WALL, Row, best_pair


def imports() -> list[Row]:
    """Returns the import time as a ratio."""

    def fresh(module: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    pair = (lambda: fresh("interverse"), lambda: fresh("gymnasium"))
    ours, theirs = best_pair(*pair, clock=WALL)
    return [
        Row(
            name="import interverse",
            metric="seconds",
            value=ours,
            unit="s",
            ratio=ours / theirs,
            baseline="import gymnasium",
            target="ratio at most 1.5",
        )
    ]
