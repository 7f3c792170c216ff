"""Every option of a TriFinger world is followed on a device, or refused with its name."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import paper_curriculum
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.worlds.trifinger.device_options import (
    BY_ARENA,
    BY_STARTS,
    REFUSED,
    check_device_options,
)
from interverse.worlds.trifinger.options import TriFingerOptions

torch = pytest.importorskip("torch")

from interverse.agents.batch.starts import Starts, curriculum_starts, make_arena  # noqa: E402
from interverse.agents.batch.train import DeviceTrain  # noqa: E402

TASK = "trifinger/pushing-v1"
OTHER: dict[str, Any] = {
    "action_mode": "joint_torques",
    "active_edges": True,
    "cameras": [0],
    "contact": "exact",
    "contact_sensors": True,
    "custom_observations": {"one": lambda values: values["robot/height"]},
    "defaults": {"robot/height": 0.3},
    "dense_reward_weights": [1.0, 1.0, 1.0],
    "drag": "joint_damping",
    "fractional_reward_weight": 2.0,
    "image_size": 32,
    "info_solution": True,
    "info_state": True,
    "legacy_time_left": True,
    "legacy_unchecked": True,
    "look": "realistic",
    "max_steps": 40,
    "mended_reward": True,
    "mirrored_images": True,
    "normalize_actions": False,
    "normalize_observations": False,
    "observation_keys": ["joint_positions"],
    "observation_mode": "pixel",
    "picture_kinds": ["depth"],
    "score": "oriented",
    "shadows": False,
    "skip_frame": 5,
    "sparse_reward": True,
}
# "task" is the id's; of a scene of fixed blocks the world itself refuses "max_blocks".
UNSEEN = {"constraints", "contacts", "device", "legacy_unchecked", "max_blocks", "space", "task"}
UNSEEN |= {"draw_scenes"}  # of scenes that are built, and these are not
UNSEEN |= {"threads"}  # it never changes a result


def test_every_option_is_followed_or_refused() -> None:
    names = sorted(item.name for item in fields(TriFingerOptions))
    assert sorted([*BY_ARENA, *BY_STARTS, *REFUSED]) == names
    assert sorted({*OTHER, *UNSEEN}) == names


@pytest.mark.parametrize("name", sorted(OTHER.keys() & REFUSED.keys()))
def test_what_is_not_followed_is_refused_by_name(name: str, tmp_path: Path) -> None:
    options = {name: OTHER[name]}
    with pytest.raises(InvalidValueError, match=f"option {name} is"):
        DeviceTrain(task=TASK, out=tmp_path, device="torch", options=options)
    starts = Starts({"physics": np.zeros((1, 1))})  # it is not looked at
    with pytest.raises(InvalidValueError, match=f"option {name} is"):
        make_arena(TASK, starts, num_worlds=1, device="torch", options=options)


def seen(options: dict[str, Any], *, by_world: bool = False) -> list[np.ndarray]:
    """Returns observations and scores of a few steps, by the arena or by the world itself."""
    options = {"contact": "convex", **options}
    starts = curriculum_starts(TASK, paper_curriculum(2), 2, seed=7, options=options)
    turned = starts.rows["physics"][:, 13:17]  # of the block, w first: an eighth of a turn
    turned[:] = np.cos(np.pi / 8), 0.0, 0.0, np.sin(np.pi / 8)
    starts.rows["physics"][:, 10:12] = starts.rows["store/goal/position"][:, 0, :2]
    arena = make_arena(TASK, starts, num_worlds=2, device="torch", groups=1, options=options)
    venv = iv.make_vec(TASK, num_envs=2, autoreset_mode="disabled", **options)
    venv.reset(seed=0)
    world = venv.unwrapped.world
    rows = dict(starts.rows)
    rows["store/block/position"] = rows["store/goal/position"][:, :1].copy()
    rows["store/block/position"][..., 2] = starts.rows["store/block/position"][..., 2]
    rows["store/block/orientation"] = turned[:, None, [1, 2, 3, 0]]
    world.load(rows, np.arange(2))
    out = [np.array([world.max_steps if by_world else arena.max_steps])]
    for action in np.random.default_rng(0).uniform(-1, 1, (3, 2, 9)).astype(np.float32):
        view = arena.view()
        if by_world:
            out += [world.observe(), world.read("fractional_success")]
        else:
            out += [view.observation.numpy(), view.fraction.numpy()]
        arena.step(torch.as_tensor(action))
        venv.step(action)
    venv.close()
    arena.close()
    return out


@pytest.fixture(scope="module")
def plain() -> list[np.ndarray]:
    return seen({})


FOLLOWED = sorted(OTHER.keys() & {*BY_ARENA, *BY_STARTS} - UNSEEN)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_followed_changes_the_arena_as_it_does_the_world(
    name: str, plain: list[np.ndarray]
) -> None:
    mine, worlds = (seen({name: OTHER[name]}, by_world=side) for side in (False, True))
    for a, b in zip(mine, worlds, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert any((a != b).any() for a, b in zip(mine, plain, strict=True))


def test_room_for_contacts_reaches_the_engine_and_not_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"contacts": 200, "constraints": 900, "contact": None}
    DeviceTrain(task=TASK, out=tmp_path, device="warp", options=options)
    starts = curriculum_starts(TASK, paper_curriculum(0), 1, seed=0, options=options)
    from interverse.worlds.trifinger import device

    def built(scene: Any, **_: Any) -> Any:
        raise KeyError(scene.contacts, scene.constraints)

    monkeypatch.setattr(device, "make_engine", built)
    with pytest.raises(KeyError, match=r"\(200, 900\)"):
        make_arena(TASK, starts, num_worlds=1, device="warp", options=options)
    with pytest.raises(InvalidValueError, match="given with device='torch'"):
        DeviceTrain(task=TASK, out=tmp_path, device="torch", options=options)


def test_exact_contacts_on_warp_are_refused_in_the_words_of_make_vec(tmp_path: Path) -> None:
    options = {"contact": "exact"}
    with pytest.raises(InvalidValueError, match="MuJoCo Warp has no such solver"):
        DeviceTrain(task=TASK, out=tmp_path, device="warp", options=options)


@pytest.mark.parametrize("device", ["cudaz", "cpu:0", "warp:1", "cuda:x", "cuda:"])
def test_an_unknown_device_is_unknown(device: str, tmp_path: Path) -> None:
    for make in (
        lambda: DeviceTrain(task=TASK, out=tmp_path, device=device),
        lambda: iv.make_vec(TASK, device=device),
        lambda: iv.make_vec("blocks/observed-5-v1", device=device),
    ):
        with pytest.raises(UnknownNameError, match=r"unknown device .* Allowed: cpu, cuda, cuda:N"):
            make()


@pytest.mark.parametrize(
    ("name", "value"), [("control_period", 2), ("action_delay", 1), ("observation_noise", 0.1)]
)
def test_what_a_real_robot_adds_is_refused_on_a_device(name: str, value: float) -> None:
    options = {"defaults": {f"robot/{name}": value}}
    starts = curriculum_starts(TASK, paper_curriculum(0), 1, seed=0, options=options)
    with pytest.raises(InvalidValueError, match=f"starts set robot/{name}"):
        make_arena(TASK, starts, num_worlds=1, device="torch", options=options)


def test_arrays_of_numpy_are_no_device(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="device is 'cpu'"):
        check_device_options(TriFingerOptions(task="pushing"), "cpu")
    assert DeviceTrain(task=TASK, out=tmp_path, device="cpu").device == "torch"
    with pytest.raises(InvalidValueError, match="option device is 'warp'"):
        DeviceTrain(task=TASK, out=tmp_path, device="torch", options={"device": "warp"})
