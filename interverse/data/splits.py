"""The published splits as a literal table, and `load_dataset`, which makes what is missing.

Nothing is downloaded: a data set is collected on the first call (seconds) and kept in a folder,
`$INTERVERSE_CACHE/datasets` or the platform's cache folder, unless another is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, final

from interverse.core.errors import (
    InvalidValueError,
    UnknownNameError,
    check_name,
)
from interverse.core.files.atomic import datasets_folder
from interverse.core.files.json_text import read_json_object
from interverse.core.type_checks import blames_types
from interverse.data.collector import HEADER
from interverse.data.dataset import open_dataset
from interverse.data.generate import Collect, collect, header_of
from interverse.worlds import WORLDS
from interverse.worlds.world import parse_options


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSplit:
    """One part of a benchmark: how many episodes, how long, which seed, which distribution."""

    episodes: int
    steps: int
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


def _split(episodes: int, steps: int, seed: int, mode: str | None = None) -> DatasetSplit:
    options = {} if mode is None else {"mode": mode}
    return DatasetSplit(episodes=episodes, steps=steps, seed=seed, options=options)


_TRAINING = {
    "train": _split(1000, 100, 1),
    "valid": _split(200, 100, 2),
    "test": _split(10_000, 10, 3),
}
# The original names these worlds and ships no command that draws from them: sizes as of its tests.
_FEW_SHOT = {
    f"few-shot-v{count}": _split(10_000, 10, 4 + count, f"FewShot-v{count}") for count in (1, 2, 3)
}
SPLITS: Mapping[str, Mapping[str, DatasetSplit]] = {
    "blocks/observed": {
        **_TRAINING,
        "test-v1": _split(10_000, 10, 4, "Test-v1"),
        "test-v2": _split(10_000, 10, 5, "Test-v2"),
        "test-v3": _split(10_000, 10, 6, "Test-v3"),
        "zero-shot": _split(10_000, 10, 7, "ZeroShot"),
        "zero-shot-shape": _split(10_000, 10, 8, "ZeroShotShape"),
    },
    "blocks/unobserved": {
        **_TRAINING,
        "zero-shot-shape": _split(10_000, 10, 4, "ZeroShotShape"),
        **_FEW_SHOT,
    },
    "blocks/fixed_unobserved": {**_TRAINING, **_FEW_SHOT},
    "chemistry": {
        "train": _split(1000, 100, 1),
        "valid": _split(200, 100, 3),
        "test": _split(10_000, 10, 2),
    },
    "chemistry/delayed": {
        "train": _split(1000, 50, 1),
        "valid": _split(200, 100, 3),
        "test": _split(10_000, 10, 2),
    },
}


def splits(id: str, **options: Any) -> Mapping[str, DatasetSplit]:
    """Returns the published splits of a world.

    >>> splits("blocks/observed-3-v1")["valid"].episodes
    200
    """
    entry = WORLDS[id]
    parsed: Any = parse_options(entry.load().options_type, {**entry.options, **options})
    family = id.partition("/")[0]
    if family == "blocks":
        return SPLITS[f"blocks/{parsed.setting}"]
    if family == "chemistry":
        return SPLITS["chemistry/delayed" if parsed.mode == "delayed" else "chemistry"]
    raise UnknownNameError(
        f"{id} has no published splits",
        allowed="ids of blocks and chemistry",
        fix="Collect a data set of your own with collect",
    )


def published(id: str, seed: int, options: Mapping[str, Any]) -> str:
    """Returns the name of the published split whose episodes a seed plays; empty for none.

    >>> published("blocks/observed-3-v1", 3, {}), published("blocks/observed-3-v1", 9, {})
    ('test', '')
    """
    blocks = id.startswith("blocks/")  # there a mode is a place to test in, in chemistry a world
    mode = options.get("mode", "Train") if blocks else "Train"
    named = splits(id, **options).items()
    same = (n for n, s in named if (s.seed, s.options.get("mode", "Train")) == (seed, mode))
    return next(same, "")


@blames_types
def load_dataset(
    id: str,
    split: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    episodes: int | None = None,
    images: bool = False,
    contacts: float = 0.0,
    progress: bool = False,
    **options: Any,
) -> Any:
    """Returns a data set by a world's id, made now if it is not in the folder yet, or by its path.

    Worlds of blocks and chemistry give a `Dataset`, worlds of rooms and folders of pairs a
    `PairDataset` (see `interverse.data.pairs.load.load_pairs`), folders of episodes a `TwinFolder`.

    Args:
        id: a world of blocks, chemistry or rooms; or what `interverse collect` or `import_original`
            wrote, or a folder of pairs.
        split: "train" (so if None), "valid", "test"; blocks have more, such as "test-v1",
            "zero-shot" and "few-shot-v1", see `splits`. For pairs
            None is all of them, "comp/train" a shift and a part of it.
        folder: where data sets are kept; None takes the user's cache folder.
        episodes: only the first so many of the split's; None takes all. `collect` makes more.
        images: store pixels in the file; without, they are drawn when asked for, the same bytes.
        contacts: blocks only: from 0 to 1, how often an action that pushes is drawn where there is
            one. Uniform play pushes in 1.7% (three blocks) and 3.0% (five) of its steps, 0.5 gives
            8.2% and 15.1%, 1 gives 10.6% and 18.2%. The published splits have 0.
        progress: show a bar on standard error while it is made.
        **options: options of the world, as for `make`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = load_dataset("blocks/observed-3-v1", "test", folder=folder, episodes=4)
    >>> data.images().shape, data.actions.shape
    ((4, 11, 50, 50, 3), (4, 10))
    """
    path = Path(id)
    kind = "grid" if path.is_file() else ""
    if (path / HEADER).is_file():
        kind = read_json_object(path / HEADER).get("kind", "episodes")
    if kind in ("grid", "episodes"):
        asked: dict[str, Any] = {"split": split, "episodes": episodes, "folder": folder, **options}
        asked |= {"images": images or None, "contacts": contacts or None}
        told = ", ".join(name for name, value in asked.items() if value is not None)
        if told:
            raise InvalidValueError(f"{id} is there already: {told} cannot be chosen")
        if kind == "grid":
            return open_dataset(path)
        from interverse.data.episodes import TwinFolder  # loads the simulator

        return TwinFolder(path)
    if id.startswith("rooms/") or path.is_dir():
        # They need pillow, which grid worlds do not.
        from interverse.data.pairs.load import load_pairs

        if episodes is not None or images or contacts:
            told = f"{id} has pairs, not episodes: episodes, images, contacts cannot be chosen"
            raise InvalidValueError(told)
        return load_pairs(id, split, folder=folder, progress=progress, **options)
    split = "train" if split is None else split
    table = splits(id, **options)
    check_name("split", split, table, fix=f"These are the splits of {id}")
    chosen = table[split]
    for name, value in chosen.options.items():
        if options.get(name, value) != value:
            raise InvalidValueError(
                f"{name} is {options[name]!r}, but split {split!r} is {name} {value!r}",
                fix=f"Leave {name} out, or choose another split",
            )
    if isinstance(episodes, Integral) and episodes > chosen.episodes:
        raise InvalidValueError(
            f"episodes is {episodes}, and split {split!r} has {chosen.episodes}",
            fix="Collect a data set of your own with collect",
        )
    wanted: Any = int(episodes) if isinstance(episodes, Integral) else episodes
    config = Collect(
        id=id,
        out=Path(),
        episodes=chosen.episodes if wanted is None else wanted,
        steps=chosen.steps,
        seed=chosen.seed,
        images=images,
        contacts=contacts,
        options={**options, **chosen.options},
        progress=progress,
    )
    header = header_of(config)
    name = f"{id.replace('/', '-')}.{split}.{header.file_name}.h5"
    path = (datasets_folder() if folder is None else Path(folder)) / name
    return open_dataset(collect(replace(config, out=path)))
