"""CausalWorld's Figs. 5, 6 and 11: learning curves and twelve protocols, by task and curriculum."""
