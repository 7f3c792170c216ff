"""The recurrent state-space transition: its divergence by hand, its draws, its memory."""

from __future__ import annotations

import math

import pytest
import torch

from interverse.models import recurrent
from interverse.models.recurrent import RecurrentStateTransition, balanced_divergence, chances
from interverse.models.world_model import WorldModelConfig


def small() -> RecurrentStateTransition:
    config = WorldModelConfig(
        model="rssm", loss="nll", objects=1, embedding=4, actions_per_object=6, hidden=8
    )
    return RecurrentStateTransition(config)


def test_the_divergence_is_that_of_two_known_coins():
    posterior = torch.tensor([[[0.9, 0.1]] * 4], requires_grad=True)
    prior = torch.tensor([[[0.5, 0.5]] * 4], requires_grad=True)
    nats = 4 * (0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5))
    assert nats > 1.0  # more than is free
    loss = balanced_divergence(posterior, prior)
    assert float(loss.detach()) == pytest.approx(1.1 * nats, rel=1e-6)
    loss.backward()
    # d/dq of p log(p/q) is -p/q, at weight 1; d/dp is log(p/q) + 1, at weight 0.1.
    torch.testing.assert_close(prior.grad[0, 0], torch.tensor([-1.8, -0.2]))
    expected = torch.tensor([0.1 * (math.log(1.8) + 1), 0.1 * (math.log(0.2) + 1)])
    torch.testing.assert_close(posterior.grad[0, 0], expected)


def test_one_nat_is_free():
    same = torch.full((3, 2, 4), 0.25, requires_grad=True)
    loss = balanced_divergence(same, same.detach().clone())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(1.1)
    assert not same.grad.any()


def test_draws_follow_their_chances_and_none_is_made_at_test_time():
    torch.manual_seed(0)
    model = small()
    shares = chances(torch.randn(1, recurrent.GROUPS * recurrent.CLASSES)).expand(4000, -1, -1)
    drawn = model.train()._draw(shares).unflatten(1, (recurrent.GROUPS, recurrent.CLASSES))
    assert torch.equal(drawn.sum(-1).round(), torch.ones(4000, recurrent.GROUPS))
    torch.testing.assert_close(drawn.mean(0), shares[0], atol=0.04, rtol=0.0)
    state, action = torch.rand(2, 1, 4), torch.tensor([0, 3])
    model.eval()
    first, memory = model(state, action, model.start(2))
    again, _ = model(state, action, model.start(2))
    assert torch.equal(first, again)
    later, _ = model(state, action, memory)
    assert not torch.equal(first, later)  # the memory counts


def test_all_steps_at_once_are_the_steps_one_by_one():
    torch.manual_seed(0)
    model = small().eval()
    states, actions = 3.0 * torch.randn(2, 6, 1, 4), torch.randint(6, (2, 5))
    predicted, divergence = model.along(states[:, :-1], actions, states[:, 1:])
    memory, expected = model.start(2), torch.zeros(())
    for t in range(5):
        step, memory = model(states[:, t], actions[:, t], memory)
        torch.testing.assert_close(predicted[:, t], step)
        seen = torch.cat([memory[0], states[:, t + 1, 0]], dim=-1)
        shares = chances(model.posterior(seen)), chances(model.prior(memory[0]))
        expected = expected + balanced_divergence(*shares) / 5
    torch.testing.assert_close(divergence, expected)


def test_every_weight_is_trained():
    model = small()
    states, actions = 9.0 * torch.rand(8, 3, 1, 4), torch.arange(16).reshape(8, 2) % 6
    predicted, divergence = model.along(states[:, :-1], actions, states[:, 1:])
    (predicted.square().sum() + divergence).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
