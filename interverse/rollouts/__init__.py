"""Policies meet environments: rollouts, episodes, counterfactuals."""

from interverse.rollouts.counterfactual import counterfactual, replay
from interverse.rollouts.episode import AppliedDo, Episode, Refusal
from interverse.rollouts.policy import Policy, RandomPolicy, as_policy
from interverse.rollouts.recorder import EpisodeFolder, EpisodeWriter, RecordEpisodes
from interverse.rollouts.runner import Recorder, rollout

__all__ = [
    "AppliedDo",
    "Episode",
    "EpisodeFolder",
    "EpisodeWriter",
    "Policy",
    "RandomPolicy",
    "RecordEpisodes",
    "Recorder",
    "Refusal",
    "as_policy",
    "counterfactual",
    "replay",
    "rollout",
]
