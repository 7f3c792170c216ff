"""The recurrent state-space transition of Dreamer: a deterministic memory and a discrete draw.

A memory h is carried on by a GRU. What the present frame adds is a draw z of several classes: the
*posterior* sees h and the frame's encoding, the *prior* h alone. Predictions use the prior, and
training pulls the two together, the prior more than the posterior. Draws are made in training
only; otherwise z is its chances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.mlp import MLP, one_hot
from interverse.models.recurrent import Memory

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

GROUPS, CLASSES = 16, 16
_FREE = 1.0  # nats of divergence that cost nothing
_PRIOR_WEIGHT, _POSTERIOR_WEIGHT = 1.0, 0.1
_UNIFORM = 0.01  # share of even chances in every draw, so that no logarithm is infinite


@final
class RecurrentStateTransition(nn.Module):
    """s' = read(h', z'), h' = GRU(h, z, action), z from h and s, z' from h' alone."""

    def __init__(self, state_width: int, actions: int, *, hidden: int) -> None:
        super().__init__()
        self.actions, self.hidden, drawn = actions, hidden, GROUPS * CLASSES
        self.cell = nn.GRUCell(drawn + actions, hidden)
        self.prior = MLP(hidden, hidden, drawn)
        self.posterior = MLP(hidden + state_width, hidden, drawn)
        self.read = MLP(hidden + drawn, hidden, state_width)

    def start(self, batch: int) -> Memory:
        """Returns the empty memory of a fresh episode, one row per world."""
        return (self.cell.weight_hh.new_zeros(batch, self.hidden),)

    def forward(self, state: Tensor, action: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the next state (B, 1, width) and the memory after it."""
        (before,) = memory
        seen = self._draw(chances(self.posterior(torch.cat([before, state[:, 0]], dim=-1))))
        inputs = torch.cat([seen, one_hot(action, self.actions)], dim=-1)
        after = self.cell(inputs, before)
        expected = self._draw(chances(self.prior(after)))
        return self.read(torch.cat([after, expected], dim=-1))[:, None], (after,)

    def along(self, states: Tensor, actions: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Returns one-step predictions (B, T, 1, width) along true states, and their divergence.

        The memory is carried on step by step; all that hangs on it is computed for all steps at
        once, which on a GPU is several times faster than step by step.

        Args:
            states: (B, T, 1, width).
            actions: (B, T).
            following: the states after each action, shaped as `states`.
        """
        (memory,) = self.start(len(states))
        acted, memories = one_hot(actions, self.actions), []
        for t in range(actions.shape[1]):
            seen = self._draw(chances(self.posterior(torch.cat([memory, states[:, t, 0]], dim=-1))))
            memory = self.cell(torch.cat([seen, acted[:, t]], dim=-1), memory)
            memories.append(memory)
        after = torch.stack(memories, dim=1)
        prior = chances(self.prior(after))
        posterior = chances(self.posterior(torch.cat([after, following[:, :, 0]], dim=-1)))
        predicted = self.read(torch.cat([after, self._draw(prior)], dim=-1))
        return predicted[:, :, None], balanced_divergence(posterior, prior)

    def _draw(self, shares: Tensor) -> Tensor:
        """Returns (..., groups x classes): one class each in training, else the chances."""
        if not self.training:
            return shares.flatten(-2)
        noise = -torch.log(-torch.log(torch.rand_like(shares).clamp(1e-6, 1.0 - 1e-6)))
        drawn = one_hot((shares.log() + noise).argmax(-1), CLASSES)
        return (drawn + shares - shares.detach()).flatten(-2)  # gradients go to the chances


def chances(logits: Tensor) -> Tensor:
    """Returns (..., groups, classes) chances with a share of even ones."""
    shares = torch.softmax(logits.unflatten(-1, (GROUPS, CLASSES)), dim=-1)
    return (1.0 - _UNIFORM) * shares + _UNIFORM / CLASSES


def balanced_divergence(posterior: Tensor, prior: Tensor) -> Tensor:
    """Returns the weighed divergence of posterior from prior, each pulled with the other held.

    Args:
        posterior: (B, ..., groups, classes) chances; the mean over B is taken first.
        prior: likewise.
    """

    def divergence(p: Tensor, q: Tensor) -> Tensor:
        nats = (p * (p.log() - q.log())).sum((-2, -1)).mean(0)
        return functional.relu(nats - _FREE).mean() + _FREE

    return _PRIOR_WEIGHT * divergence(posterior.detach(), prior) + (
        _POSTERIOR_WEIGHT * divergence(posterior, prior.detach())
    )


def build(config: WorldModelConfig) -> RecurrentStateTransition:
    """Returns the transition of a config."""
    return RecurrentStateTransition(config.vision.slot_width, config.actions, hidden=config.hidden)
