"""Before/after pairs: collected, loaded from other data sets, split by shift, made to tensors."""

from interverse.data.pairs.collect import CollectPairs, PairSource, collect_pairs
from interverse.data.pairs.dataset import PairDataset, open_pairs
from interverse.data.pairs.header import PairHeader
from interverse.data.pairs.splits import SHIFTS, Labels, Split, SplitConfig, split_pairs
from interverse.data.pairs.tensors import PairArrays

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
