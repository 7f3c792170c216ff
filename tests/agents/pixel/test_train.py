"""Training: it learns, resumes after a kill to the last bit, exports, refuses what is wrong."""

from __future__ import annotations

import functools
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import interverse as iv
from interverse.agents import tagged
from interverse.agents.pixel import train as run_module
from interverse.agents.pixel.actors import ActorError, Actors
from interverse.agents.pixel.augment import centre_crop
from interverse.agents.pixel.config import (
    PixelHyper,
    PixelTrain,
    own_options,
    plan,
    preset,
    schedule,
)
from interverse.agents.pixel.train import PixelRun, train
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.files.tensor_files import read_safetensors
from interverse.core.run import CHECKPOINTS, Run
from interverse.rollouts.exported import PixelCard, PixelPolicy
from interverse.rollouts.policy import as_policy
from interverse.rollouts.saved import CARD
from tests.agents.pixel.dot import LENGTH, SIZE, Dot, PlainDot

TINY = {
    "image_size": SIZE,
    "render_size": SIZE,
    "filters": 4,
    "layers": 2,
    "features": 8,
    "hidden": 16,
    "batch": 8,
    "capacity": 100,
    "warm_up": 20,
}
PLANNING = {"filters": 8, "features": 648, "samples": 6, "elites": 2, "policy_paths": 2}


def config(out: Path, **more) -> PixelTrain:
    given = {"task": "dot", "out": out, "steps": 60, "checkpoint_every": 20, "evaluate_every": 30}
    return PixelTrain(**{**given, "evaluate_episodes": 1, "hyper": TINY, **more})


def results(folder: Path) -> tuple[dict[str, np.ndarray], str]:
    """Returns what a run leaves behind: weights, optimisers, generators, worlds; and curves."""
    held = Checkpoints(folder / CHECKPOINTS).load()
    tensors = {n: t.numpy() for n, t in held.tensors.items()} | load_file(
        folder / "policy" / "policy.safetensors"
    )
    return tensors, (folder / "curves.json").read_text()


def same(one: Path, two: Path) -> bool:
    (mine, curves), (theirs, others) = results(one), results(two)
    assert mine.keys() == theirs.keys()
    different = [name for name in mine if not np.array_equal(mine[name], theirs[name])]
    return not different and curves == others


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(
    "algorithm", ["sac_aug", "tdmpc2", pytest.param("curl", marks=pytest.mark.slow)]
)
def test_stopped_and_resumed_equals_unbroken(algorithm, overlap, tmp_path, monkeypatch, dying):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    changed = {"curl": {"image_size": SIZE - 4}, "tdmpc2": PLANNING}
    hyper = {**TINY, **changed.get(algorithm, {})}
    settings = {"algorithm": algorithm, "hyper": hyper, "overlap": overlap}
    monkeypatch.setattr(run_module, "_LOG_EVERY", 7)  # rows of losses right after checkpoints too
    train(config(whole, **settings), make_env=Dot)
    for _ in range(2):
        with dying():
            train(config(broken, **settings), make_env=Dot)
    train(config(broken, **settings), make_env=Dot)
    assert same(whole, broken)
    assert json.loads((broken / "policy" / "policy.json").read_text())["trained"]["steps"] == 60


def test_without_snapshots_a_run_still_goes_on(tmp_path):
    train(config(tmp_path, steps=45), make_env=PlainDot)
    folder = train(config(tmp_path, steps=90), make_env=PlainDot)
    assert json.loads((folder / "policy.json").read_text())["trained"]["steps"] == 90


@pytest.mark.slow
def test_several_actors(tmp_path):
    """Three processes: three decisions a step, as many updates, and the same run twice."""
    for name in ("one", "two"):
        train(config(tmp_path / name, actors=3, steps=75, checkpoint_every=40), make_env=Dot)
    assert same(tmp_path / "one", tmp_path / "two")
    held = Checkpoints(tmp_path / "one" / CHECKPOINTS).load()
    assert 75 <= held.step < 78
    assert held.record["updates"] == held.step - 20
    assert len(held.record["lanes"]) == 3


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_on_a_gpu(tmp_path, precision):
    settings = {"device": "cuda", "precision": precision, "actors": 2}
    train(config(tmp_path, steps=40, **settings), make_env=Dot)
    folder = train(config(tmp_path, steps=60, **settings), make_env=Dot)
    assert np.isfinite(PixelPolicy.load(folder)(np.zeros((3, 9, SIZE, SIZE), dtype=np.uint8))).all()


def test_curves_and_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_LOG_EVERY", 25)
    train(config(tmp_path, steps=60), make_env=Dot)
    curves = json.loads((tmp_path / "curves.json").read_text())
    assert [row["step"] for row in curves["evaluations"]] == [30, 60]
    assert [row["step"] for row in curves["episodes"]] == [12, 24, 36, 48, 60]
    assert all(row["length"] == 12 for row in curves["episodes"])
    assert list((tmp_path / "tensorboard").glob("events*"))
    assert [row["step"] for row in curves["losses"]] == [25, 50]
    names = {"step", "critic", "invariance", "actor", "alpha", "entropy"}
    assert curves["losses"][-1].keys() == names


def test_the_export_acts_as_the_agent(tmp_path):
    for algorithm in ("sac_aug", "drq", "rad"):
        hyper = {**TINY, "image_size": SIZE - 4} if algorithm == "rad" else TINY
        settings = config(tmp_path / algorithm, algorithm=algorithm, hyper=hyper, steps=25)
        run = PixelRun(settings, plan(settings), Dot)
        policy = PixelPolicy.load(train(settings, make_env=Dot))
        with Run(settings.out, settings.record(), title="", total=25) as keeper:
            run.start(keeper)  # from the checkpoint
        seen = np.random.default_rng(0).integers(0, 256, (70, 9, SIZE, SIZE), dtype=np.uint8)
        assert np.allclose(policy(seen), 2.0 * run.agent.act(seen, explore=False), atol=1e-5)
        middle = torch.as_tensor(centre_crop(seen, run.agent.sizes.pictures[1]))
        maps = run.agent.networks.encoder.maps(middle)
        for mine, theirs in zip(policy.maps(torch.as_tensor(seen)), maps, strict=True):
            assert torch.allclose(mine, theirs, atol=1e-6)
        run.close()


def test_a_small_file_acts_almost_alike(tmp_path, monkeypatch):
    monkeypatch.setattr("interverse.rollouts.exported._LARGE", 64)
    draw = torch.Generator().manual_seed(0)
    shapes = {"conv.0": (4, 3, 3, 3), "trunk": (6, 100), "norm": (6,), "actor.0": (2, 6)}
    weights = {f"{n}.weight": torch.randn(s, generator=draw) for n, s in shapes.items()}
    weights |= {f"{n}.bias": torch.zeros(s[0]) for n, s in shapes.items()}
    card = {"observation": [3, 12, 12], "image_size": 12, "convolutions": 1, "layers": 1}
    policy = PixelPolicy(PixelCard(**card, low=[-1.0], high=[1.0], trained={}), weights)
    seen = torch.randint(0, 256, (5, 3, 12, 12), generator=draw, dtype=torch.uint8).numpy()
    small = PixelPolicy.load(policy.save_small(tmp_path))
    assert np.allclose(small(seen), policy(seen), atol=0.03)
    assert read_safetensors(tmp_path / "policy.safetensors")["trunk.weight"].dtype == torch.int8


def test_a_card_says_whether_features_are_squashed(tmp_path):
    for algorithm in ("curl", "rad", "drq"):
        folder = train(config(tmp_path / algorithm, algorithm=algorithm, steps=25), make_env=Dot)
        card = json.loads((folder / CARD).read_text())
        assert card["squash"] == (algorithm == "drq")
        seen = np.random.default_rng(0).integers(0, 256, (9, *card["observation"][1:]), np.uint8)
        features = PixelPolicy.load(folder).features(torch.as_tensor(seen)[None])
        assert (features.abs().max() > 1) == (algorithm != "drq")
        del card["squash"]  # an older file: tanh, whatever trained it
        (folder / CARD).write_text(json.dumps(card))
        older = PixelPolicy.load(folder).features(torch.as_tensor(seen)[None])
        assert torch.equal(older, features if algorithm == "drq" else torch.tanh(features))
    (folder / CARD).write_text(json.dumps(card | {"squash": 1}))
    with pytest.raises(FileFormatError, match="squash 1"):
        PixelPolicy.load(folder)


def test_a_path_is_a_policy(tmp_path):
    folder = train(config(tmp_path, steps=25), make_env=Dot)
    act = as_policy(str(folder), None)
    assert act(np.zeros((3, 9, SIZE, SIZE), dtype=np.uint8)).shape == (3, 1)
    with pytest.raises(InvalidValueError, match=r"as it was trained with.*frame_skip=4"):
        act(np.zeros((3, 9, 84, 84), dtype=np.uint8))
    (folder / "policy.safetensors").write_bytes(b"{")
    with pytest.raises(FileFormatError, match="holds no pixel policy"):
        as_policy(folder, None)


def test_the_papers_table():
    paper = PixelHyper()
    assert (paper.batch, paper.capacity, paper.warm_up) == (256, 100_000, 1000)
    assert (paper.critic_tau, paper.encoder_tau, paper.discount) == (0.01, 0.05, 0.99)
    assert preset("sac_aug", "paper") == paper
    assert preset("sac_ae", "paper").batch == 128
    assert preset("curl", "paper").render_size == 100
    assert preset("curl", "paper", "control/cheetah_run-v1").encoder_rate == 2e-4
    assert preset("sac_aug", "small").image_size == 64
    assert preset("rad", "small").render_size == 76
    for name in ("sgqn", "soda", "svea"):
        own = preset(name, "authors")
        sizes = own.image_size, own.batch, own.layers, own.features, own.hidden, own.filters
        assert sizes == (84, 128, 11, 100, 1024, 32)
        assert own.capacity == schedule("control/walker_walk-v1", "authors").steps == 500_000
    assert preset("soda", "authors").render_size == 100
    assert own_options("soda", "authors") == {"projection_rate": 3e-4}
    assert [preset(n, "paper").alpha_momentum for n in ("drq", "sac_aug")] == [0.9, 0.5]
    swingup = "control/cartpole_swingup-v1"
    assert own_options("sgqn", "authors", swingup) == {"quantile": 0.98}
    assert own_options("sgqn", "paper", swingup) == {}
    assert own_options("sgqn", "authors", "control/cartpole_swingup_sparse-v1") == {}
    with pytest.raises(UnknownNameError, match="unknown preset 'authors'"):
        preset("curl", "authors")
    tasks = ("cartpole_swingup", "finger_spin", "walker_walk", "ball_in_cup_catch")
    assert [schedule(f"control/{t}-v1", "authors").frame_skip for t in tasks] == [8, 2, 4, 4]
    assert schedule("control/cartpole_balance-v1", "paper").steps == 50_000
    assert schedule("control/walker_walk-v1", "paper").frame_skip == 2
    assert schedule("control/cartpole_balance-v1", "small").frame_skip == 8


def test_what_a_configuration_comes_to(tmp_path):
    options = {"visual_seed": 3, "frame_skip": 2}
    given = {"task": "control/cartpole_balance-v1", "preset": "paper", "algorithm": "rad"}
    planned = plan(PixelTrain(out=tmp_path, options=options, hyper={"batch": 8}, **given))
    assert planned.world_options == {
        "image_size": 100,
        "frame_stack": 3,
        "frame_skip": 2,
        "visual_seed": 3,
    }
    assert planned.training_options == planned.world_options
    assert (planned.hyper.batch, planned.steps) == (8, 50_000)


def test_the_small_preset_learns_in_short_episodes_and_is_judged_in_whole_ones(tmp_path):
    task = "control/cartpole_balance-v1"
    planned = plan(PixelTrain(task=task, out=tmp_path))
    assert planned.training_options == {"max_steps": 32, **planned.world_options}
    assert "max_steps" not in planned.world_options
    own = plan(PixelTrain(task=task, out=tmp_path, options={"max_steps": 5}))
    assert own.training_options == own.world_options
    settings = config(tmp_path / "run", steps=30)
    judge = Dot(length=9)
    run = PixelRun(settings, plan(settings), partial(Dot, length=4), lambda: judge)
    run.start()
    while run.step < 30:
        run.advance()
    run.evaluate()
    run.close()
    assert {row["length"] for row in run.curves["episodes"]} == {4}
    assert judge._time == 9


def sizes(tmp_path, algorithm, hyper, options, preset="small"):
    """Returns what is seen, what is drawn and what the world is asked for."""
    given = {"task": "control/cartpole_balance-v1", "algorithm": algorithm, "preset": preset}
    planned = plan(PixelTrain(out=tmp_path, hyper=hyper, options=options, **given))
    world = planned.world_options["image_size"]
    return planned.hyper.image_size, planned.hyper.render_size, world


@pytest.mark.parametrize("algorithm", tagged("pictures"))
def test_one_picture_size_is_enough(tmp_path, algorithm):
    """An agent that does not crop sees what is drawn, whichever of both is given."""
    if algorithm in tagged("cropped"):
        assert sizes(tmp_path, algorithm, {"image_size": 42}, {}) == (42, 50, 50)
        assert sizes(tmp_path, algorithm, {"render_size": 90}, {}) == (64, 90, 90)
        assert sizes(tmp_path, algorithm, {}, {"image_size": 84}) == (64, 84, 84)
        both = {"image_size": 40, "render_size": 60}
        assert sizes(tmp_path, algorithm, both, {}) == (40, 60, 60)
        with pytest.raises(InvalidValueError, match="one size"):
            sizes(tmp_path, algorithm, {"render_size": 90}, {"image_size": 84})
        return
    for hyper, options in (
        ({"image_size": 32}, {}),
        ({"render_size": 32}, {}),
        ({}, {"image_size": 32}),
        ({"image_size": 32}, {"image_size": 32}),
    ):
        assert sizes(tmp_path, algorithm, hyper, options) == (32, 32, 32)
    assert sizes(tmp_path, algorithm, {}, {"image_size": (32, 32)})[:2] == (32, 32)
    for hyper, options in (
        ({"image_size": 32, "render_size": 64}, {}),
        ({"image_size": 32}, {"image_size": 64}),
        ({"render_size": 32}, {"image_size": 64}),
    ):
        with pytest.raises(InvalidValueError, match=r"is 32 and .* is 64 .*one size"):
            sizes(tmp_path, algorithm, hyper, options)


def test_a_world_that_draws_another_size_is_refused_before_training(tmp_path):
    with pytest.raises(InvalidValueError, match=r"pictures of 24 pixels.*image_size=24"):
        train(config(tmp_path, hyper={**TINY, "image_size": 20, "render_size": 20}), make_env=Dot)
    with pytest.raises(InvalidValueError, match=r"--option image_size is \(84, 64\)"):
        sizes(tmp_path, "sac_aug", {}, {"image_size": (84, 64)})


def test_a_stack_of_frames_is_a_hyper_parameter(tmp_path, capsys):
    command = "train --task control/cartpole_balance-v1 --algorithm sac_aug --steps 24"
    command += f" --option frame_stack=4 --out {tmp_path / 'run'}"
    assert main(command.split()) == 2
    said = capsys.readouterr().err
    assert "stacks of 4 pictures" in said
    assert "--hyper frame_stack=4" in said
    assert "control world" not in said


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"algorithm": "dreamer"}, UnknownNameError, "unknown algorithm 'dreamer'"),
        ({"preset": "huge"}, UnknownNameError, "unknown preset 'huge'"),
        ({"steps": 0}, InvalidValueError, "steps is 0"),
        ({"actors": 0}, InvalidValueError, "actors is 0"),
        ({"device": "tpu"}, InvalidValueError, "device is 'tpu'"),
        ({"hyper": {"btch": 3}}, UnknownNameError, "Did you mean 'batch'"),
        ({"hyper": {"batch": 0}}, InvalidValueError, "batch is 0"),
        ({"hyper": {"targets": 2}}, UnknownNameError, "hyper-parameter 'targets'"),
        ({"hyper": {"augmentation": "swirl"}}, UnknownNameError, "augmentation 'swirl'"),
        (
            {"hyper": {**TINY, "image_size": 30}},
            InvalidValueError,
            "image_size is 30 and --hyper render_size is 24",
        ),
        ({"hyper": {**TINY, "frame_stack": 2}}, InvalidValueError, r"\(6, S, S\)"),
    ],
    ids=str,
)
def test_mistakes(tmp_path, change, error, match):
    with pytest.raises(error, match=match):
        train(config(tmp_path, **change), make_env=Dot)
    assert not (tmp_path / "train.json").exists(), "a refused call claims nothing"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--algorithm", "sac_aug", "--curriculum", "2"], "--curriculum does not go with"),
        (
            ["--algorithm", "sb3_ppo", "--actors", "2"],
            "--actors does not go with --algorithm sb3_ppo",
        ),
        (["--algorithm", "sb3_ppo", "--hyper", "beta=1"], "unknown hyper-parameter 'beta'"),
        (["--algorithm", "sac_aug"], "unknown option 'image_size'"),
        (["--algorithm", "sac_aug", "--hyper", "beta"], "NAME=VALUE"),
    ],
    ids=str,
)
def test_flags_that_do_not_go_together(tmp_path, capsys, flags, words):
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", "--task", "tutorial/slider-v1", *flags, *out]) == 2
    assert words in capsys.readouterr().err


LEARNING = {
    "sac_aug": {"steps": 400, "filters": 8, "features": 16, "batch": 16, "capacity": 1000},
    "tdmpc2": {**PLANNING, "steps": 700, "hidden": 64, "capacity": 2000, "warm_up": 60}
    | {"samples": 48, "elites": 8, "policy_paths": 6, "iterations": 3, "discount": 0.9}
    | {"alpha": 1e-4, "actor_every": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", LEARNING)
def test_it_learns(algorithm, tmp_path):
    """The dot moves to the middle: most of what there is to earn, from half of it."""
    hyper = {**TINY, "hidden": 32, "batch": 32, **LEARNING[algorithm]}
    settings = dict.fromkeys(("steps", "checkpoint_every", "evaluate_every"), hyper.pop("steps"))
    given = config(tmp_path, algorithm=algorithm, hyper=hyper, evaluate_episodes=5, **settings)
    train(given, make_env=Dot)
    curves = json.loads((tmp_path / "curves.json").read_text())
    random = np.mean([row["return"] for row in curves["episodes"][: hyper["warm_up"] // 12 + 1]])
    assert curves["evaluations"][-1]["mean"] > max(1.15 * random, 9.5)


TASK = "control/cartpole_balance-v1"
OPTIONS = {"image_size": 64, "frame_stack": 3, "frame_skip": 8}


def returns(policy, episodes: int = 10) -> np.ndarray:
    """Returns the returns of the first episodes of seed 1000, each of its whole length."""
    env = iv.make(TASK, **OPTIONS)
    act, totals = as_policy(policy, env.world), []
    for episode in range(episodes):
        seen, _ = env.reset(seed=1000, options={"episode": episode})
        act.reset(np.ones(1, dtype=bool), np.array([1000 + episode]))
        total, done = 0.0, False
        while not done:
            seen, reward, terminated, truncated, _ = env.step(act(seen[None])[0])
            total, done = total + reward, terminated or truncated
        totals.append(total)
    env.close()
    return np.array(totals)


@pytest.mark.parametrize(
    ("name", "agent", "file", "every"),
    [
        ("TD-MPC2", "tdmpc2", "h200.json", 1000),
        ("SODA (one random filter a batch)", "soda", "small.json", 500),
        ("SVEA", "svea", "small.json", 500),
        ("SGQN", "sgqn", "small.json", 500),
    ],
)
def test_the_printed_curves_are_those_of_the_runs(repository, name, agent, file, every):
    held = json.loads((repository / "results" / "dmcr" / file).read_text())["runs"]
    (run,) = [run for run in held if run["agent"] == agent]
    ends, returns = np.array(run["training_returns"]).T
    parts = range(every, run["decisions"] + 1, every)
    means = [returns[(ends > at - every) & (ends <= at)].mean() for at in parts]
    words = [f"{at:,}: {mean:.0f}" for at, mean in zip(parts, means, strict=True)]
    page = (repository / "results" / "dmcr" / "curves.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {name} | ")]
    assert ", ".join(words) in row.replace(" (random)", "")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sac_aug_balances_the_pole(tmp_path):
    start = time.process_time()
    folder = train(PixelTrain(task=TASK, out=tmp_path / "run", evaluate_episodes=2))
    spent = time.process_time() - start
    # A network that has learned nothing hardly acts, which already beats random pushing.
    beginner = train(PixelTrain(task=TASK, out=tmp_path / "start", steps=1, evaluate_episodes=1))
    learned, chance, idle = (returns(who).mean() for who in (folder, "random", beginner))
    score = f"{learned:.0f}, random {chance:.0f}, untrained {idle:.0f}, {spent:.0f} CPU seconds"
    print(score)
    assert learned >= 1.4 * chance, score
    assert learned > idle, score
    assert spent < 30 * 60, "thirty minutes of one core: " + score


def play(actors: Actors, steps: int, seed: int = 0):
    draw = np.random.default_rng(seed)
    actions = draw.uniform(-2, 2, (steps, actors.count, 1)).astype(np.float32)
    return [actors.step(action) for action in actions]


def test_an_ended_episode_starts_anew_at_the_next_step():
    actors = Actors(Dot, 1)
    first = actors.reset(seed=4)
    steps = play(actors, LENGTH + 2)
    ages = [int(step.ages[0]) for step in steps]
    assert ages == [*range(1, LENGTH + 1), 0, 1]
    total = sum(float(step.rewards[0]) for step in steps[:LENGTH])
    assert steps[LENGTH - 1].returns[0] == pytest.approx(total)
    assert np.isnan([step.returns[0] for step in steps if step is not steps[LENGTH - 1]]).all()
    assert steps[LENGTH].rewards[0] == 0
    assert not np.array_equal(steps[LENGTH].observations, first), "another episode"
    assert not any(step.terminated[0] for step in steps)
    actors.close()


def test_processes_do_what_one_does():
    """Two in processes equal two alone, and go on from a saved moment as if nothing had been."""
    together = Actors(Dot, 2)
    start = together.reset(seed=7)
    steps = play(together, 15)
    for lane in range(2):
        alone = Actors(Dot, 1)
        assert np.array_equal(alone.reset(seed=7 + lane), start[lane : lane + 1])
        draw = np.random.default_rng(0).uniform(-2, 2, (15, 2, 1)).astype(np.float32)
        for step, action in zip(steps, draw, strict=True):
            mine = alone.step(action[lane : lane + 1])
            assert np.array_equal(mine.observations[0], step.observations[lane])
            assert mine.rewards[0] == step.rewards[lane]
        alone.close()
    saved = together.save()
    after = play(together, 14, seed=1)
    again = together.load(saved)
    assert np.array_equal(again, steps[-1].observations)
    for one, two in zip(after, play(together, 14, seed=1), strict=True):
        for mine, theirs in zip(one, two, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ActorError, match="contains"):
        together.step(np.full((2, 1), 9.0, dtype=np.float32))
    together.close()


def test_without_snapshots_an_episode_starts_anew():
    actors = Actors(functools.partial(PlainDot, length=5), 1)
    actors.reset(seed=0)
    play(actors, 3)
    (saved,) = actors.save()
    assert saved["moment"] == b""
    seen = actors.load([saved | {"seed": 11}])
    fresh = Actors(PlainDot, 1)
    assert np.array_equal(seen, fresh.reset(seed=11))
    assert actors.step(np.zeros((1, 1), dtype=np.float32)).ages[0] == 1
