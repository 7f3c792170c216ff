"""Every agent: what an update changes, its losses by hand, and that it overfits a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from torch.nn import functional

from interverse.agents import AGENTS, tagged
from interverse.agents.pixel.agent import PixelBatch, PixelHyper
from interverse.agents.pixel.augment import augmentation, random_crop
from interverse.agents.pixel.config import PixelTrain, plan
from interverse.core.errors import InvalidValueError
from tests.agents.pixel import by_hand

COUNT, SIZE, ACTIONS = 6, 12, 2
CROPPED = {"curl": 15, "rad": 15, "soda": 15}  # they see the middle of larger pictures
STILL = 1e-30  # a learning rate that moves nothing: losses then belong to the first weights
STEPPED = [name for name in tagged("pictures") if name != "tdmpc2"]  # it learns from sequences
SOFT = [name for name in STEPPED if name != "drq_v2"]  # they have a temperature and slow targets
TRUNKED = {"curl", "dbc", "drq", "rad", "sac_ae", "sgqn", "soda", "svea"}


def hyper(**more) -> PixelHyper:
    given = {"image_size": SIZE, "render_size": 15, "layers": 2, "batch": COUNT}
    return PixelHyper(**{**given, "filters": 4, "features": 8, "hidden": 16, **more})


def still(**more) -> PixelHyper:
    rates = dict.fromkeys(("encoder_rate", "critic_rate", "actor_rate", "alpha_rate"), STILL)
    return hyper(**{**rates, **more})


def make(name: str, settings: PixelHyper | None = None, **options):
    settings = hyper() if settings is None else settings
    entry = AGENTS[name]
    kind = entry.load()
    sizes = settings.sizes(9, ACTIONS)
    given = {**entry.options, **options}
    more = (kind.options_type(**given),) if given else ()
    return kind(settings, sizes, 3, "cpu", *more)


def recorded(name: str, count: int = COUNT, *, end: bool = False) -> PixelBatch:
    draw = np.random.default_rng(5)
    side = CROPPED.get(name, SIZE)
    count = 2 * count if name == "soda" else count  # it has a second batch of its own
    now, then = draw.integers(0, 256, (2, count, 9, side, side), dtype=np.uint8)
    actions = draw.uniform(-1, 1, (count, ACTIONS)).astype(np.float32)
    rewards = draw.uniform(0, 1, (count, 1)).astype(np.float32)
    ends = np.ones((count, 1)) if end else draw.integers(0, 2, (count, 1))
    parts = (now, actions, rewards, ends.astype(np.float32), then)
    return PixelBatch(*map(torch.from_numpy, parts))


def parameters(agent) -> dict[str, torch.Tensor]:
    held = {**agent.networks.state_dict(), **agent.extra.state_dict()}
    return {name: value.detach().clone() for name, value in held.items()}


def changed(before, after) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


def under(names, *prefixes: str) -> set[str]:
    return {name for name in names if name.startswith(prefixes)}


@pytest.mark.parametrize("name", SOFT)
def test_an_update_changes_exactly_what_it_should(name):
    agent, batch = make(name), recorded(name)
    start = parameters(agent)
    agent.update(batch)
    first = parameters(agent)
    assert changed(start, first) == set(start), "at the first update everything learns"
    agent.update(batch)
    second = parameters(agent)
    learners = under(start, "encoder.", "critics.", "contrast.", "decoder.", "model.")
    assert changed(first, second) == learners, "actor, temperature, targets wait for the third"
    assert any(name.startswith("actor_trunk.") for name in start) == (name in TRUNKED)


@pytest.mark.parametrize("name", SOFT)
def test_only_the_actors_own_layers_feel_its_loss(name):
    rates = {"sgqn": "mask_rate", "soda": "projection_rate"}
    own_rates = {rates[name]: STILL} if name in rates else {}
    agent = make(name, hyper(encoder_rate=STILL, critic_rate=STILL, alpha_rate=STILL), **own_rates)
    start = parameters(agent)
    agent.update(recorded(name))
    own = under(start, "actor.", "actor_trunk.")
    after = parameters(agent)
    moved = {n for n in start if float((after[n] - start[n]).abs().max()) > 1e-20}
    assert {n for n in moved if not n.startswith("target_")} == own


@pytest.mark.parametrize("name", ["sac_pixels", "drq"])
def test_targets_follow_by_their_fraction(name):
    agent = make(name)
    start = parameters(agent)
    agent.update(recorded(name))
    after = parameters(agent)
    for part, tau in (("encoder", 0.05), ("critics", 0.01)):
        for key in under(start, f"{part}."):
            moved = (1 - tau) * start[f"target_{key}"] + tau * after[key]
            assert torch.allclose(after[f"target_{key}"], moved, atol=1e-7), key


def twin(agent) -> torch.Generator:
    """Returns a generator that will draw what the agent's will."""
    out = torch.Generator()
    out.set_state(agent.generator.get_state())
    return out


def met(name: str, **options):
    """Returns a batch, the first weights, the dice of the update, and its losses."""
    agent, batch = make(name, still(), **options), recorded(name)
    w, draws = by_hand.weights(agent), twin(agent)
    return batch, w, draws, agent.update(batch)


def check_critic(losses, seen, batch, wanted, w, name="critic", **how):
    """Holds the critics on what they see to the values that are wanted."""
    expected = by_hand.critic_loss(seen, batch.actions.numpy(), wanted, w, **how)
    assert float(losses[name]) == pytest.approx(expected, rel=1e-4)


def check_actor(losses, seen, draws, w, *, after=None, own_trunk=True, squash=True):
    """Holds an actor to the soft value of what it does, by the critics after their step."""
    features = by_hand.encode(seen, w, squash=squash)
    read = features
    if own_trunk:
        flat = by_hand.flat_maps(seen, w, "encoder")
        read = by_hand.trunk(flat, w, "actor_trunk", squash=squash)
    chosen, density = by_hand.choose(read, noise(draws), w)
    value = np.minimum(*by_hand.values(features, chosen, w if after is None else after))
    assert float(losses["actor"]) == pytest.approx(np.mean(0.1 * density - value), rel=1e-4)
    assert float(losses["entropy"]) == pytest.approx(-density.mean(), rel=1e-4)


def noise(draws: torch.Generator, count: int = COUNT):
    return torch.randn(count, ACTIONS, generator=draws).numpy()


def test_sac_by_hand():
    batch, w, draws, losses = met("sac_pixels")
    wanted = by_hand.target(batch, batch.successors, noise(draws), w, own_trunk=False)
    check_critic(losses, batch.observations, batch, wanted, w)
    check_actor(losses, batch.observations, draws, w, own_trunk=False)
    assert float(losses["alpha"]) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["sac_pixels", "sac_aug"])
def test_the_actor_learns_from_the_features_that_the_critics_step_used(name):
    """As in the authors' code: new critics judge, on features from before their step."""
    more = {"augmentation": "identity"} if name == "sac_aug" else {}
    steps = {"encoder_rate": 0.05, "critic_rate": 0.05}
    agent, batch = make(name, still(**steps), **more), recorded(name)
    w, draws = by_hand.weights(agent), twin(agent)
    losses = agent.update(batch)
    noise(draws)  # of the target
    after = by_hand.weights(agent)
    check_actor(losses, batch.observations, draws, w, after=after, own_trunk=False)


def test_the_temperature_moves_towards_the_target_entropy():
    agent, batch = make("sac_pixels", still(alpha_rate=1e-2)), recorded("sac_pixels")
    losses = agent.update(batch)
    entropy, target = float(losses["entropy"]), -ACTIONS
    # Adam's first step has the length of its rate: up if the policy is too certain, else down.
    expected = np.log(0.1) + 1e-2 * np.sign(target - entropy)
    assert agent.networks.log_alpha.item() == pytest.approx(expected, abs=1e-5)


def test_a_time_limit_is_no_end():
    agent, batch = make("sac_pixels"), recorded("sac_pixels")
    never = batch._replace(ends=torch.zeros(COUNT, 1))
    always = batch._replace(ends=torch.ones(COUNT, 1))
    assert torch.equal(agent.target(always, batch.successors), batch.rewards)
    assert not torch.any(agent.target(never, batch.successors) == batch.rewards)


@pytest.mark.parametrize("rule", ["paper", "code"])
def test_sac_aug_by_hand(rule):
    options = {"augmentation": "drq_no_noise", "beta": 0.5, "invariance": 0.25, "rule": rule}
    batch, w, draws, losses = met("sac_aug", **options)
    seen, then = augmentation("drq_no_noise", rule)(
        batch.observations, batch.successors, generator=draws
    )
    mixed_then = np.concatenate([then[:3], batch.successors[3:]])
    mixed_now = np.concatenate([seen[:3], batch.observations[3:]])
    wanted = by_hand.target(batch, mixed_then, noise(draws), w, own_trunk=False)
    check_critic(losses, mixed_now, batch, wanted, w)
    gap = by_hand.encode(seen, w) - by_hand.encode(batch.observations, w)
    length = np.sqrt((gap**2).sum()) if rule == "code" else np.sqrt((gap**2).sum(1)).mean()
    assert float(losses["invariance"]) == pytest.approx(length, rel=1e-4)


def test_the_papers_shares_and_weights():
    agent = make("sac_aug")
    assert (agent.options.beta, agent.options.invariance) == (0.9, 1e-5)
    assert int(agent.options.beta * 256) == 230
    names = {n: make(n).options.augmentation for n in ("sac_aug", "sac_cj_aug", "sac_nr_aug")}
    assert names == {
        "sac_aug": "drq",
        "sac_cj_aug": "color_jitter+drq",
        "sac_nr_aug": "network_randomization+drq",
    }


def test_invariance_is_felt_by_the_encoder_alone():
    plain, pulled = (
        make("sac_aug", hyper(), augmentation="drq_no_noise", beta=1.0, invariance=weight)
        for weight in (0.0, 10.0)
    )
    for agent in (plain, pulled):
        agent.update(recorded("sac_aug"))
    differ = changed(parameters(plain), parameters(pulled))
    trained = under(differ, "encoder.", "target_encoder.")
    assert under(trained, "encoder.")
    assert not under(differ, "critics.")


@pytest.mark.parametrize("name", ["sac_aug", "curl", "drq", "drq_v2"])
def test_drq_and_drq_v2_start_with_whole_kernels(name):
    weight = make(name, still()).networks.encoder.convolutions[0].weight
    assert bool(weight[:, :, 0, 0].any()) == name.startswith("drq")


def test_rad_by_hand():
    batch, w, draws, losses = met("rad")
    then = random_crop(batch.successors, SIZE, draws)
    wanted = by_hand.target(batch, then, noise(draws), w, own_trunk=True, squash=False)
    now = random_crop(batch.observations, SIZE, draws)
    check_critic(losses, now, batch, wanted, w, squash=False)


def test_drq_by_hand():
    batch, w, draws, losses = met("drq")
    shift = augmentation("drq_no_noise")
    then = [shift(batch.successors, generator=draws)[0] for _ in range(2)]
    targets = [by_hand.target(batch, x, noise(draws), w, own_trunk=True) for x in then]
    now = [shift(batch.observations, generator=draws)[0] for _ in range(2)]
    wanted, actions = np.mean(targets, axis=0), batch.actions.numpy()
    expected = np.mean([by_hand.critic_loss(x, actions, wanted, w) for x in now])
    assert float(losses["critic"]) == pytest.approx(expected, rel=1e-4)
    check_actor(losses, now[0], draws, w)


def test_drq_v2_by_hand():
    agent, batch = make("drq_v2", still(), fading=10_000), recorded("drq_v2")
    w, draws = by_hand.weights(agent), twin(agent)
    start = parameters(agent)
    losses = agent.update(batch)
    shift = augmentation("drq_no_noise")
    now, then = (shift(x, generator=draws)[0] for x in (batch.observations, batch.successors))
    spread = 1.0 - 0.9 * 1000 / 10_000  # after a warm-up of 1,000 decisions
    flat = by_hand.flat_maps(then, w, "encoder")
    actions = near(flat, noise(draws), spread, w)
    read = by_hand.trunk(flat, w, "target_encoder.trunk")
    value = np.minimum(*by_hand.values(read, actions, w, "target_critics"))
    wanted = batch.rewards.numpy() + 0.99**3 * (1.0 - batch.ends.numpy()) * value
    pair = by_hand.values(by_hand.encode(now, w), batch.actions.numpy(), w)
    expected = sum(np.mean((one - wanted) ** 2) for one in pair)
    assert float(losses["critic"]) == pytest.approx(expected, rel=1e-4)
    chosen = near(by_hand.flat_maps(now, w, "encoder"), noise(draws), spread, w)
    value = np.minimum(*by_hand.values(by_hand.encode(now, w), chosen, w))
    assert float(losses["actor"]) == pytest.approx(-value.mean(), rel=1e-4)
    assert float(losses["spread"]) == pytest.approx(spread)
    assert "log_alpha" not in changed(start, parameters(agent)), "there is no temperature"


def near(flat, draws, spread, w):
    mean, _ = np.split(
        by_hand.perceptron(by_hand.trunk(flat, w, "actor_trunk"), w, "actor.layers"), 2, 1
    )
    return np.clip(np.tanh(mean) + np.clip(spread * draws, -0.3, 0.3), -1.0, 1.0)


def test_drq_v2_explores_less_and_less():
    agent = make("drq_v2", hyper(), fading=1_010, last_spread=0.0)
    seen = recorded("drq_v2").observations.numpy()
    mean = agent.act(seen, explore=False)
    wide = np.std([agent.act(seen, explore=True) - mean for _ in range(50)])
    for _ in range(10):
        agent.update(recorded("drq_v2"))
    mean = agent.act(seen, explore=False)
    assert wide > 0.0
    assert np.allclose(agent.act(seen, explore=True), mean), "the spread has gone"


def test_svea_by_hand():
    batch, w, draws, losses = met("svea")
    seen = shifted(batch.observations, draws)
    then = shifted(batch.successors, draws)  # apart from the observations
    wanted = by_hand.target(batch, then, noise(draws), w, own_trunk=True)
    changed = convolved(seen, torch.randn((COUNT, 3, 3, 3, 3), generator=draws).numpy())
    check_critic(losses, seen, batch, wanted, w)
    check_critic(losses, changed, batch, wanted, w, "strong")
    check_actor(losses, seen, draws, w)


def shifted(pictures, draws: torch.Generator):
    """Returns every picture moved by up to four pixels, each by its own, the border repeated."""
    tops, lefts = (9 * torch.rand((2, COUNT), generator=draws)).long().tolist()
    padded = np.pad(pictures.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)), mode="edge")
    rows = zip(padded, tops, lefts, strict=True)
    return np.stack([one[:, i : i + SIZE, j : j + SIZE] for one, i, j in rows])


def convolved(pictures, filters):
    """Returns the frames of every picture by its own filter, border repeated, squashed 0..255."""
    frames = np.pad(
        pictures.reshape(COUNT, 3, 3, SIZE, SIZE) / 255.0,
        ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)),
        mode="edge",
    )
    windows = np.lib.stride_tricks.sliding_window_view(frames, (3, 3), axis=(3, 4))
    made = np.einsum("nkchwij,nocij->nkohw", windows, filters.astype(np.float64))
    return (255.0 / (1.0 + np.exp(-made))).reshape(pictures.shape)


def test_svea_weighs_its_two_views():
    grads = []
    for weight in (0.0, 1.0, 0.2):
        agent = make("svea", still(), strong_weight=weight)
        agent.update(recorded("svea"))
        parts = [*agent.networks.critics.parameters(), *agent.networks.encoder.parameters()]
        grads.append(torch.cat([p.grad.ravel() for p in parts]))
    weak, strong, mixed = grads
    torch.testing.assert_close(mixed, 0.8 * weak + 0.2 * strong, rtol=1e-4, atol=1e-6)


class Guided(torch.autograd.Function):
    """ReLU whose gradient only goes up."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0.0)

    @staticmethod
    def backward(ctx, up):
        (x,) = ctx.saved_tensors
        return up * (x > 0) * (up > 0)


def guided(pictures, actions, w):
    """Returns the first critic's gradient in the pictures, of which each layer passes the rise."""
    t = {name: torch.tensor(value) for name, value in w.items()}
    x = start = torch.tensor(np.asarray(pictures, float) / 255.0, requires_grad=True)
    for i in range(2):
        name = f"encoder.convolutions.{i}"
        x = functional.conv2d(x, t[f"{name}.weight"], t[f"{name}.bias"], 1 if i else 2)
        x = Guided.apply(x)
    x = x.flatten(1) @ t["encoder.trunk.linear.weight"].T + t["encoder.trunk.linear.bias"]
    norm = t["encoder.trunk.norm.weight"], t["encoder.trunk.norm.bias"]
    x = torch.tanh(functional.layer_norm(x, [x.shape[1]], *norm))
    x = torch.cat([x, torch.tensor(np.asarray(actions, float))], 1)
    for layer in (0, 2, 4):
        x = x @ t[f"critics.first.{layer}.weight"].T + t[f"critics.first.{layer}.bias"]
        x = Guided.apply(x) if layer < 4 else x
    return torch.autograd.grad(x.sum(), start)[0].numpy()


def test_sgqn_by_hand():
    agent, batch = make("sgqn", still(), mask_rate=STILL), recorded("sgqn")
    for layer in agent.networks.encoder.convolutions:  # they start with one weight of nine
        torch.nn.init.normal_(layer.weight, 0.0, 0.1, generator=torch.Generator().manual_seed(1))
    w, draws = by_hand.weights(agent), twin(agent)
    losses = agent.update(batch)
    shift = augmentation("drq_no_noise")
    (seen,), (then,) = (shift(p, generator=draws) for p in (batch.observations, batch.successors))
    wanted = by_hand.target(batch, then, noise(draws), w, own_trunk=True)
    actions = batch.actions.numpy()
    check_critic(losses, seen, batch, wanted, w)
    kept = []
    for frame in np.split(guided(seen, actions, w), 3, axis=1):
        level = np.abs(frame).max(1)
        least = np.quantile(level.reshape(COUNT, -1), 0.9, axis=1)
        kept += [level >= least[:, None, None]] * 3
    kept = np.stack(kept, axis=1)
    assert 0.09 < kept.mean() < 0.13
    seen = seen.numpy().astype(float)
    level = seen.min() + float(torch.rand((), generator=draws)) * (seen.max() - seen.min())
    covered = np.where(kept, seen, level)
    pairs = [by_hand.values(by_hand.encode(x, w), actions, w) for x in (seen, covered)]
    gap = sum(0.5 * np.mean((a - b) ** 2) for a, b in zip(*pairs, strict=True))
    assert float(losses["consistency"]) == pytest.approx(gap, rel=1e-3)
    noise(draws)  # the actor's
    changed = convolved(seen, torch.randn((COUNT, 3, 3, 3, 3), generator=draws).numpy())
    features = torch.tensor(by_hand.encode(changed, w), dtype=torch.float32)
    told = agent.extra["salience"](features, batch.actions).detach().numpy()
    cost = np.logaddexp(0.0, told) - kept * told
    assert float(losses["salience"]) == pytest.approx(cost.mean(), rel=1e-3)


def test_curl_by_hand():
    batch, w, draws, losses = met("curl")
    anchors = random_crop(batch.observations, SIZE, draws)
    then = random_crop(batch.successors, SIZE, draws)
    wanted = by_hand.target(batch, then, noise(draws), w, own_trunk=True, squash=False)
    check_critic(losses, anchors, batch, wanted, w, squash=False)
    noise(draws)  # the actor's
    seen = random_crop(batch.observations, SIZE, draws)
    keys = by_hand.encode(seen, w, "target_encoder", squash=False)
    logits = by_hand.encode(anchors, w, squash=False) @ w["contrast.weight"] @ keys.T
    apart = np.mean(logsumexp(logits, axis=1) - np.diag(logits))
    assert float(losses["contrast"]) == pytest.approx(apart, rel=1e-4)
    assert (w["contrast.weight"] >= 0).all()
    assert (w["contrast.weight"] <= 1).all()


def test_soda_by_hand():
    agent = make("soda", still(), projection=10, projection_rate=STILL, own_batch=COUNT)
    both = recorded("soda")
    assert agent.drawn == len(both.rewards)
    w, draws = by_hand.weights(agent), twin(agent)
    losses = agent.update(both)
    batch = PixelBatch(*(part[:COUNT] for part in both))
    then = random_crop(batch.successors, SIZE, draws)
    wanted = by_hand.target(batch, then, noise(draws), w, own_trunk=True)
    now = random_crop(batch.observations, SIZE, draws)
    check_critic(losses, now, batch, wanted, w)
    noise(draws)  # the actor's
    own = both.observations[COUNT:]  # drawn apart from what the critics see
    plain, changed = (random_crop(own, SIZE, draws) for _ in range(2))
    filters = torch.randn((COUNT, 3, 3, 3, 3), generator=draws).numpy()
    changed = convolved(changed.numpy(), filters)
    flat = by_hand.flat_maps(changed, w, "encoder")
    guess = project(project(flat, w, "projection"), w, "predictor")
    slow = project(by_hand.flat_maps(plain, w, "encoder"), w, "slow_projection")
    one, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (guess, slow))
    assert float(losses["consistency"]) == pytest.approx(np.mean((one - other) ** 2), rel=1e-3)
    assert "consistency" not in agent.update(both), "every second update"


def project(x, w, name):
    x = x @ w[f"{name}.first.weight"].T + w[f"{name}.first.bias"]
    x = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * w[f"{name}.scale"] + w[f"{name}.shift"]
    x = np.maximum(x, 0.0)
    return x @ w[f"{name}.second.weight"].T + w[f"{name}.second.bias"]


def test_sac_ae_by_hand():
    batch, w, draws, losses = met("sac_ae")
    wanted = by_hand.target(batch, batch.successors, noise(draws), w, own_trunk=True)
    check_critic(losses, batch.observations, batch, wanted, w)
    noise(draws)  # the actor's
    uniform = torch.rand(batch.observations.shape, generator=draws).numpy()
    picture = (batch.observations.numpy() // 8 + uniform) / 32 - 0.5
    features = by_hand.encode(batch.observations, w)
    error = np.mean((give_back(features, w) - picture) ** 2)
    error += 1e-6 * np.mean(0.5 * (features**2).sum(1))
    assert float(losses["reconstruction"]) == pytest.approx(error, rel=1e-4)


def give_back(features, w):
    """Returns the decoder's pictures: each input paints a 3x3 patch of its filter."""
    x = features @ w["decoder.linear.weight"].T + w["decoder.linear.bias"]
    x = np.maximum(x, 0.0).reshape(len(x), 4, 3, 3)
    x = np.maximum(spread(x, w, "decoder.layers.0", 1, 5), 0.0)
    return spread(x, w, "decoder.last", 2, SIZE)


def spread(x, w, name, stride, side):
    weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
    out = np.zeros((len(x), weight.shape[1], side, side))
    for i, j in np.ndindex(x.shape[2:]):
        patch = np.einsum("nc,coij->noij", x[:, :, i, j], weight)
        out[:, :, i * stride : i * stride + 3, j * stride : j * stride + 3] += patch
    return out + bias[None, :, None, None]


def test_dbc_by_hand():
    batch, w, draws, losses = met("dbc")
    how = {"squash": False}
    wanted = by_hand.target(batch, batch.successors, noise(draws), w, own_trunk=True, **how)
    check_critic(losses, batch.observations, batch, wanted, w, **how)
    features = by_hand.encode(batch.observations, w, **how)
    successors = by_hand.encode(batch.successors, w, **how)
    x = np.concatenate([features, batch.actions.numpy()], axis=1)
    mean, raw = np.split(foreseen(x, w, "model.layers"), 2, axis=1)
    sigma = 1e-4 + (10.0 - 1e-4) / (1.0 + np.exp(-raw))
    drawn = mean + sigma * torch.randn(mean.shape, generator=draws).numpy()
    rewards = batch.rewards.numpy()
    unlikely = np.mean(0.5 * ((successors - mean) / sigma) ** 2 + np.log(sigma))
    expected = unlikely + np.mean((foreseen(drawn, w, "model.rewards") - rewards) ** 2)
    assert float(losses["model"]) == pytest.approx(expected, rel=1e-4)
    j = torch.randperm(COUNT, generator=draws).numpy()
    apart = np.abs(features - features[j]).sum(1)
    moved = np.sqrt(((mean - mean[j]) ** 2).sum(1) + ((sigma - sigma[j]) ** 2).sum(1))
    metric = np.mean((apart - np.abs(rewards - rewards[j])[:, 0] - 0.99 * moved) ** 2)
    assert float(losses["bisimulation"]) == pytest.approx(metric, rel=1e-4)
    check_actor(losses, batch.observations, draws, w, **how)


def foreseen(x, w, name):
    x = x @ w[f"{name}.0.weight"].T + w[f"{name}.0.bias"]
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    x = np.maximum(x * w[f"{name}.1.weight"] + w[f"{name}.1.bias"], 0.0)
    return x @ w[f"{name}.3.weight"].T + w[f"{name}.3.bias"]


def test_dbc_s_actor_learns_from_what_the_metric_has_left():
    """As its authors' does: the critics' step, then the metric's, then the actor's."""
    agent, batch = make("dbc", hyper(actor_rate=STILL, alpha_rate=STILL)), recorded("dbc")
    draws = twin(agent)
    losses = agent.update(batch)
    noise(draws)
    torch.randn((COUNT, 8), generator=draws)
    torch.randperm(COUNT, generator=draws)
    w = by_hand.weights(agent)  # the actor's own hardly moved: all others are those it met
    check_actor(losses, batch.observations, draws, w, squash=False)


@pytest.mark.parametrize("name", STEPPED)
def test_it_overfits_a_batch(name):
    """Episodes end here, so that the target is the reward and stands still; pictures are plain."""
    agent = make(name, hyper(hidden=32, encoder_rate=3e-3, critic_rate=3e-3))
    batch = recorded(name, end=True)
    plain = batch.observations[:, :, :1, :1].expand_as(batch.observations).contiguous()
    batch = batch._replace(observations=plain, successors=plain.flip(0))
    first = {key: float(value) for key, value in agent.update(batch).items()}
    shares = {"critic": 0.1, "contrast": 0.8, "reconstruction": 0.7, "model": 0.8}
    wanted = {key: share * first[key] for key, share in shares.items() if key in first}
    for _ in range(200):
        last = agent.update(batch)
        if all(float(last[key]) < value for key, value in wanted.items()):
            return
    pytest.fail(f"{last} against {wanted}")


@pytest.mark.parametrize("name", STEPPED)
def test_a_saved_agent_goes_on_as_if_it_had_not_stopped(name):
    agent, batch = make(name), recorded(name)
    agent.update(batch)
    other = make(name)
    other.load(agent.state(), agent.updates)
    for _ in range(2):
        mine, theirs = agent.update(batch), other.update(batch)
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert not changed(parameters(agent), parameters(other))


def test_acting_sees_the_middle_and_the_mean_needs_no_dice():
    agent = make("rad")
    seen = recorded("rad").observations.numpy()
    before = agent.generator.get_state()
    mean = agent.act(seen, explore=False)
    assert torch.equal(agent.generator.get_state(), before)
    assert mean.shape == (COUNT, ACTIONS)
    assert np.array_equal(mean, agent.act(seen[:, :, 1:13, 1:13], explore=False))
    tries = np.stack([agent.act(seen, explore=True) for _ in range(200)])
    assert tries.std(0).min() > 0
    assert np.abs(tries).max() <= 1


@pytest.mark.parametrize(
    ("algorithm", "bad"),
    [
        ("sac_aug", {"beta": 1.5}),
        ("sac_aug", {"invariance": -1.0}),
        ("drq", {"targets": 0}),
        ("dbc", {"bisimulation": -1.0}),
        ("drq_v2", {"last_spread": 2.0}),
    ],
)
def test_options_that_cannot_be(algorithm, bad, tmp_path):
    ((name, value),) = bad.items()
    with pytest.raises(InvalidValueError, match=f"{name}( is)? {value}"):
        plan(PixelTrain(task="control/x-v1", out=tmp_path, algorithm=algorithm, hyper=bad))
