"""A saved policy that acts at another rate than it was trained at."""

from __future__ import annotations

import warnings

import pytest
import torch

import interverse as iv
from interverse.rollouts.exported import Card, ExportedPolicy
from interverse.rollouts.policy import as_policy

TASK = "trifinger/pushing-v1"


def save(folder, options):
    card = Card(
        layers=1,
        activation="tanh",
        squash=False,
        low=[-1.0] * 9,
        high=[1.0] * 9,
        trained={"config": {"options": options}},
    )
    weights = {"obs.mean": torch.zeros(56), "obs.std": torch.ones(56)}
    weights |= {"0.weight": torch.zeros(9, 56), "0.bias": torch.zeros(9)}
    return ExportedPolicy(card, weights).save(folder)


def test_another_rate_is_said(tmp_path):
    folder = save(tmp_path, {"skip_frame": 3})
    with pytest.warns(UserWarning, match="trained with skip_frame=3 and acts with skip_frame=10"):
        as_policy(folder, iv.make(TASK).unwrapped.world)


@pytest.mark.parametrize("options", [{"skip_frame": 3}, {}])
def test_the_same_rate_or_an_unknown_one_is_not(tmp_path, options):
    folder = save(tmp_path, options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_policy(folder, iv.make(TASK, skip_frame=3).unwrapped.world)
