"""The published tables of the CausalMBRL benchmark, made again, beside what was published.

`interverse reproduce --table 3` fits the world models of Table 3, scores them, and writes our
numbers next to the printed ones.
"""
