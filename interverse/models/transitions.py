"""Transitions without a memory: from a state and an action to the next state.

All but the flat one hold one state per object. A class here takes a `WorldModelConfig`; the table
of models names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.models.layers import MLP, StackedLinear, StackedNorm, one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

ActionInput = Literal["own", "all", "none"]
"""Who sees the action in a graph network: the acted slot alone, every slot, or none."""


@final
class FlatTransition(nn.Module):
    """s' = s + f(s, action), with one network for the whole scene: that of the AE and the VAE."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.actions, hidden, width = config.actions, config.hidden, config.slot_width
        self.from_action = nn.Linear(self.actions, hidden)
        self.from_state = nn.Linear(width, hidden)
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Linear(2 * hidden, hidden),
            nn.LayerNorm(hidden) if config.layer_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(hidden, 2 * hidden),
            nn.LayerNorm(2 * hidden) if config.layer_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(2 * hidden, width),
        )

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, 1, width) of a state (B, 1, width) and actions (B,)."""
        flat = state[:, 0]
        chosen = self.from_action(one_hot(action, self.actions))
        change = self.layers(torch.cat([chosen, self.from_state(flat)], dim=-1))
        return state + change[:, None]


@final
class GraphTransition(nn.Module):
    """s' = s + node(s, sum of messages, own action): C-SWM, fully connected, no self loops.

    The action reaches the acted slot alone, and messages know states only: what any other slot
    becomes does not depend on the action. In one step it can therefore represent a move, but not a
    push; see `ActionGraphTransition`.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        objects, embedding, hidden = config.objects, config.embedding, config.hidden
        self.objects, self.actions_per_object = objects, config.actions_per_object
        self.action_input, self.hidden = config.action_input, hidden
        acts = 0 if self.action_input == "none" else self.actions_per_object
        self.edge = MLP(2 * embedding, hidden, hidden, layer_norm=config.layer_norm)
        inputs = embedding + hidden + acts
        self.node = MLP(inputs, hidden, embedding, layer_norm=config.layer_norm)
        pairs = [(i, j) for i in range(objects) for j in range(objects) if i != j]
        rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
        self.register_buffer("rows", torch.tensor(rows, dtype=torch.int64), persistent=False)
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64), persistent=False)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        parts = [state, self._messages(state)]
        if self.action_input == "all":
            chosen = one_hot(action % self.actions_per_object, self.actions_per_object)
            parts.append(chosen[:, None].expand(-1, self.objects, -1))
        elif self.action_input == "own":
            parts.append(_by_object(action, self.objects, self.actions_per_object))
        return state + self.node(torch.cat(parts, dim=-1))

    def _messages(self, state: Tensor) -> Tensor:
        """Returns (B, objects, hidden): the sum of what every other slot says."""
        if self.objects == 1:
            return state.new_zeros(len(state), 1, self.hidden)
        ends = torch.cat([state[:, self.rows], state[:, self.columns]], dim=-1)
        messages = self.edge(ends)  # ordered by receiver, so a reshape replaces a scatter
        return messages.reshape(len(state), self.objects, self.objects - 1, -1).sum(2)


def _by_object(action: Tensor, objects: int, actions_per_object: int) -> Tensor:
    """Returns (B, objects, actions_per_object): the action at its object, zeros elsewhere."""
    chosen = one_hot(action, objects * actions_per_object)
    return chosen.reshape(len(action), objects, actions_per_object)


@final
class ActionGraphTransition(nn.Module):
    """s'_i = s_i + node(s_i, own action, sum over j of edge(s_i, s_j, action of j)).

    Messages carry the sender's action, so a push, which moves two blocks in one step, can be
    represented: the message from the acted slot tells what it is about to do.
    """

    others: Tensor

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.objects, self.actions_per_object = config.objects, config.actions_per_object
        embedding, hidden = config.embedding, config.hidden
        width = embedding + self.actions_per_object
        self.edge = MLP(embedding + width, hidden, hidden, layer_norm=config.layer_norm)
        self.node = MLP(width + hidden, hidden, embedding, layer_norm=config.layer_norm)
        others = 1.0 - torch.eye(self.objects)
        self.register_buffer("others", others[None, :, :, None], persistent=False)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        n = self.objects
        slots = torch.cat([state, _by_object(action, n, self.actions_per_object)], dim=-1)
        receivers = state[:, :, None].expand(-1, -1, n, -1)
        senders = slots[:, None].expand(-1, n, -1, -1)
        messages = self.edge(torch.cat([receivers, senders], dim=-1)) * self.others
        return state + self.node(torch.cat([slots, messages.sum(2)], dim=-1))


@final
class TransformerTransition(nn.Module):
    """s' = s + read(attention over the slots and one token of the action), pre-norm, no dropout."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        heads, layers = 4, 2
        width = heads * max(1, config.hidden // (4 * heads))
        self.actions = config.actions
        self.from_state = nn.Linear(config.embedding, width)
        self.from_action = nn.Linear(self.actions, width)
        self.places = nn.Parameter(torch.zeros(config.objects + 1, width).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.read = nn.Linear(width, config.embedding)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        chosen = self.from_action(one_hot(action, self.actions))[:, None]
        tokens = torch.cat([self.from_state(state), chosen], dim=1) + self.places
        return state + self.read(self.layers(tokens)[:, :-1])


# ----------------------------------------------------------------------------- a network per object


@final
class ObjectNetworks(nn.Module):
    """As many independent networks as objects, computed together; they share the hidden width."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        objects, self.actions = config.objects, config.actions
        hidden = config.width * (config.hidden // objects)
        norm = config.layer_norm
        self.from_action = StackedLinear(objects, self.actions, hidden)
        self.from_state = StackedLinear(objects, objects * config.embedding, hidden)
        self.inner = StackedLinear(objects, 2 * hidden, hidden)
        self.inner_norm = StackedNorm(objects, hidden) if norm else nn.Identity()
        self.outer = StackedLinear(objects, hidden, 2 * hidden)
        self.outer_norm = StackedNorm(objects, 2 * hidden) if norm else nn.Identity()
        self.change = StackedLinear(objects, 2 * hidden, config.embedding)

    def forward(self, states: Tensor, action: Tensor) -> Tensor:
        """Returns the change (B, objects, embedding) of every object.

        Networks see states (1 or objects, B, objects * embedding), and actions (B,) over
        all objects.
        """
        chosen = self.from_action(one_hot(action, self.actions)[None])
        x = functional.relu(torch.cat([chosen, self.from_state(states)], dim=-1))
        x = functional.relu(self.inner_norm(self.inner(x)))
        x = functional.relu(self.outer_norm(self.outer(x)))
        return self.change(x).transpose(0, 1)


@final
class ModularTransition(nn.Module):
    """s'_i = s_i + f_i(s, action), no sparsity and no graph imposed."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.networks = ObjectNetworks(config)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        return state + self.networks(state.flatten(1)[None], action)


@final
class LearnedGraphTransition(nn.Module):
    """s'_i = s_i + f_i(the slots that graph row i lets through, action).

    Each network sees only the slots its row of a 0/1 graph lets through (its own always). The graph
    has a logit per edge. Functional batches train the networks under sampled graphs; structural
    batches leave them alone and move the logits towards the samples that predicted well.

    Corrected against the reference: samples are weighted by softmax of *minus* the loss,
    standardised over the samples, so that the step does not depend on the loss's scale (a softmax
    of the loss itself prefers graphs that predict badly); each row is weighted by its own object's
    loss; a known graph can be given; and at evaluation the graph is the thresholded one, not a
    fresh sample.

    Attributes:
        logits: (objects, objects); [i, j] belongs to the edge j -> i. None for a known graph.
    """

    eye: Tensor
    known: Tensor

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        objects, graph = config.objects, config.graph
        self.networks, self.objects = ObjectNetworks(config), objects
        self.register_buffer("eye", torch.eye(objects), persistent=False)
        self.logits = None if graph is not None else nn.Parameter(torch.zeros(objects, objects))
        known = torch.zeros(objects, objects) if graph is None else _checked(graph, objects)
        self.register_buffer("known", known, persistent=False)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state under the present graph (edges more likely than not)."""
        return self.under(self.graph(), state, action)

    def under(self, graph: Tensor, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) under a given (objects, objects) graph."""
        gates = graph * (1 - self.eye) + self.eye
        seen = state[None] * gates[:, None, :, None]
        return state + self.networks(seen.flatten(2), action)

    def edge_probabilities(self) -> Tensor:
        """Returns (objects, objects), [i, j] for the edge j -> i; the diagonal is zero."""
        soft = self.known if self.logits is None else torch.sigmoid(self.logits)
        return soft * (1 - self.eye)

    def graph(self) -> Tensor:
        """Returns the 0/1 graph of the edges more likely than not."""
        return (self.edge_probabilities() > 0.5).to(self.eye.dtype)

    def sample(self, uniforms: Tensor) -> Tensor:
        """Returns 0/1 graphs (..., objects, objects) from uniform numbers of that shape."""
        return (uniforms < self.edge_probabilities()).to(self.eye.dtype)


def structural_loss(
    transition: LearnedGraphTransition, graphs: Tensor, losses: Tensor, *, sparsity: float
) -> Tensor:
    """Returns a scalar whose gradient moves the logits to the graphs that predicted well.

    Graphs are (samples, objects, objects), losses (samples, objects): each object's under each
    sample. `sparsity` weighs the expected number of edges.
    """
    probabilities = transition.edge_probabilities()
    spread = losses.std(0, unbiased=False, keepdim=True).clamp_min(1e-12)
    weights = torch.softmax(-(losses - losses.mean(0)) / spread, dim=0)
    direction = (weights[:, :, None] * (probabilities - graphs)).sum(0).detach()
    assert transition.logits is not None  # a known graph has no structural batches
    own = direction * (1 - transition.eye) * transition.logits
    return own.sum() + sparsity * probabilities.sum()


def _checked(graph: Sequence[Sequence[int]], objects: int) -> Tensor:
    known = torch.as_tensor(graph, dtype=torch.float32)
    if known.shape != (objects, objects) or not bool(((known == 0) | (known == 1)).all()):
        raise InvalidValueError(
            f"graph must be {objects} x {objects} of 0 and 1, got shape {tuple(known.shape)}",
            fix="Row i, column j is 1 where object j is a parent of object i",
        )
    return known
