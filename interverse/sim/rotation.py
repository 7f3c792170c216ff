"""Rotations as unit quaternions, by the name they had before they joined the array functions."""

from interverse.sim.arrays import cross, inverse, rotate, unit

__all__ = ["cross", "inverse", "rotate", "unit"]
