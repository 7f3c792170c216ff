"""TD-MPC2 against its arithmetic written out plainly, step by step and network by network."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
import torch
from torch.nn import functional

from interverse.agents.pixel.agent import PixelBatch
from interverse.agents.pixel.augment import PadCrop
from interverse.agents.pixel.config import PixelHyper, PixelTrain, plan, preset
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.tdmpc2 import TdMpc2, TdMpc2Options
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.rollouts.exported import save_onnx, save_torchscript
from interverse.rollouts.planned import PlanModel, PlannedPolicy, PlanSizes, planned_policy
from interverse.rollouts.policy import as_policy

COUNT, ACTIONS, STEPS, LATENT = 5, 2, 3, 72
STILL = 1e-30  # a learning rate that moves nothing
RHO, CRITICS, BINS, LIMIT = 0.5, 3, 11, 4.0
SMALL = {"samples": 9, "elites": 4, "policy_paths": 3, "iterations": 3}


def make(*, moving: bool = False, **options) -> TdMpc2:
    rates = {} if moving else dict.fromkeys(("encoder_rate", "critic_rate", "actor_rate"), STILL)
    hyper = PixelHyper(image_size=12, render_size=12, alpha=0.3, discount=0.9, **rates)
    sizes = PixelSizes(
        pictures=(9, 12), actions=ACTIONS, filters=8, layers=2, features=LATENT, hidden=16
    )
    own = {"critics": CRITICS, "bins": BINS, "limit": LIMIT, "dropout": 0.25, **SMALL, **options}
    agent = TdMpc2(hyper, sizes, 3, "cpu", TdMpc2Options(**own))
    dice = torch.Generator().manual_seed(8)
    for part in agent.networks.parameters():  # no zeros, and slow values unlike the others
        with torch.no_grad():
            part.add_(0.2 * torch.randn(part.shape, generator=dice))
    return agent


def recorded() -> PixelBatch:
    draw = np.random.default_rng(5)
    frames = draw.integers(0, 256, (COUNT, 9 + 3 * STEPS, 12, 12), dtype=np.uint8)
    actions = draw.uniform(-1, 1, (COUNT, STEPS * ACTIONS)).astype(np.float32)
    rewards = draw.uniform(-3, 3, (COUNT, STEPS)).astype(np.float32)
    ends = np.zeros((COUNT, STEPS), np.float32)
    ends[1, -1] = 1.0
    return PixelBatch(*map(torch.from_numpy, (frames, actions, rewards, ends, frames[:, -9:])))


def twin(agent) -> torch.Generator:
    out = torch.Generator()
    out.set_state(agent.generator.get_state())
    return out


class Plain:
    """The agent's networks in double precision, one at a time."""

    def __init__(self, agent):
        held = agent.networks.state_dict()
        self.w = {n: v.double().clone().requires_grad_(n != "scale") for n, v in held.items()}

    def encode(self, pictures):
        x = pictures.double() / 255 - 0.5
        for i, stride in enumerate((2, 1)):
            x = torch.relu(x) if i else x
            name = f"model.encoder.{i}"
            x = functional.conv2d(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"], stride)
        return self.simplex(x.reshape(len(x), -1))

    def simplex(self, x):
        parts = [torch.exp(part) / torch.exp(part).sum(1, keepdim=True) for part in x.split(8, 1)]
        return torch.cat(parts, 1)

    def layers(self, name, x, member=0, kept=None):
        for i in range(3):
            x = x @ self.w[f"{name}.weights.{i}"][member] + self.w[f"{name}.biases.{i}"][member]
            x = x * kept if i == 0 and kept is not None else x
            if f"{name}.gains.{i}" in self.w:
                centred = x - x.mean(1, keepdim=True)
                x = centred / torch.sqrt(centred.pow(2).mean(1, keepdim=True) + 1e-5)
                x = x * self.w[f"{name}.gains.{i}"][member] + self.w[f"{name}.shifts.{i}"][member]
            x = x * torch.tanh(torch.log1p(torch.exp(x))) if i < 2 else x
        return x

    def next(self, z, a):
        return self.simplex(self.layers("model.dynamics", torch.cat([z, a], 1)))

    def choose(self, z, noise):
        mean, raw = self.layers("model.prior", z).chunk(2, 1)
        std = torch.exp(-10 + 6 * (torch.tanh(raw) + 1))
        x = mean + std * noise.double()
        density = torch.distributions.Normal(mean, std).log_prob(x)
        density = density - torch.log(1 - torch.tanh(x) ** 2)
        return torch.tanh(x), density.sum(1, keepdim=True)

    def number(self, logits):
        x = torch.softmax(logits, 1) @ torch.linspace(-LIMIT, LIMIT, BINS, dtype=torch.float64)
        return torch.sign(x) * (torch.exp(x.abs()) - 1)


def two_hot(number: float) -> np.ndarray:
    squashed = math.copysign(math.log(1 + abs(number)), number)
    place = (min(max(squashed, -LIMIT), LIMIT) + LIMIT) / (2 * LIMIT / (BINS - 1))
    out, low = np.zeros(BINS), min(math.floor(place), BINS - 2)
    out[low], out[low + 1] = 1 - (place - low), place - low
    return out


def cross(logits, numbers):
    wanted = torch.tensor(np.stack([two_hot(float(n)) for n in numbers]))
    return -(wanted * torch.log_softmax(logits, 1)).sum(1).mean()


def pair(draws):
    return torch.rand(CRITICS, generator=draws).argsort(descending=True)[:2].tolist()


def kept(draws, networks, rows):
    return (torch.rand((networks, rows, 16), generator=draws) >= 0.25).double() / 0.75


def by_hand(net, batch, draws):
    """Returns the model's loss by parts, the prior's, and the new scale."""
    frames = batch.observations
    stacks = torch.cat([frames[:, 3 * t : 3 * t + 9] for t in range(STEPS + 1)])
    (shifted,) = PadCrop(pad=3)(stacks, generator=draws)
    seen = shifted.view(STEPS + 1, COUNT, 9, 12, 12)
    acts = batch.actions.double().view(COUNT, STEPS, ACTIONS)
    noise, two = torch.randn((STEPS, COUNT, ACTIONS), generator=draws), pair(draws)
    mask = kept(draws, CRITICS, STEPS * COUNT).view(CRITICS, STEPS, COUNT, 16)
    z, zs, parts = net.encode(seen[0]), [], dict.fromkeys(("consistency", "reward", "value"), 0.0)
    for t in range(STEPS):
        zs.append(z)
        with torch.no_grad():
            after = net.encode(seen[t + 1])
            chosen = torch.cat([after, net.choose(after, noise[t])[0]], 1)
            slow = [net.number(net.layers("target_values", chosen, m)) for m in two]
            target = batch.rewards[:, t] + 0.9 * (1 - batch.ends[:, t]) * torch.minimum(*slow)
        both, share = torch.cat([z, acts[:, t]], 1), RHO**t / STEPS
        parts["reward"] += share * cross(net.layers("model.rewards", both), batch.rewards[:, t])
        for m in range(CRITICS):
            logits = net.layers("model.values", both, m, mask[m, t])
            parts["value"] += share / CRITICS * cross(logits, target)
        z = net.next(z, acts[:, t])
        parts["consistency"] += share * ((z - after) ** 2).mean()
    zs.append(z)
    noise, two = torch.randn((STEPS + 1, COUNT, ACTIONS), generator=draws), pair(draws)
    mask = kept(draws, 2, (STEPS + 1) * COUNT).view(2, STEPS + 1, COUNT, 16)
    values, entropies = [], []
    for t, z in enumerate(zs):
        actions, density = net.choose(z.detach(), noise[t])
        both = torch.cat([z.detach(), actions], 1)
        each = [net.layers("model.values", both, m, mask[k, t]) for k, m in enumerate(two)]
        values.append(sum(net.number(x) for x in each) / 2)
        entropies.append(-density[:, 0])
    low, high = np.quantile(values[0].detach().numpy(), [0.05, 0.95])
    scale = 0.99 * 1.0 + 0.01 * max(high - low, 1.0)
    steps = zip(values, entropies, strict=True)
    gains = [RHO**t * (v / scale + 0.3 * ACTIONS * e).mean() for t, (v, e) in enumerate(steps)]
    return parts, -sum(gains) / len(gains), scale


def test_an_update_by_hand():
    agent, batch = make(), recorded()
    net, draws = Plain(agent), twin(agent)
    losses = agent.update(batch)
    parts, prior, scale = by_hand(net, batch, draws)
    for name, expected in (parts | {"prior": prior}).items():
        assert float(losses[name]) == pytest.approx(expected.item(), rel=1e-4), name
    assert float(losses["scale"]) == pytest.approx(scale, rel=1e-4)
    assert float(agent.networks.scale) == pytest.approx(scale, rel=1e-4)
    total = 20 * parts["consistency"] + 0.1 * parts["reward"] + 0.1 * parts["value"]
    trained = {n: p for n, p in agent.networks.named_parameters() if p.requires_grad}
    for loss, part in ((total, False), (prior, True)):
        names = [name for name in trained if ("prior" in name) == part]
        expected = torch.autograd.grad(loss, [net.w[name] for name in names])
        length = math.sqrt(sum(float(g.pow(2).sum()) for g in expected))
        for name, gradient in zip(names, expected, strict=True):
            gradient = gradient * min(20.0 / length, 1.0)
            torch.testing.assert_close(
                trained[name].grad.double(), gradient, rtol=1e-3, atol=1e-5, msg=name
            )


def test_gradients_are_clipped_and_adam_steps_by_them():
    agent, batch = make(moving=True, clip=0.01, dropout=0.0), recorded()
    before = {name: p.detach().clone() for name, p in agent.networks.named_parameters()}
    agent.update(batch)
    model = agent.networks.model
    for part in (model.prior, nn_of(model.dynamics, model.rewards, model.values, model.encoder)):
        length = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in part.parameters()))
        assert length == pytest.approx(0.01, rel=1e-3)
    for name, after in agent.networks.named_parameters():
        if name.startswith("target_values."):
            online = agent.networks.get_parameter(name.replace("target_", "model."))
            expected = 0.99 * before[name] + 0.01 * online
        else:  # Adam's first step: the rate times the gradient over its own size
            settled = 1e-5 if "prior" in name else 1e-8
            expected = before[name] - 1e-3 * after.grad / (after.grad.abs() + settled)
        torch.testing.assert_close(after, expected, rtol=1e-4, atol=1e-6, msg=name)


def nn_of(*parts):
    return torch.nn.ModuleList(parts)


def test_numbers_in_bins_and_back():
    model = make().networks.model
    numbers = [-1e6, -3.0, -0.2, 0.0, 0.4, 2.5, math.expm1(LIMIT), 1e6]
    rows = model.encoded(torch.tensor(numbers)[:, None])
    for row, number in zip(rows, numbers, strict=True):
        assert np.allclose(row, two_hot(number), atol=1e-5)
    back = model.decoded(torch.log(rows))[:, 0]
    assert torch.allclose(back, torch.tensor(numbers).clamp(-53.59815, 53.59815), 1e-3, 1e-5)


def test_the_search_by_hand():
    agent = make()
    model, net = agent.networks.model, Plain(agent)
    z = model.encode(recorded().observations[:2, :9])
    start = torch.rand((2, STEPS, ACTIONS), generator=torch.Generator().manual_seed(1)) - 0.5
    noise = model.noise(2, torch.Generator().manual_seed(2))
    with torch.no_grad():
        found = model.search(z, start, noise)
        for world in range(2):
            expected = searched(net, z[world : world + 1].double(), start[world], noise, world)
            for name, mine in zip(("mean", "spread", "elites", "weights"), found, strict=True):
                assert np.allclose(mine[world], expected[name], atol=1e-4), name


def searched(net, z, start, noise, world):
    """Returns what MPPI ends with, one plan after another."""
    own = []
    for dice in noise.prior[world]:
        x, steps = z, []
        for t in range(STEPS):
            steps.append(net.choose(x, dice[t : t + 1])[0])
            x = net.next(x, steps[-1])
        own.append(torch.cat(steps))
    mean, spread = start.double(), torch.full((STEPS, ACTIONS), 2.0, dtype=torch.float64)
    for i in range(SMALL["iterations"]):
        plans = own + [(mean + spread * dice).clamp(-1, 1) for dice in noise.paths[i, world]]
        worth = []
        for plan_, last in zip(plans, noise.last[i, world], strict=True):
            x, total = z, 0.0
            for t in range(STEPS):
                both = torch.cat([x, plan_[t : t + 1]], 1)
                total += 0.9**t * float(net.number(net.layers("model.rewards", both)))
                x = net.next(x, plan_[t : t + 1])
            both = torch.cat([x, net.choose(x, last[None])[0]], 1)
            pair_ = [float(net.number(net.layers("model.values", both, m))) for m in noise.pairs[i]]
            worth.append(total + 0.9**STEPS * sum(pair_) / 2)
        order = np.argsort(worth)[::-1][:4]
        weights = np.exp(0.5 * (np.array(worth)[order] - max(worth)))
        weights /= weights.sum()
        elites = np.stack([plans[k].numpy() for k in order])
        share = weights[:, None, None]
        mean = torch.tensor((share * elites).sum(0))
        spread = torch.tensor(np.sqrt((share * (elites - mean.numpy()) ** 2).sum(0)))
        spread = spread.clamp(0.05, 2.0)
    return {"mean": mean, "spread": spread, "elites": elites, "weights": weights}


def test_a_search_goes_on_with_the_last_plan_of_its_episode():
    agent, seen = make(), recorded().observations[:3, :9].numpy()
    calls = []
    agent.networks.model.search = spied(agent.networks.model.search, calls)
    agent.begin(seen, explore=True)()
    agent.begin(seen, explore=True, fresh=np.array([False, True, False]))()
    (first, found), (start, _) = calls
    assert not first.any()
    assert torch.equal(start[[0, 2], :-1], found.mean[[0, 2], 1:])
    assert not start[:, -1].any()
    assert not start[1].any(), "a new episode begins with nothing"


def spied(search, calls):
    def call(z, mean, noise):
        calls.append((mean, search(z, mean, noise)))
        return calls[-1][1]

    return call


def test_exploring_takes_an_elite_by_its_weight():
    agent = make(least_spread=1e-9, most_spread=1e-9, policy_paths=8, elites=8, iterations=1)
    seen = recorded().observations[:1, :9].expand(4000, -1, -1, -1).numpy()
    calls = []
    agent.networks.model.search = spied(agent.networks.model.search, calls)
    taken = agent.begin(seen, explore=True)()
    _, found = calls[0]
    expected = (found.weights[..., None] * found.elites[:, :, 0]).sum(1)
    assert np.allclose(taken.mean(0), expected.mean(0), atol=0.03)
    near = (found.elites[:, :, 0] - torch.tensor(taken)[:, None]).abs().amax(2).amin(1)
    assert float(near.max()) < 1e-6


def test_it_overfits_a_batch():
    agent, batch = make(moving=True, dropout=0.0, pad=0), recorded()
    first = agent.update(batch)
    for _ in range(150):
        last = agent.update(batch)
    assert float(last["reward"]) < 0.6 * float(first["reward"])
    assert float(last["consistency"]) < 0.5 * float(first["consistency"])


def exported(agent) -> PlannedPolicy:
    bounds = [-1.0, -2.0], [1.0, 0.0]
    return planned_policy(agent.networks.model, [9, 14, 14], bounds, {"options": {"a": 1}})


def test_the_export_plans_as_the_agent_and_a_batch_as_single_worlds(tmp_path):
    agent = make()
    policy = exported(agent)
    seen = np.random.default_rng(1).integers(0, 256, (3, 9, 14, 14), dtype=np.uint8)
    mean = agent.act(seen, explore=False)
    expected = np.array([-1.0, -2.0]) + 0.5 * (mean + 1.0) * np.array([2.0, 2.0])
    assert np.allclose(policy(seen), expected, atol=1e-5)
    assert np.array_equal(policy(seen), np.concatenate([policy(seen[i : i + 1]) for i in range(3)]))
    loaded = as_policy(policy.save(tmp_path / "whole"), None)
    assert np.array_equal(loaded(seen), policy(seen))
    small = PlannedPolicy.load(policy.save_small(tmp_path / "small"))
    assert np.abs(small(seen) - policy(seen)).max() < 1.0
    with pytest.raises(InvalidValueError, match="as it was trained with"):
        policy(seen[:, :, 1:, 1:])


def test_programs_without_python_plan_alike(tmp_path):
    """They are recorded with two worlds and act for three."""
    policy = exported(make())
    seen = np.random.default_rng(1).integers(0, 256, (3, 9, 14, 14), dtype=np.uint8)
    file = save_torchscript(policy, tmp_path / "policy.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.load(file)
    assert np.allclose(script(torch.as_tensor(seen)), policy(seen), atol=1e-4)
    reference = pytest.importorskip("onnx.reference")
    program = reference.ReferenceEvaluator(str(save_onnx(policy, tmp_path / "policy.onnx")))
    assert np.allclose(program.run(None, {"observation": seen})[0], policy(seen), atol=1e-4)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "other"),
        ("observation", [9, 11, 11]),
        ("low", [-1.0]),
        ("discount", 2.0),
        ("sizes", {"channels": 9, "side": 12, "actions": 2, "filters": 16, "layers": 2}),
        ("options", {"samples": 0}),
        ("options", {"swirl": 1}),
        ("options", {"samples": 4096, "iterations": 4096, "horizon": 4096}),
        ("sizes", {"channels": 9, "side": 4096, "actions": 2, "layers": 2}),
        ("sizes", [9, 12]),
    ],
    ids=str,
)
def test_a_foreign_card_says_so(tmp_path, field, value):
    folder = exported(make()).save(tmp_path)
    card = json.loads((folder / "policy.json").read_text())
    (folder / "policy.json").write_text(json.dumps(card | {field: value}))
    with pytest.raises(FileFormatError, match="holds no pixel policy"):
        PlannedPolicy.load(folder)


def test_discount_and_warm_up_follow_the_episode_in_force(tmp_path):
    """1 - 5 / decisions, and five episodes; the schedule's frame skip of cartpole is 8."""

    def found(**options):
        given = {"task": "control/cartpole_balance-v1", "algorithm": "tdmpc2", "preset": "paper"}
        hyper = plan(PixelTrain(out=tmp_path, options=options, **given)).hyper
        return pytest.approx((hyper.discount, hyper.warm_up))

    assert found() == (0.96, 1000)
    assert found(frame_skip=2) == (0.99, 2500)
    assert found(frame_skip=1) == (0.995, 5000)
    assert found(frame_skip=1, max_steps=400) == (0.9875, 2000)
    assert found(frame_skip=1, max_steps=9999) == (0.995, 5000), "an episode ends by itself"
    with pytest.raises(InvalidValueError, match="frame_skip is 0"):
        found(frame_skip=0)


def test_the_published_settings_by_name(tmp_path):
    task = "control/cartpole_balance-v1"
    hyper = preset("tdmpc2", "paper", task)
    assert (hyper.image_size, hyper.features, hyper.hidden, hyper.batch) == (64, 512, 512, 256)
    assert (hyper.critic_rate, hyper.encoder_rate, hyper.alpha) == (3e-4, 9e-5, 1e-4)
    assert (hyper.discount, hyper.warm_up) == (0.96, 1000), "an episode has 125 decisions"
    assert preset("tdmpc2", "paper", "control/walker_walk-v1").discount == 0.99
    assert preset("tdmpc2", "paper", "control/walker_walk-v1").warm_up == 2500
    for name in ("paper", "small"):
        planned = plan(PixelTrain(task=task, out=tmp_path, algorithm="tdmpc2", preset=name))
        sizes = PlanSizes(channels=9, side=64, actions=1, filters=planned.hyper.filters)
        assert sizes.latent == planned.hyper.features
    big, small = TdMpc2Options(), planned.agent_options
    assert (big.horizon, big.samples, big.elites, big.iterations) == (3, 512, 64, 6)
    assert (big.policy_paths, big.critics, big.bins, big.group) == (24, 5, 101, 8)
    assert (small.samples, small.horizon) == (96, 3)
    for name, rounds in (("walker_walk", 6), ("humanoid_walk", 8)):  # of 20 numbers or more: 8
        given = {"out": tmp_path, "algorithm": "tdmpc2", "preset": "paper"}
        given["task"] = f"control/{name}-v1"
        assert plan(PixelTrain(**given)).agent_options.iterations == rounds
        assert plan(PixelTrain(**given, hyper={"iterations": 3})).agent_options.iterations == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"elites": 10}, "elites is 10"),
        ({"policy_paths": 9}, "policy_paths is 9"),
        ({"critics": 1}, "critics is 1"),
        ({"dropout": 1.0}, "dropout is 1"),
        ({"most_spread": 0.01}, "most_spread is 0.01"),
        ({"group": 7}, "multiples of 7"),
    ],
    ids=str,
)
def test_mistakes(options, words):
    with pytest.raises(InvalidValueError, match=words):
        make(**options)


def test_sizes_that_cannot_be():
    with pytest.raises(InvalidValueError, match="vanish in 4"):
        PlanSizes(channels=9, side=30, actions=1)
    sizes = PixelSizes(pictures=(9, 64), actions=1)
    with pytest.raises(InvalidValueError, match=r"features is 50.*512"):
        TdMpc2(PixelHyper(), sizes, 0)
    shape = PlanSizes(channels=9, side=64, actions=1)
    model = PlanModel(shape, TdMpc2Options(), 0.99, torch.Generator())
    heads = sum(p.numel() for p in model.parameters())
    assert 4.5e6 < heads < 5.5e6, "the authors' 5 million"


def test_from_the_command_line(tmp_path, capsys):
    """Trains a little, goes on, and the policy acts in the world it was trained in."""
    hyper = ["warm_up=8", "batch=4", "hidden=16", "filters=8", "features=128", "capacity=60"]
    searching = ["samples=6", "elites=2", "policy_paths=1", "iterations=1", "bins=11"]
    words = ["train", "--task", "control/cartpole_balance-v1", "--algorithm", "tdmpc2"]
    words += ["--hyper", *hyper, *searching, "--option", "max_steps=5", "--out", str(tmp_path)]
    words += ["--checkpoint-every", "10", "--evaluate-episodes", "1"]
    for steps in (12, 18):
        assert main([*words, "--steps", str(steps)]) == 0, capsys.readouterr().err
    card = json.loads((tmp_path / "policy" / "policy.json").read_text())
    assert card["trained"]["steps"] == 18
    assert card["options"]["samples"] == 6
    curves = json.loads((tmp_path / "curves.json").read_text())
    assert [row["step"] for row in curves["evaluations"]] == [12, 18]
    words = ["evaluate", str(tmp_path), "--protocols", "none", "--episodes", "1"]
    assert main([*words, "--out", str(tmp_path / "scores")]) == 0, capsys.readouterr().err
