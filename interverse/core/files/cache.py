"""The folder of what is kept between runs: $INTERVERSE_CACHE, or the platform's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "INTERVERSE_CACHE"


def cache_folder() -> Path:
    """Returns the folder; it may not exist yet."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else user_cache_path("interverse", appauthor=False)


def datasets_folder() -> Path:
    """Returns the folder data sets are kept in unless another is given."""
    return cache_folder() / "datasets"
