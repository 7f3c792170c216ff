"""A policy that the learner's network cannot be is refused before anything is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interverse.agents.policies import TRAINED, trained_policy
from interverse.core.errors import InvalidValueError

torch = pytest.importorskip("torch")

from interverse.agents.batch import train  # noqa: E402
from interverse.agents.batch.network import check_initial  # noqa: E402
from interverse.rollouts.exported import ExportedPolicy  # noqa: E402

TASK = "trifinger/pushing-v1"


def config(folder: Path, **options: Any) -> train.DeviceTrain:
    return train.DeviceTrain(
        task=TASK,
        out=folder / "run",
        device="torch",
        num_envs=8,
        starts=8,
        initial=str(folder / "policy"),
        options={"skip_frame": 3, **options},
    )


def changed(folder: Path, weights: dict[str, Any] | None = None, **card: Any) -> None:
    """Writes the package's policy with other values of its card or other weights."""
    kept = ExportedPolicy.load(trained_policy("pushing_1"))
    ExportedPolicy(replace(kept.card, **card), {**kept.weights, **(weights or {})}).save(
        folder / "policy"
    )


OTHERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [  # of the policy, of the run
    ({"activation": "tanh"}, {}, "activation 'tanh'. Allowed: 'elu'"),
    ({"squash": True}, {}, "squash True. Allowed: False"),
    ({"clip": None}, {}, r"clip None. Allowed: 8\.0"),
    ({"inputs": ["a"]}, {}, r"inputs \['a'\]. Allowed: \[\]"),
    (
        {"low": [-0.5] * 9},
        {},
        r"low \[-0\.5, -0\.5, -0\.5, \.\.\.\]. Allowed: \[-1, -1, -1, \.\.\.",
    ),
    ({"high": [3.0] * 9}, {}, r"high \[3, 3, 3, \.\.\.\]. Allowed: \[1, 1, 1, \.\.\.\]"),
    (
        {"weights": {"obs.mean": torch.full((56,), 0.1)}},
        {},
        r"obs\.mean \[0\.1, 0\.1, 0\.1, \.\.\.",
    ),
    ({"weights": {"obs.std": torch.full((56,), 2.0)}}, {}, r"obs\.std \[2, 2, 2, \.\.\.\]"),
    ({}, {"normalize_actions": False}, "normalize_actions True. Allowed: False in this run"),
    ({}, {"normalize_observations": False}, "normalize_observations True. Allowed: False in this"),
    ({}, {"skip_frame": 10}, "skip_frame 3. Allowed: 10 in this run"),
]


@pytest.mark.parametrize(("change", "options", "problem"), OTHERS)
def test_another_policy_is_refused_before_starts_are_drawn(
    change: dict[str, Any],
    options: dict[str, Any],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(train, "drawn_starts")
    changed(tmp_path, **change)
    with pytest.raises(InvalidValueError, match=f"the initial policy has {problem}"):
        train.train_on_device(config(tmp_path, **options))


@pytest.mark.parametrize("name", sorted(TRAINED))
def test_policies_of_the_package_can_be_begun_with(name: str, tmp_path: Path) -> None:
    policy = ExportedPolicy.load(trained_policy(name))
    task = policy.card.trained["config"]["task"]
    check_initial(policy, replace(config(tmp_path), task=task).world_options())


def test_what_a_device_exports_can_be_begun_with(tmp_path: Path) -> None:
    small = train.PpoSettings(horizon=2, epochs=1, minibatches=1, hidden=(8,))
    given = replace(config(tmp_path, normalize_actions=False), settings=small, steps=16, initial="")
    policy = ExportedPolicy.load(train.train_on_device(given))
    check_initial(policy, given.world_options())
