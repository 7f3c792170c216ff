"""Chemistry: objects whose colours change along a causal graph, by chance, when one is painted."""

from interverse.worlds.chemistry.options import SKEWNESS, ChemistryOptions
from interverse.worlds.chemistry.world import Chemistry

__all__ = ["SKEWNESS", "Chemistry", "ChemistryOptions"]
