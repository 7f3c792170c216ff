"""Weighted blocks that push each other: the physics half of the CausalMBRL benchmark."""

from interverse.worlds.blocks.options import BlocksOptions
from interverse.worlds.blocks.world import Blocks

__all__ = ["Blocks", "BlocksOptions"]
