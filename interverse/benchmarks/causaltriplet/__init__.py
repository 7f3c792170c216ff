"""The published tables of Causal Triplet, made again, beside what was published.

`interverse reproduce --benchmark causaltriplet --table 2` trains the recognition models of Table 2
on generated rooms, or on the official data where a folder is given.
"""
