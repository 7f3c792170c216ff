"""Before/after pairs: collected, loaded from other data sets, split by shift, made to tensors."""

from typing import TYPE_CHECKING

from interverse.core.registry import lazy_names
from interverse.data.pairs.dataset import PairDataset, open_pairs
from interverse.data.pairs.pictures import PairArrays
from interverse.data.pairs.shards import PairHeader
from interverse.data.pairs.splits import SHIFTS, Labels, Split, SplitConfig, split_pairs

if TYPE_CHECKING:
    from interverse.data.pairs.collect import CollectPairs, PairSource, collect_pairs

__all__ = [
    "SHIFTS",
    "CollectPairs",
    "Labels",
    "PairArrays",
    "PairDataset",
    "PairHeader",
    "PairSource",
    "Split",
    "SplitConfig",
    "collect_pairs",
    "open_pairs",
    "split_pairs",
]

# They load the simulator, which nobody needs who only reads pairs.
_LAZY = dict.fromkeys(("CollectPairs", "PairSource", "collect_pairs"), "collect")

__getattr__ = lazy_names(__name__, _LAZY)
