"""The published tables and figures of DMC Remastered, made again, beside what was published.

`interverse reproduce --benchmark dmcr --table 1` trains pixel agents in the default look and
measures what they lose in looks they never saw.
"""
