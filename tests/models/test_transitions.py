"""Transitions: what each kind can and cannot see, and what was mended in the recurrent ones."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.models import recurrent
from interverse.models.recurrent import (
    BlockGRU,
    Communication,
    RecurrentStateTransition,
    RecurrentTransition,
    SharedRules,
    balanced_divergence,
    chances,
    most_attentive,
    speak_and_settle,
)
from interverse.models.transitions import (
    ActionGraphTransition,
    GraphTransition,
    LearnedGraphTransition,
    ObjectNetworks,
    structural_loss,
)
from interverse.models.world_model import WorldModelConfig

MEMORIES = ("lstm", "rim", "rssm", "scoff")


def shaped(
    model: str, objects: int, embedding: int, hidden: int = 8, **choices
) -> WorldModelConfig:
    return WorldModelConfig(
        model=model, objects=objects, embedding=embedding, hidden=hidden, **choices
    )


def memory_of(name: str, *, objects: int, embedding: int):
    make = RecurrentStateTransition if name == "rssm" else RecurrentTransition
    return make(shaped(name, objects, embedding, loss="nll"))


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def test_modular_networks_equal_one_network_per_object():
    networks = ObjectNetworks(shaped("modular", 3, 2, hidden=21))
    state, action = torch.rand(4, 3, 2), torch.tensor([0, 5, 14, 3])
    stacked = networks(state.flatten(1)[None], action)
    for i in range(3):
        parts = {name: p[i] for name, p in networks.named_parameters()}
        x = torch.cat(
            [
                functional.one_hot(action, 15).float() @ parts["from_action.weight"]
                + parts["from_action.bias"],
                state.flatten(1) @ parts["from_state.weight"] + parts["from_state.bias"],
            ],
            dim=1,
        ).relu()
        for linear, norm in (("inner", "inner_norm"), ("outer", "outer_norm")):
            x = x @ parts[f"{linear}.weight"] + parts[f"{linear}.bias"]
            scale, shift = parts[f"{norm}.weight"][0], parts[f"{norm}.bias"][0]
            x = functional.layer_norm(x, x.shape[-1:], scale, shift).relu()
        x = x @ parts["change.weight"] + parts["change.bias"]
        torch.testing.assert_close(stacked[:, i], x)


def test_graph_network_does_not_care_how_objects_are_numbered():
    model = GraphTransition(shaped("gnn", 4, 3, hidden=16))
    state, order = torch.rand(6, 4, 3), torch.tensor([2, 0, 3, 1])
    action = torch.arange(6) * 3
    place = torch.argsort(order)[action // 5]  # where the acted object went
    moved = model(state[:, order], place * 5 + action % 5)
    torch.testing.assert_close(moved, model(state, action)[:, order])


def test_only_the_action_aware_graph_network_can_push():
    """What another slot becomes: in C-SWM exactly the same for all actions, here not."""
    state = torch.rand(1, 3, 4)
    actions = torch.tensor([5, 6, 7, 8, 9])  # every move of slot 1
    others = torch.tensor([0, 2])
    for make, pushes in ((GraphTransition, False), (ActionGraphTransition, True)):
        model = make(shaped("gnn", 3, 4, hidden=16))
        moved = model(state.expand(5, -1, -1), actions)[:, others]
        spread = (moved - moved[:1]).abs().max().detach()
        assert (float(spread) > 0.0) is pushes


@pytest.mark.parametrize(("kind", "slots"), [("own", [1]), ("all", [0, 1, 2]), ("none", [])])
def test_action_input_decides_who_sees_the_action(kind, slots):
    model = GraphTransition(shaped("gnn", 3, 2, action_input=kind))
    with torch.no_grad():
        for part in model.edge.parameters():
            part.zero_()
    state = torch.rand(1, 3, 2)
    first, second = (model(state, torch.tensor([a])) for a in (6, 8))  # both of object 1
    assert (first != second).any(-1)[0].nonzero().flatten().tolist() == slots


def test_one_object_has_nobody_to_talk_to():
    model = GraphTransition(shaped("gnn", 1, 2))
    assert model(torch.rand(2, 1, 2), torch.tensor([0, 1])).shape == (2, 1, 2)


def learned(graph=None, objects=3) -> LearnedGraphTransition:
    return LearnedGraphTransition(shaped("learned_graph", objects, 2, hidden=24, graph=graph))


def test_an_object_reads_its_parents_and_itself_alone():
    model = learned(graph=((0, 0, 0), (1, 0, 0), (0, 0, 0)))
    state, action = torch.rand(1, 3, 2), torch.tensor([4])
    for cause in range(3):
        other = state.clone()
        other[0, cause] += 1.0
        moved = (model(other, action) - other) - (model(state, action) - state)
        reached = (moved.abs() > 1e-6).any(-1)[0].nonzero().flatten().tolist()
        assert reached == {0: [0, 1], 1: [1], 2: [2]}[cause]


def test_structural_steps_find_the_graph_that_predicts():
    model = learned()
    truth = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    optimizer = torch.optim.Adam([model.logits], lr=0.05)
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        graphs = model.sample(torch.rand(10, 3, 3, generator=generator))
        losses = (graphs != truth).float().sum(-1) * 1e-3  # the loss's scale must not matter
        optimizer.zero_grad()
        structural_loss(model, graphs, losses, sparsity=0.0).backward()
        optimizer.step()
    torch.testing.assert_close(model.graph(), truth)


def test_sparsity_removes_edges_that_do_not_help():
    model = learned()
    graphs = model.sample(torch.rand(10, 3, 3))
    structural_loss(model, graphs, torch.ones(10, 3), sparsity=100.0).backward()
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    assert bool((model.logits.grad[off_diagonal] > 0).all())
    assert model.logits.grad.diagonal().tolist() == [0, 0, 0]


def test_a_graph_of_the_wrong_shape_is_refused():
    with pytest.raises(InvalidValueError, match="graph must be 3 x 3 of 0 and 1"):
        learned(graph=((0, 1), (0, 0)))


@pytest.mark.parametrize("name", MEMORIES)
def test_recurrent_models_train_every_weight_and_draw_nothing_at_test_time(name):
    model = memory_of(name, objects=3, embedding=2)
    state, action = torch.rand(8, 1, 6), torch.arange(8)
    following, memory = model(state, action, model.start(8))
    following, memory = model(following, action, memory)
    following.square().sum().backward()
    idle = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []
    model.eval()
    first, second = (model(state, action, model.start(8))[0] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", MEMORIES)
def test_memory_carries_the_past(name):
    model = memory_of(name, objects=3, embedding=2).eval()
    state = torch.rand(2, 1, 6)
    _, one = model(state, torch.tensor([0, 0]), model.start(2))
    _, two = model(state, torch.tensor([9, 9]), model.start(2))
    now = torch.tensor([3, 3])
    assert not torch.equal(model(state, now, one)[0], model(state, now, two)[0])


def test_lstm_has_the_published_number_of_parameters():
    model = memory_of("lstm", objects=5, embedding=32)
    counted = (*model.core.parameters(), *model.read.parameters())
    assert sum(p.numel() for p in counted) == 3_998_560


def test_block_gru_equals_torch_gru_cells():
    blocks = BlockGRU(2, 3, 4)
    x, hidden = torch.rand(5, 2, 3), torch.rand(5, 2, 4)
    ours = blocks(x, hidden)
    for b in range(2):
        cell = torch.nn.GRUCell(3, 4)
        with torch.no_grad():
            cell.weight_ih.copy_(blocks.from_input.weight[b].T)
            cell.weight_hh.copy_(blocks.from_hidden.weight[b].T)
            cell.bias_ih.copy_(blocks.from_input.bias[b, 0])
            cell.bias_hh.copy_(blocks.from_hidden.bias[b, 0])
        torch.testing.assert_close(ours[:, b], cell(x[:, b], hidden[:, b]))


def test_the_blocks_that_attend_most_are_the_ones_that_move():
    weight = torch.tensor([[0.1, 0.9, 0.5, 0.2]])
    active = most_attentive(weight, 2)
    assert active.flatten().tolist() == [0, 1, 1, 0]
    old, new = torch.zeros(1, 4, 3), torch.ones(1, 4, 3)
    out = speak_and_settle(Communication(4, 3).eval(), old, new, active)
    assert (out != old).any(-1)[0].tolist() == [False, True, True, False]


def test_no_gradient_passes_through_a_block_at_rest():
    new = torch.rand(1, 3, 4, requires_grad=True)
    active = torch.tensor([[[1.0], [0.0], [1.0]]])
    speak_and_settle(Communication(3, 4), torch.zeros(1, 3, 4), new, active).sum().backward()
    assert new.grad[0].abs().sum(-1).gt(0).tolist() == [True, False, True]


def test_shared_rules_draw_in_training_and_take_the_best_otherwise():
    rules = SharedRules(2, inputs=6, size=4)
    seen, hidden = torch.rand(64, 6), torch.rand(64, 3, 4)
    assert not torch.equal(rules(seen, hidden), rules(seen, hidden))
    rules.eval()
    assert torch.equal(rules(seen, hidden), rules(seen, hidden))


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


def test_draws_follow_their_chances():
    torch.manual_seed(0)
    model = small()
    shares = chances(torch.randn(1, recurrent.GROUPS * recurrent.CLASSES)).expand(4000, -1, -1)
    drawn = model.train()._draw(shares).unflatten(1, (recurrent.GROUPS, recurrent.CLASSES))
    assert torch.equal(drawn.sum(-1).round(), torch.ones(4000, recurrent.GROUPS))
    torch.testing.assert_close(drawn.mean(0), shares[0], atol=0.04, rtol=0.0)


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
