"""Transitions with a memory: long short-term memory, RIM, SCOFF, and Dreamer's RSSM.

Corrected against the references:

- The two input maps belong to the module and are trained; memory is zero at the start of every
  episode, in training and in evaluation; nothing is drawn at test time.
- RIM's block-diagonal GRU is stored as blocks, not as a dense matrix whose other entries are zeroed
  at every call; the null slot has no dead weights.
- SCOFF: the files that attend *most* to their input are the ones that move (there they were
  switched off), and the rule of each file is drawn in training only; at test time it is the
  best-scoring one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.layers import MLP, StackedLinear, one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

Memory = tuple[Tensor, ...]

_INPUTS = 1024  # numbers that a core sees: state and action are each brought to half of them
_TEMPERATURE, _KEY_WIDTH = 0.5, 16  # of SCOFF's choice of rules
GROUPS, CLASSES = 16, 16  # of a draw of RSSM
_FREE = 1.0  # nats of divergence that cost nothing
_PRIOR_WEIGHT, _POSTERIOR_WEIGHT = 1.0, 0.1
_UNIFORM = 0.01  # share of even chances in every draw, so that no logarithm is infinite


@final
class RecurrentTransition(nn.Module):
    """s' = s + read(core(s, action, memory)), on a flat state.

    A core has a `width`, of its output and of every tensor of its memory, and so many `memories`.
    """

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        core: Any = {"lstm": LSTMCore, "rim": RIMCore, "scoff": SCOFFCore}[config.model]()
        self.actions, width = config.actions, config.slot_width
        self.from_state = nn.Linear(width, _INPUTS // 2)
        self.from_action = nn.Linear(self.actions, _INPUTS // 2)
        self.core = core
        self.read = nn.Linear(core.width, width)

    def start(self, batch: int) -> Memory:
        """Returns the empty memory of a fresh episode, one row per world."""
        zeros = self.read.weight.new_zeros(batch, self.core.width)
        return (zeros,) * self.core.memories

    def forward(self, state: Tensor, action: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the next state (B, 1, width) and the memory after it."""
        chosen = self.from_action(one_hot(action, self.actions))
        x = torch.cat([self.from_state(state[:, 0]), chosen], dim=-1)
        output, memory = self.core(x, memory)
        return state + self.read(output)[:, None], memory


@final
class LSTMCore(nn.Module):
    """One layer of long short-term memory."""

    memories, width = 2, 600

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(_INPUTS, self.width)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and (output, cell)."""
        output, cell = self.cell(x, memory)
        return output, (output, cell)


# -------------------------------------------------------------------- cores of blocks that attend


@final
class GroupLinear(nn.Module):
    """One bias-free linear map per block, or a single one that all blocks share."""

    def __init__(self, blocks: int, inputs: int, outputs: int, *, shared: bool = False) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(outputs)
        count = 1 if shared else blocks
        self.weight = nn.Parameter(torch.empty(count, inputs, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Returns (B, blocks, outputs) for (B, blocks, inputs)."""
        return torch.einsum("bki,kio->bko", x, self.weight.expand(x.shape[1], -1, -1))


@final
class InputAttention(nn.Module):
    """Each block weighs its input against nothing (a null slot of zeros).

    A null slot's key and value are zero under bias-free maps, so its score is zero and it has no
    weights of its own.
    """

    def __init__(self, query: GroupLinear, key: GroupLinear, value: GroupLinear) -> None:
        super().__init__()
        self.query, self.key, self.value = query, key, value
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what each block read (B, blocks, d_v) and the weight on its input (B, blocks).

        Blocks' states are (B, blocks, size), what each may read (B, blocks or 1, width).
        """
        keys = self.key(inputs)
        score = (self.query(hidden) * keys).sum(-1) / math.sqrt(keys.shape[-1])
        weight = torch.sigmoid(score)  # a softmax over {score, 0}
        return self.dropout(weight)[..., None] * self.value(inputs), weight


@final
class Communication(nn.Module):
    """Multi-head attention between blocks, gated, to be added to their states."""

    def __init__(
        self, blocks: int, size: int, *, heads: int = 4, head_width: int = 32, shared: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        wide = heads * head_width
        self.query = GroupLinear(blocks, size, wide, shared=shared)
        self.key = GroupLinear(blocks, size, wide, shared=shared)
        self.value = GroupLinear(blocks, size, wide, shared=shared)
        self.out = nn.Linear(wide, size)
        self.gate = nn.Linear(wide, size)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns (B, blocks, size), what each block heard."""
        query, key, value = (
            part(hidden).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        heard = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).flatten(2)
        return torch.sigmoid(self.gate(heard)) * torch.tanh(self.dropout(self.out(heard)))


def most_attentive(weight: Tensor, count: int) -> Tensor:
    """Returns a 0/1 mask (B, blocks, 1) of the `count` blocks that weigh their input most."""
    chosen = weight.topk(count, dim=-1).indices
    return torch.zeros_like(weight).scatter(-1, chosen, 1.0)[..., None]


def speak_and_settle(talk: Communication, old: Tensor, new: Tensor, active: Tensor) -> Tensor:
    """Returns the blocks' next states: active ones move and listen, the others keep theirs.

    No gradient flows through what an inactive block would have become.
    """
    heard = torch.where(active > 0, new, new.detach())
    return active * (new + talk(heard)) + (1 - active) * old


@final
class RIMCore(nn.Module):
    """Six GRU blocks of 100, of which the four most attentive move."""

    memories = 1
    blocks, size, active = 6, 100, 4
    width = blocks * size

    def __init__(self) -> None:
        super().__init__()
        blocks, size, inputs = self.blocks, self.size, _INPUTS
        self.inputs = nn.Linear(inputs, inputs)
        nn.init.uniform_(self.inputs.weight, -0.1, 0.1)
        self.attend = InputAttention(
            GroupLinear(blocks, size, 64),
            GroupLinear(blocks, inputs, 64, shared=True),
            GroupLinear(blocks, inputs, 32, shared=True),
        )
        self.gru = BlockGRU(blocks, 32, size)
        self.talk = Communication(blocks, size)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and the blocks' new states."""
        old = memory[0].unflatten(-1, (self.blocks, self.size))
        inputs = self.inputs(x)[:, None].expand(-1, self.blocks, -1)
        seen, weight = self.attend(old, inputs)
        active = most_attentive(weight, self.active)
        new = speak_and_settle(self.talk, old, self.gru(seen, old), active).flatten(1)
        return new, (new,)


@final
class BlockGRU(nn.Module):
    """As many gated recurrent units as blocks, none sharing a weight."""

    def __init__(self, blocks: int, inputs: int, size: int) -> None:
        super().__init__()
        self.from_input = StackedLinear(blocks, inputs, 3 * size)
        self.from_hidden = StackedLinear(blocks, size, 3 * size)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Returns the next states (B, blocks, size)."""
        return gated_update(
            self.from_input(x.transpose(0, 1)).transpose(0, 1),
            self.from_hidden(hidden.transpose(0, 1)).transpose(0, 1),
            hidden,
        )


def gated_update(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """Returns a GRU's next state from its two triple-width linear maps."""
    reset_x, update_x, new_x = from_input.chunk(3, dim=-1)
    reset_h, update_h, new_h = from_hidden.chunk(3, dim=-1)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
    return new + update * (hidden - new)


@final
class SCOFFCore(nn.Module):
    """Four object files of 150, three of them moving, each by one of two GRU rules."""

    memories = 1
    files, size, active = 4, 150, 3
    width = files * size

    def __init__(self) -> None:
        super().__init__()
        files, size, inputs = self.files, self.size, _INPUTS
        self.inputs = nn.Linear(inputs, inputs)
        self.attend = InputAttention(
            GroupLinear(files, size, 64, shared=True),
            GroupLinear(files, inputs // files, 64, shared=True),
            GroupLinear(files, inputs // files, size, shared=True),
        )
        self.rules = SharedRules(2, inputs=files * size, size=size)
        self.talk = Communication(files, size, shared=True)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and the files' new states."""
        old = memory[0].unflatten(-1, (self.files, self.size))
        seen, weight = self.attend(old, self.inputs(x).unflatten(-1, (self.files, -1)))
        active = most_attentive(weight, self.active)
        new = speak_and_settle(self.talk, old, self.rules(seen.flatten(1), old), active).flatten(1)
        return new, (new,)


@final
class SharedRules(nn.Module):
    """A few GRUs; each file takes the one whose proposal answers its present state best."""

    def __init__(self, rules: int, *, inputs: int, size: int) -> None:
        super().__init__()
        self.from_input = StackedLinear(rules, inputs, 3 * size)
        self.from_hidden = StackedLinear(rules, size, 3 * size)
        self.read_key = nn.Linear(size, _KEY_WIDTH, bias=False)
        self.write_key = nn.Linear(size, _KEY_WIDTH, bias=False)

    def forward(self, seen: Tensor, hidden: Tensor) -> Tensor:
        """Returns the files' proposals (B, files, size).

        All files read `seen` (B, inputs) together; their present states are (B, files,
        size).
        """
        batch, files, size = hidden.shape
        from_input = self.from_input(seen[None])[:, :, None]
        from_hidden = self.from_hidden(hidden.reshape(1, -1, size)).unflatten(1, (batch, files))
        proposals = gated_update(from_input, from_hidden, hidden)  # (rules, B, files, size)
        scores = (self.read_key(hidden) * self.write_key(proposals)).sum(-1)
        if self.training:
            gumbel = -torch.log(torch.empty_like(scores).exponential_())
            scores = scores + gumbel
        soft = torch.softmax(scores / _TEMPERATURE, dim=0)
        hard = torch.zeros_like(soft).scatter(0, soft.argmax(0, keepdim=True), 1.0)
        choice = hard + soft - soft.detach()  # 0 or 1, with a straight-through gradient
        return (choice[..., None] * proposals).sum(0)


# --------------------------------------------------------------------- Dreamer's state-space model


@final
class RecurrentStateTransition(nn.Module):
    """s' = read(h', z'), h' = GRU(h, z, action), z from h and s, z' from h' alone.

    The recurrent state-space transition of Dreamer: a memory h is carried on by a GRU. What the
    present frame adds is a draw z of several classes: the *posterior* sees h and the frame's
    encoding, the *prior* h alone. Predictions use the prior, and training pulls the two together,
    the prior more than the posterior. Draws are made in training only; otherwise z is its chances.
    """

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        width, hidden, drawn = config.slot_width, config.hidden, GROUPS * CLASSES
        self.actions, self.hidden = config.actions, hidden
        self.cell = nn.GRUCell(drawn + self.actions, hidden)
        self.prior = MLP(hidden, hidden, drawn)
        self.posterior = MLP(hidden + width, hidden, drawn)
        self.read = MLP(hidden + drawn, hidden, width)

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

        States, and those after each of the actions (B, T), are (B, T, 1, width).
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

    Chances are (B, ..., groups, classes); the mean over B is taken first.
    """

    def divergence(p: Tensor, q: Tensor) -> Tensor:
        nats = (p * (p.log() - q.log())).sum((-2, -1)).mean(0)
        return functional.relu(nats - _FREE).mean() + _FREE

    return _PRIOR_WEIGHT * divergence(posterior.detach(), prior) + (
        _POSTERIOR_WEIGHT * divergence(posterior, prior.detach())
    )
