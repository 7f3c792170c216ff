"""Local causal graphs from transitions, by quantised contexts.

What causes what can depend on the situation. A context (the values before, and the object that is
painted) is encoded, its encoding is replaced by the nearest of some codes, and every code stands
for one graph: the inputs that each object's prediction may see. Predictions, codes and graphs are
learned together, by likelihood less a price per input; an input is a cause if predictions without
it are worse. The idea is FCDL's (Hwang et al., 2024); the learner is our own, with the new values
of possible causes and the own old value as inputs, as in `state_graphs`. It was never compared with
the authors' code, so its scores are not FCDL's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.rng import generator
from interverse.models.state_graphs import Flags, Ints, StateTransitions, candidates

_STEPS, _BATCH, _HIDDEN, _RATE = 1200, 256, 64, 4e-3
_CODE_WIDTH = 16
_PRICE = 0.03  # nats that an input must be worth
_COMMITMENT = 0.25  # of encodings to their codes
_REVIVED = 100  # steps after which codes that nobody uses move to where contexts are


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalGraphs:
    """Causes by context.

    Attributes:
        local: (n, n, n), [m, i, j] = 1 where j is a cause of i while m is painted.
        worth: (N, n, n), [t, i, j] nats by which transition t of i is less likely without j.
        codes: how many codes the contexts use.
    """

    local: Ints
    worth: NDArray[np.float32]
    codes: int

    @property
    def graph(self) -> Ints:
        """(n, n), [i, j] = 1 where j is a cause of i in some context."""
        return self.local.max(0)

    def among(self, rows: Flags) -> Ints:
        """Returns (n, n), [i, j] = 1 where j is a cause of i in some of the transitions."""
        return _needed(self.worth[rows])


def _needed(worth: NDArray[np.float32]) -> Ints:
    return (worth.mean(0) > _PRICE).astype(np.int64)


class _Context(NamedTuple):
    """Quantised contexts of a batch."""

    logits: Tensor  # (B, n, n + 1) of each input, the own old value last
    code: Tensor  # (B,)
    loss: Tensor  # how far encodings and codes are apart


@final
class LocalGraphNetworks(nn.Module):
    """Codes of contexts, a graph per code, and one network per object that sees its causes."""

    def __init__(self, allowed: Flags, values: int) -> None:
        super().__init__()
        n = len(allowed)
        self.values, self.objects = values, n
        self.allowed = torch.as_tensor(np.pad(allowed, ((0, 0), (0, 1)), constant_values=True))
        self.encode = nn.Sequential(
            nn.Linear(n * (values + 1), _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _CODE_WIDTH)
        )
        self.codes = nn.Parameter(torch.randn(2 * n, _CODE_WIDTH))
        self.inputs = nn.Sequential(
            nn.Linear(_CODE_WIDTH, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, n * (n + 1))
        )
        self.inner = nn.Parameter(torch.randn(n, n + 1, values, _HIDDEN) / np.sqrt(n))
        self.shift = nn.Parameter(torch.zeros(n, _HIDDEN))
        self.outer = nn.Parameter(torch.randn(n, _HIDDEN, values) / np.sqrt(_HIDDEN))

    def encoded(self, before: Tensor, acted: Tensor) -> Tensor:
        """Returns encodings (B, width) of contexts."""
        seen = functional.one_hot(before, self.values).flatten(1)
        painted = functional.one_hot(acted, self.objects)
        return self.encode(torch.cat([seen, painted], dim=1).to(torch.float32))

    def context(self, before: Tensor, acted: Tensor) -> _Context:
        """Returns the graphs of contexts, by way of the nearest codes."""
        found = self.encoded(before, acted)
        code = torch.cdist(found, self.codes).argmin(1)
        nearest = self.codes[code]
        apart = functional.mse_loss(nearest, found.detach())
        apart = apart + _COMMITMENT * functional.mse_loss(found, nearest.detach())
        through = found + (nearest - found).detach()  # gradients pass the codes by
        logits = self.inputs(through).unflatten(1, (self.objects, self.objects + 1))
        return _Context(logits.masked_fill(~self.allowed, -20.0), code, apart)

    def forward(self, before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
        """Returns (B, n, values) log-chances of new values from the inputs that masks show."""
        n = self.objects
        inputs = functional.one_hot(after, self.values).to(torch.float32)
        seen = torch.einsum("bjv,ijvh->bijh", inputs, self.inner[:, :n])
        kept = torch.einsum("bij,bijh->bih", mask[:, :, :n], seen)
        old = functional.one_hot(before, self.values).to(torch.float32)
        kept = kept + mask[:, :, n:] * torch.einsum("biv,ivh->bih", old, self.inner[:, n])
        hidden = (kept + self.shift).relu()
        return torch.log_softmax(torch.einsum("bih,ihv->biv", hidden, self.outer), dim=-1)


def local_graphs(data: StateTransitions, *, seed: int = 0, steps: int = _STEPS) -> LocalGraphs:
    """Returns the causes of every object by what is painted."""
    rng = generator(seed=seed, name="local_graphs/fit")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = LocalGraphNetworks(candidates(data.reach()), data.values)
        optimizer = torch.optim.Adam(networks.parameters(), lr=_RATE)
        used = torch.zeros(len(networks.codes))
        for step in range(steps):
            if step % _REVIVED == 0 and step < steps // 2:
                _revive(networks, data, used, rng)
            rows = rng.integers(len(data.after), size=_BATCH)
            loss, code = _loss(networks, data, rows)
            used += functional.one_hot(code, len(used)).sum(0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return _read(networks, data)


def _loss(
    networks: LocalGraphNetworks, data: StateTransitions, rows: Ints
) -> tuple[Tensor, Tensor]:
    """Returns the loss of a batch and the codes that its contexts use."""
    before, acted, after = (
        torch.as_tensor(part[rows]) for part in (data.before, data.acted, data.after)
    )
    context = networks.context(before, acted)
    noise = torch.rand_like(context.logits).clamp(1e-6, 1 - 1e-6).logit()
    soft = torch.sigmoid(context.logits + noise)
    mask = soft + ((soft > 0.5).to(soft.dtype) - soft).detach()
    likely = networks(before, after, mask).gather(2, after[:, :, None])[..., 0]
    predicted = 1.0 - functional.one_hot(acted, data.objects)  # paint itself has no cause here
    inputs = torch.sigmoid(context.logits).sum(2)
    return ((_PRICE * inputs - likely) * predicted).sum(1).mean() + context.loss, context.code


@torch.no_grad()
def _revive(
    networks: LocalGraphNetworks, data: StateTransitions, used: Tensor, rng: np.random.Generator
) -> None:
    """Moves codes that nobody used to encodings of contexts, and forgets the counts."""
    idle = torch.nonzero(used == 0)[:, 0]
    rows = rng.integers(len(data.after), size=len(idle))
    found = networks.encoded(torch.as_tensor(data.before[rows]), torch.as_tensor(data.acted[rows]))
    networks.codes[idle] = found
    used.zero_()


@torch.no_grad()
def _read(networks: LocalGraphNetworks, data: StateTransitions) -> LocalGraphs:
    """Returns the inputs that contexts of each painted object have and need."""
    before, after = torch.as_tensor(data.before), torch.as_tensor(data.after)
    context = networks.context(before, torch.as_tensor(data.acted))
    mask = (context.logits > 0).to(torch.float32)

    def losses(shown: Tensor) -> np.ndarray:
        likely = networks(before, after, shown).gather(2, after[:, :, None])[..., 0]
        return np.asarray(-likely)

    n, whole = data.objects, losses(mask)
    worth = np.zeros((len(whole), n, n), dtype=np.float32)
    for j in range(n):
        without = mask.clone()
        without[:, :, j] = 0.0
        worth[:, :, j] = losses(without) - whole
    worth[np.arange(len(worth)), data.acted] = 0.0  # paint itself has no cause here
    local = np.stack([_needed(worth[data.acted == m]) for m in range(n)])
    return LocalGraphs(local=local, worth=worth, codes=len(context.code.unique()))
