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


CARDS: list[tuple[dict[str, Any], str]] = [
    ({"activation": "tanh"}, "activation 'tanh'. Allowed: 'elu'"),
    ({"squash": True}, "squash True. Allowed: False"),
    ({"clip": None}, r"clip None. Allowed: 8\.0"),
    ({"inputs": ["a"]}, r"inputs \['a'\]. Allowed: \[\]"),
    ({"low": [-0.5] * 9}, r"low \[-0\.5, -0\.5, -0\.5, \.\.\.\]. Allowed: \[-1, -1, -1, \.\.\.\]"),
    ({"high": [3.0] * 9}, r"high \[3, 3, 3, \.\.\.\]. Allowed: \[1, 1, 1, \.\.\.\]"),
    ({"weights": {"obs.mean": torch.full((56,), 0.1)}}, r"obs\.mean \[0\.1, 0\.1, 0\.1, \.\.\.\]"),
    ({"weights": {"obs.std": torch.full((56,), 2.0)}}, r"obs\.std \[2, 2, 2, \.\.\.\]"),
]


def never(*_: Any, **__: Any) -> None:
    raise AssertionError("starts are drawn")


@pytest.mark.parametrize(("change", "problem"), CARDS)
def test_another_form_of_policy_is_refused(
    change: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "drawn_starts", never)
    changed(tmp_path, **change)
    with pytest.raises(InvalidValueError, match=f"the initial policy has {problem}"):
        train.train_on_device(config(tmp_path))


@pytest.mark.parametrize(
    ("option", "value", "own"),
    [
        ("normalize_actions", False, True),
        ("normalize_observations", False, True),
        ("skip_frame", 10, 3),
    ],
)
def test_a_policy_of_other_observations_actions_or_steps_is_refused(
    option: str, value: Any, own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "drawn_starts", never)
    changed(tmp_path)
    problem = f"the initial policy has {option} {own}. Allowed: {value} in this run"
    with pytest.raises(InvalidValueError, match=problem):
        train.train_on_device(config(tmp_path, **{option: value}))


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


def test_the_learner_itself_refuses_too(tmp_path: Path) -> None:
    from interverse.agents.batch.ppo import DevicePpo
    from interverse.agents.batch.starts import make_arena

    given = config(tmp_path)
    arena = make_arena(
        TASK, train.drawn_starts(given), num_worlds=2, device="torch", options=given.options
    )
    learner = DevicePpo(arena, given.settings, seed=0)
    changed(tmp_path, activation="tanh")
    with pytest.raises(InvalidValueError, match="activation 'tanh'"):
        learner.begin_with(ExportedPolicy.load(tmp_path / "policy"))
