"""The paper's setting, number by number as the fact sheet of CausalWorld has it."""

import json

import pytest
import torch

from interverse.actors.curriculum import paper_curriculum
from interverse.agents.train import Train, make_env, make_model, run_record, train
from interverse.data.episodes import CollectEpisodes, collect_episodes
from interverse.rollouts.policy_world import _TOLD

# Table 5 of the paper; its worlds: skip 3 (0.012 s), space A, dense weights, weight of the overlap.
SHEET = {
    "sb3_ppo": {
        "gamma": 0.99,
        "learning_rate": 2.5e-4,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "n_epochs": 4,
        "clip_range_vf": 0.2,  # what Stable-Baselines 2 does where their script says nothing
    },
    "sac": {
        "gamma": 0.95,
        "ent_coef": 0.001,  # fixed: the target entropy of their script then has no effect
        "learning_starts": 1000,
        "batch_size": 256,
        "learning_rate": 1e-4,
        "buffer_size": 1_000_000,
        "tau": 0.001,
    },
    "td3": {
        "gamma": 0.96,
        "learning_starts": 1000,
        "train_freq": 100,
        "gradient_steps": 100,
        "batch_size": 128,
        "learning_rate": 1e-4,
        "buffer_size": 500_000,
        "tau": 0.02,
    },
}
WORLDS = {
    "pushing": ((750, 250, 0), 1, 834),
    "picking": ((250, 0, 125, 0, 750, 0, 0, 0.005), 1, 834),
    "pick_and_place": ((750, 50, 250, 0, 0.005), 1, 1667),
    "stacking2": ((750, 250, 250, 125, 0.005), 1, 1667),
}


STEPS = {"sb3_ppo": 100_000_000, "sac": 10_000_000, "td3": 10_000_000}
BATCHES = {"sb3_ppo": (20, 3000), "sac": (1, 256), "td3": (1, 128)}


@pytest.mark.parametrize("algorithm", SHEET)
def test_the_record_of_a_run_is_the_papers_whole_setting(algorithm, tmp_path):
    task = "trifinger/pushing-v1"
    config = Train(task=task, out=tmp_path, preset="paper", algorithm=algorithm, curriculum=1)
    env = make_env(config)
    record = run_record(config, env)
    env.close()
    assert (record["preset"], record["steps"]) == ("paper", STEPS[algorithm])
    assert (record["num_envs"], record["settings"]["batch_size"]) == BATCHES[algorithm]
    assert SHEET[algorithm].items() <= record["settings"].items(), "Table 5"
    if algorithm == "sb3_ppo":
        batch = record["num_envs"] * record["settings"]["n_steps"]
        assert (batch, batch // record["settings"]["batch_size"]) == (120_000, 40)
    assert record["settings"]["net"] == [256, 256]
    assert record["settings"]["tanh"] == (algorithm == "sb3_ppo")
    assert (record["space"], record["horizon"], record["options"]["skip_frame"]) == ("A", 834, 3)
    assert record["options"]["dense_reward_weights"] == [750, 250, 0]
    assert record["engine"]["contact"] in ("exact", "convex")


def test_steps_that_are_given_win_over_the_preset(tmp_path):
    from interverse.cli.train import parsed, training

    def steps(algorithm="sb3_ppo", **given):
        words = f"--task trifinger/pushing-v1 --out {tmp_path} --preset paper"
        words += f" --algorithm {algorithm}" + "".join(f" --{n} {v}" for n, v in given.items())
        return training(parsed(words.split()))[0].steps

    assert steps() == 100_000_000
    assert steps(algorithm="sac") == 10_000_000
    assert steps(steps=7) == 7


def test_a_run_names_its_contacts_and_its_use_on_others_says_so(tmp_path, capsys):
    import interverse as iv

    options = {"max_steps": 2, "contact": "convex"}
    hyper = {"n_steps": 2, "batch_size": 4}
    task = "trifinger/pushing-v1"
    config = Train(task=task, out=tmp_path, steps=4, num_envs=2, options=options, hyper=hyper)
    policy = train(config)
    record = json.loads((tmp_path / "train.json").read_text())
    assert record["engine"] == {"device": "cpu", "contact": "convex"}
    capsys.readouterr()
    iv.evaluate(str(policy), task, "P0", episodes=1)
    assert "contacts" not in capsys.readouterr().err
    card = tmp_path / "policy" / "policy.json"
    card.write_text(card.read_text().replace('"convex"', '"exact"', 1))  # as on another machine
    iv.evaluate(str(policy), task, "P0", episodes=1, contact="convex")
    told = capsys.readouterr().err
    note = "Trained on MuJoCo with exact contacts, evaluated on MuJoCo with convex"
    assert note in told
    _TOLD.clear()  # it is said once in a process
    iv.attribute(str(policy), task, ["block_0/mass"], episodes=1, pairs=0, contact="convex")
    assert note in capsys.readouterr().err
    _TOLD.clear()
    # The folder of the run stands for its policy, with the options of its training.
    given = {"id": task, "out": tmp_path / "set", "policy": str(tmp_path), "episodes": 1}
    folder = collect_episodes(CollectEpisodes(**given, options={"contact": "convex"}))
    assert note in capsys.readouterr().err
    assert json.loads((folder / "collect.json").read_text())["options"]["max_steps"] == 2


@pytest.mark.parametrize("task", WORLDS)
def test_worlds_are_those_of_the_paper(task, tmp_path):
    weights, overlap, steps = WORLDS[task]
    config = Train(task=f"trifinger/{task}-v1", out=tmp_path, preset="paper", num_envs=1)
    env = make_env(config)
    world = env.venv.unwrapped.world
    assert world.options.skip_frame == 3
    assert world.options.space == "A"
    assert tuple(world.options.dense_reward_weights) == weights
    assert world.options.fractional_reward_weight == overlap
    assert world.max_steps == steps
    env.close()


def test_the_network_is_the_papers(tmp_path):
    config = Train(task="trifinger/pushing-v1", out=tmp_path, preset="paper", num_envs=1)
    env = make_env(config)
    policy = make_model(config, env).policy
    trunk = policy.mlp_extractor.policy_net
    kinds = [type(layer) for layer in trunk]
    assert kinds == [torch.nn.Linear, torch.nn.Tanh] * 2
    assert [layer.out_features for layer in trunk[::2]] == [256, 256]
    # Actor and critic share both layers, so what the value learns moves the actions.
    seen = torch.as_tensor(env.reset())
    policy.predict_values(seen).sum().backward()
    assert trunk[0].weight.grad.abs().sum() > 0
    learned = {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert learned == {id(p) for p in (*trunk.parameters(), *policy.action_net.parameters())} | {
        id(p) for p in (policy.log_std, *policy.value_net.parameters())
    }
    env.close()


@pytest.mark.parametrize("algorithm", ["sb3_ppo", "sac"])
def test_a_stopped_run_of_the_paper_ends_as_an_unbroken_one(algorithm, tmp_path):
    hyper = {"n_steps": 16, "batch_size": 8} if algorithm == "sb3_ppo" else {"learning_starts": 8}
    for folder, ends in (("whole", [64]), ("broken", [32, 64])):
        for steps in ends:
            config = Train(
                task="tutorial/slider-v1",
                out=tmp_path / folder,
                preset="paper",
                algorithm=algorithm,
                num_envs=1,
                steps=steps,
                checkpoint_every=32,
                hyper=hyper,
            )
            train(config)
    whole, broken = (tmp_path / name / "policy/policy.safetensors" for name in ("whole", "broken"))
    assert whole.read_bytes() == broken.read_bytes()


def test_curricula_of_the_paper_are_in_space_a():
    assert [paper_curriculum(n).space for n in (1, 2)] == ["A", "A"]
    assert all(paper_curriculum(n).start == "cumulative" for n in (1, 2))


def small(tmp_path, **changes):
    settings = {"num_envs": 2, "steps": 1, "options": {"max_steps": 40}} | changes
    return Train(task="tutorial/slider-v1", out=tmp_path / "run", **settings)


def test_a_plain_run_says_nothing_and_draws_from_a(tmp_path, capsys):
    config = small(tmp_path, actor=("uniform:patterns=box/mass+gravity",))
    env = make_env(config)
    driver = env.venv.unwrapped.driver
    for _ in range(50):
        env.reset()
        for name in ("box/mass", "gravity"):
            assert driver.variables[name].space_a.inside(driver.values[name]).all()
    env.close()
    train(config)
    assert "space" not in capsys.readouterr().err


def test_returns_and_lengths_of_episodes_reach_the_log(tmp_path):
    config = small(tmp_path, steps=256)
    env = make_env(config)
    model = make_model(config, env)
    model.learn(256)
    assert [e["l"] for e in model.ep_info_buffer] == [40] * len(model.ep_info_buffer)
    assert len(model.ep_info_buffer) >= 6
    assert all(-40 < e["r"] < 0 for e in model.ep_info_buffer)
    env.close()


def test_an_evaluation_of_a_policy_that_saw_the_test_says_so(tmp_path, capsys):
    import interverse as iv

    for space in ("A", "B"):
        config = small(tmp_path / space, space=space, actor=("uniform:patterns=box/mass",))
        folder = train(config)
        assert (f"Trained in space {space}" in capsys.readouterr().err) == (space == "B")
        assert json.loads((config.out / "train.json").read_text())["space"] == space
        card = json.loads((folder / "policy.json").read_text())
        assert card["trained"]["config"]["space"] == space
        assert "settings" in card["trained"]["config"]
        found = iv.evaluate(str(folder), "tutorial/slider-v1", "P0", episodes=1, max_steps=3)
        (run,) = found.provenance["runs"]
        assert run.get("training_space") == (None if space == "A" else "B")
        assert ("Trained in space B" in capsys.readouterr().err) == (space == "B")
