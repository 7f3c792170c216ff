"""Data sets: grid worlds with the published splits, and episodes of any world with twins."""

from interverse.data.dataset import Dataset, Transitions, draw_frames, open_dataset
from interverse.data.episodes import CollectEpisodes, TwinFolder, collect_episodes
from interverse.data.generate import Collect, collect
from interverse.data.minari import to_minari
from interverse.data.original import export_original, import_original
from interverse.data.schema import Header, Scene, SceneWorld
from interverse.data.splits import SPLITS, Split, load_dataset, splits

__all__ = [
    "SPLITS",
    "Collect",
    "CollectEpisodes",
    "Dataset",
    "Header",
    "Scene",
    "SceneWorld",
    "Split",
    "Transitions",
    "TwinFolder",
    "collect",
    "collect_episodes",
    "draw_frames",
    "export_original",
    "import_original",
    "load_dataset",
    "open_dataset",
    "splits",
    "to_minari",
]
