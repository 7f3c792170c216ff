"""Data sets: grid worlds with the published splits, and episodes of any world with twins."""

from typing import TYPE_CHECKING

from interverse.core.registry import lazy_names
from interverse.data.dataset import (
    Dataset,
    GridScene,
    Header,
    SceneWorld,
    Transitions,
    draw_frames,
    open_dataset,
)
from interverse.data.dataset import GridScene as Scene
from interverse.data.generate import Collect, collect
from interverse.data.original import export_original, import_original
from interverse.data.splits import SPLITS, DatasetSplit, load_dataset, splits
from interverse.data.splits import DatasetSplit as Split

if TYPE_CHECKING:
    from interverse.data.episodes import CollectEpisodes, TwinFolder, collect_episodes
    from interverse.data.exports import export_lance, export_parquet, export_worldmodel, to_minari

__all__ = [
    "SPLITS",
    "Collect",
    "CollectEpisodes",
    "Dataset",
    "DatasetSplit",
    "GridScene",
    "Header",
    "Scene",
    "SceneWorld",
    "Split",
    "Transitions",
    "TwinFolder",
    "collect",
    "collect_episodes",
    "draw_frames",
    "export_lance",
    "export_original",
    "export_parquet",
    "export_worldmodel",
    "import_original",
    "load_dataset",
    "open_dataset",
    "splits",
    "to_minari",
]

# Episodes load the simulator, exports pyarrow: nobody needs them who only reads.
_LAZY = dict.fromkeys(("CollectEpisodes", "TwinFolder", "collect_episodes"), "episodes")
_LAZY |= dict.fromkeys(
    ("export_lance", "export_parquet", "export_worldmodel", "to_minari"), "exports"
)

__getattr__ = lazy_names(__name__, _LAZY)
