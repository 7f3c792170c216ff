"""Wrappers around single environments: goal dicts, smoothed actions, planning by hand."""

from interverse.envs.wrappers.goals import GoalDict
from interverse.envs.wrappers.selector import ObjectSelector
from interverse.envs.wrappers.smoothing import MovingAverageAction

__all__ = ["GoalDict", "MovingAverageAction", "ObjectSelector"]
