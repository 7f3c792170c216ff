"""Wrappers: goal dicts, smoothed actions, planning by hand, a starting state of one's own."""

from interverse.envs.wrappers.actions import (
    MovingAverageAction,
    MovingAverageActionVector,
    ObjectSelector,
    ObjectSelectorVector,
)
from interverse.envs.wrappers.goals import (
    GoalDict,
    GoalDictVector,
    StartingState,
    StartingStateVector,
    sample_new_goal,
)

__all__ = [
    "GoalDict",
    "GoalDictVector",
    "MovingAverageAction",
    "MovingAverageActionVector",
    "ObjectSelector",
    "ObjectSelectorVector",
    "StartingState",
    "StartingStateVector",
    "sample_new_goal",
]
