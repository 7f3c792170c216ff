"""Pairs that several files ask for."""

import itertools

from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs


def pairs_of(view, count, houses=range(1000), *, depth=False, **options):
    """Returns the first pairs of these houses, by default of all from 0 on."""
    made = (
        item
        for house in houses
        for item in generate_pairs(f"rooms/{view}-v1", 0, house, options=options, depth=depth)
    )
    return list(itertools.islice((item for item in made if isinstance(item, Pair)), count))
