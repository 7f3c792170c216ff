"""rooms/multi-v1 and rooms/single-v1: furnished rooms before and after one action on an object."""
