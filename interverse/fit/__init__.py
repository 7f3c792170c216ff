"""Fitting a world model from a world's id: data, training, every score, and one page of them."""
