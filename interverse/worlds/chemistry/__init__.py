"""Chemistry: objects whose colours change along a causal graph, by chance, when one is painted."""
