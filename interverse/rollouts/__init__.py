"""Policies meet environments: rollouts, episodes, counterfactuals."""

from interverse.rollouts.counterfactual import counterfactual, replay
from interverse.rollouts.episode import AppliedDo, Episode, EpisodeFolder, EpisodeWriter, Refusal
from interverse.rollouts.policy import Policy, RandomPolicy, as_policy
from interverse.rollouts.runner import RecordEpisodes, Recorder, rollout

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
