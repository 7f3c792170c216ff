"""A modular transition that learns which object reads which: a graph over slots.

Each network sees only the slots its row of a 0/1 graph lets through (its own always). The graph
has a logit per edge. Functional batches train the networks under sampled graphs; structural
batches leave them alone and move the logits towards the samples that predicted well.

Corrected against the reference: samples are weighted by softmax of *minus* the loss, standardised
over the samples, so that the step does not depend on the loss's scale (a softmax of the loss
itself prefers graphs that predict badly); each row is weighted by its own object's loss; a known
graph can be given; and at evaluation the graph is the thresholded one, not a fresh sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, explain
from interverse.models.modular import ObjectNetworks, object_networks

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig


@final
class LearnedGraphTransition(nn.Module):
    """s'_i = s_i + f_i(the slots that graph row i lets through, action).

    Attributes:
        logits: (objects, objects); [i, j] belongs to the edge j -> i. None for a known graph.
    """

    eye: Tensor
    known: Tensor

    def __init__(
        self,
        networks: ObjectNetworks,
        objects: int,
        *,
        graph: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        self.networks = networks
        self.objects = objects
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

    Args:
        transition: holds the logits.
        graphs: (samples, objects, objects), what was sampled.
        losses: (samples, objects), each object's loss under each sample.
        sparsity: weight of the expected number of edges.
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
            explain(
                f"graph must be {objects} x {objects} of 0 and 1, got shape {tuple(known.shape)}",
                fix="Row i, column j is 1 where object j is a parent of object i",
            )
        )
    return known


def build(config: WorldModelConfig) -> LearnedGraphTransition:
    """Returns the transition of a config."""
    return LearnedGraphTransition(object_networks(config), config.objects, graph=config.graph)
