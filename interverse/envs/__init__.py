"""Worlds as Gymnasium environments: one, or thousands at once."""

from interverse.envs.make import make, make_vec, register
from interverse.envs.single import WorldEnv
from interverse.envs.snapshot import Snapshot
from interverse.envs.vector import WorldVectorEnv

__all__ = ["Snapshot", "WorldEnv", "WorldVectorEnv", "make", "make_vec", "register"]
