"""Blocks against numbers recorded from the original: transitions, images, random play, baselines.

Also the losses and ranks of its world models. Deviations we chose: ZeroShotShape keeps the training
intensities and FewShot orders blocks by weight (`legacy=True` has the original's); distinct cells
are drawn without rejection. No recorded number here depends on either.
"""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from interverse.core.rng import Noise
from interverse.envs.build import build_world
from interverse.models.layers import contrastive_loss
from interverse.models.ranking import ranks
from interverse.sim import raster
from interverse.worlds.blocks import dynamics
from interverse.worlds.palette import shade

RECORDED = json.loads((Path(__file__).parent / "data" / "gridworlds.json").read_text())
TRANSITIONS = RECORDED["physics_transitions"]["cases"]
IMAGES = {k: v for k, v in RECORDED["image_statistics"]["stats"].items() if k.startswith("W")}
PLAY = RECORDED["random_play_statistics"]["stats"]
BASELINES = RECORDED["physics_baselines"]["values"]
RECORDED_RESETS, RECORDED_EPISODES = 400, 400
SETTINGS = {"Observed": "observed", "Unobserved": "unobserved"} | {
    "FixedUnobserved": "fixed_unobserved"
}


def world_of(key: str, count: int, **options):
    """The world an original id such as WShapesRL-Observed-Train-3-Blues-v0 names."""
    _, setting, mode, objects, cmap, _ = key.split("-")
    world_id = f"blocks/{SETTINGS[setting]}-{objects}-v1"
    return build_world(world_id, count, {"mode": mode, "cmap": cmap, **options})


def noise_of(count: int, seed: int = 0) -> Noise:
    zero = np.zeros(count, dtype=np.int64)
    return Noise(zero + seed, np.arange(count), zero)


def rows(world):
    return np.arange(world.num_worlds)


@pytest.mark.parametrize("case", TRANSITIONS, ids=lambda case: case["name"])
def test_recorded_transitions(case):
    positions = np.array([case["start"]])
    weights = np.array([case["weights"]], dtype=float)
    for action, after, flag, reward in zip(
        case["actions"],
        case["positions_after_each"],
        case["invalid_push_flag"],
        case["reward_vs_start"],
        strict=True,
    ):
        block, direction = np.array([action // 5]), np.array([action % 5])
        positions, invalid = dynamics.push(positions, weights, block, direction)
        assert positions[0].tolist() == after
        assert invalid.tolist() == [flag]
        earned = dynamics.reward(positions, np.array([case["start"]]))
        assert earned[0] == pytest.approx(reward, abs=1e-6)


def test_recorded_transitions_are_many_and_some_are_flagged():
    flags = [flag for case in TRANSITIONS for flag in case["invalid_push_flag"]]
    assert len(TRANSITIONS) > 30
    assert 0 < sum(flags) < len(flags)


def test_recorded_blues():
    cases = RECORDED["blues_colormap"]["cases"]
    seen = shade(np.array([intensity for intensity, _ in cases]), "Blues")
    np.testing.assert_allclose(seen, [rgb for _, rgb in cases], atol=6e-7)


@pytest.mark.parametrize("key", IMAGES)
def test_recorded_image_statistics(key):
    """Means over our 1,000 resets lie within four standard errors of the original's 400."""
    world = world_of(key, 1000)
    world.reset(rows(world), noise_of(1000), {})
    images = world.observe()["image"] / 255.0
    entropy = np.zeros_like(images)
    inner = (images > 0) & (images < 1)
    p = images[inner]
    entropy[inner] = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    per_image = {
        "mean": images.mean(axis=(1, 2, 3)),
        "nonblack_fraction": images.any(axis=3).mean(axis=(1, 2)),
        "bce_floor_per_value": entropy.mean(axis=(1, 2, 3)),
    }
    for channel in range(3):
        per_image[f"rgb{channel}"] = images[..., channel].mean(axis=(1, 2))
    recorded = IMAGES[key] | {f"rgb{i}": v for i, v in enumerate(IMAGES[key]["mean_rgb"])}
    for name, ours in per_image.items():
        error = ours.std() * math.sqrt(1 / RECORDED_RESETS + 1 / len(ours))
        assert abs(ours.mean() - recorded[name]) < 4 * error + 1e-5, name
    assert images.max() == pytest.approx(recorded["max"])


@pytest.mark.parametrize("key", PLAY)
def test_recorded_random_play(key):
    """Uniform play that leaves out invalid pushes: how often nothing, one or two blocks move."""
    count, steps = 2000, 100
    world = world_of(key, count)
    world.reset(rows(world), noise_of(count), {})
    state = world.save(rows(world))
    positions, weights, targets = state["position"], state["weight"], state["target"]
    rng = np.random.default_rng(0)
    moved, tried, invalid_pushes, rewards = [], 0, 0, []
    first = dynamics.reward(positions, targets)
    for _ in range(steps):
        todo = np.ones(count, dtype=bool)
        after = positions.copy()
        while todo.any():
            action = rng.integers(world.action_space.n, size=todo.sum())
            new, invalid = dynamics.push(positions[todo], weights[todo], action // 5, action % 5)
            tried += todo.sum()
            invalid_pushes += invalid.sum()
            after[todo] = new
            todo[np.flatnonzero(todo)[~invalid]] = False
        moved.append((after != positions).any(axis=2).sum(axis=1))
        positions = after
        rewards.append(dynamics.reward(positions, targets))
    moved, rewards = np.array(moved), np.array(rewards)
    recorded = PLAY[key]
    episodes = 1 / RECORDED_EPISODES + 1 / count

    def close(per_episode, name, printed=5e-5):
        error = per_episode.std() * math.sqrt(episodes)
        assert abs(per_episode.mean() - recorded[name]) < 4 * error + printed, name

    close((moved == 0).mean(axis=0), "no_change_rate_of_kept")
    close((moved == 2).mean(axis=0), "push_rate_two_objects_move")
    close(rewards.mean(axis=0), "mean_reward_in_train_episodes")
    close(first, "mean_reward_first")
    rate = invalid_pushes / tried
    spread = 4 * math.sqrt(rate / (RECORDED_EPISODES * steps) * 3)  # pushes come in clusters
    assert abs(rate - recorded["invalid_push_rate"]) < spread + 5e-5
    assert rewards.std() == pytest.approx(recorded["sd_reward"], abs=0.05)


@functools.cache
def baseline(key: str, horizon: int, who: str) -> np.ndarray:
    """The reward after `horizon` steps of 4,000 episodes whose target is as many actions away."""
    count = 4000
    world = world_of(key, count, target_steps=horizon)
    world.reset(rows(world), noise_of(count, seed=horizon), {})
    for t in range(horizon):
        state = world.save(rows(world))
        noise = noise_of(count, seed=horizon).at(t + 1)
        if who == "greedy":
            ahead = dynamics.look_ahead(state["position"], state["weight"], state["target"])
            actions = np.argmax(ahead, axis=1)
        elif who == "random":
            actions = noise.integers("policy/action", int(world.action_space.n))
        else:
            actions = np.zeros(count, dtype=np.int64)
        world.step(actions, rows(world), noise)
    return world.score().reward


@pytest.mark.parametrize("who", ["random", "greedy", "donothing"])
@pytest.mark.parametrize("key", BASELINES)
def test_recorded_baselines(key, who):
    world_key, horizon = key.rsplit("|", 1)
    recorded = BASELINES[key]
    reward = baseline(world_key, int(horizon), who)
    mean, sd, success, standard_error = recorded[who]
    theirs = recorded["n_greedy" if who == "greedy" else "n_random"]
    error = math.hypot(standard_error, reward.std() / math.sqrt(len(reward)))
    assert abs(reward.mean() - mean) < 4 * error + 5e-5
    assert reward.std() == pytest.approx(sd, abs=0.03)
    p = (success * theirs + (reward == 0).sum()) / (theirs + len(reward))
    spread = math.sqrt(p * (1 - p) * (1 / theirs + 1 / len(reward)))
    assert abs((reward == 0).mean() - success) < 4 * spread + 1e-4


def test_every_shape_is_stamped_as_recorded():
    masks = RECORDED["shape_masks"]["masks"]
    for shape, (name, bitmap) in enumerate(masks.items()):
        image = raster.draw(
            np.array([[[2, 3]]]), np.array([[shape]]), np.full((1, 1, 3), 255, np.uint8)
        )
        cell = image[0, 20:30, 30:40, 0] // 255
        assert ["".join(map(str, row)) for row in cell] == bitmap, name
        assert image.sum() == 3 * 255 * cell.sum()


@pytest.mark.parametrize("case", RECORDED["contrastive_loss"]["cases"])
def test_contrastive_loss(case):
    state, following, predicted = (torch.tensor(case[k]) for k in ("state", "next", "pred"))
    found = contrastive_loss(state, state[torch.tensor(case["perm"])], predicted, following)
    assert float(found.pull) == pytest.approx(case["pos"], abs=2e-7)
    assert float(found.push) == pytest.approx(case["neg"], abs=2e-7)
    assert float(sum(found)) == pytest.approx(case["total"], abs=2e-7)


@pytest.mark.parametrize("case", RECORDED["ranking"]["cases"], ids=lambda case: case["name"])
def test_ranks(case):
    true, predicted = (torch.tensor(case[k], dtype=torch.float32) for k in ("true_next", "pred"))
    found = ranks(true, predicted).published
    assert found.tolist() == case["ranks"]
    assert float((found == 1).double().mean()) == pytest.approx(case["hits_at_1"])
    assert float((1.0 / found.double()).mean()) == pytest.approx(case["mrr"])
