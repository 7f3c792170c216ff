"""Causal graphs and dynamics from transitions of discrete states under interventions.

An action paints one object; what it reaches is drawn anew from its parents' new values, everything
else stays. So an object's causes show only in the transitions in which it was reached, and whatever
an action on it changes cannot be among them. Three learners use that:

- `graph_by_tests` adds and removes causes by tests of conditional independence (as GRADER does).
- `graph_by_masks` trains one network per object whose inputs are masked at random, and keeps causes
  without which the prediction is worse: conditional mutual information (as CDL does).
- `local_graphs` learns a graph per situation, for what causes what can depend on it.

`StateNetworks` then predicts with the causes of any graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.rng import generator

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_REACHED = 0.02  # share of changed outcomes above which an action reaches an object
_ALPHA = 1e-3  # of a test, divided by the number of candidates
_MOST_CAUSES = 6  # that tests can condition on: counts get thin
_INFORMATION = 0.02  # nats that a cause must add
_STEPS, _BATCH, _HIDDEN, _RATE = 500, 512, 64, 5e-3
_LOCAL_STEPS, _LOCAL_BATCH, _LOCAL_RATE = 1200, 256, 4e-3
_CODE_WIDTH = 16
_PRICE = 0.03  # nats that an input must be worth
_COMMITMENT = 0.25  # of encodings to their codes
_REVIVED = 100  # steps after which codes that nobody uses move to where contexts are


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateTransitions:
    """N transitions of n discrete objects.

    Attributes:
        before: (N, n) values before the action.
        acted: (N,) the object that was painted.
        after: (N, n) values after it.
        values: how many values an object has.
    """

    before: Ints
    acted: Ints
    after: Ints
    values: int

    @property
    def objects(self) -> int:
        """How many objects there are."""
        return self.before.shape[1]

    def part(self, first: int, last: int) -> StateTransitions:
        """Returns some of the transitions."""
        rows = slice(first, last)
        return replace(
            self, before=self.before[rows], acted=self.acted[rows], after=self.after[rows]
        )

    def reach(self) -> Flags:
        """Returns (n, n): [i, j] whether an action on j ever changes i, another object."""
        changed = self.before != self.after
        share = np.stack([changed[self.acted == j].mean(0) for j in range(self.objects)], axis=1)
        return (share > _REACHED) & ~np.eye(self.objects, dtype=bool)


def candidates(reach: Flags) -> Flags:
    """Returns (n, n): [i, j] whether j may be a cause of i, by what actions on i change."""
    return ~reach.T & ~np.eye(len(reach), dtype=bool)


def graph_by_tests(data: StateTransitions) -> Ints:
    """Returns (n, n) causes [i, j] = 1 for j -> i by tests on the transitions that reach i."""
    reach = data.reach()
    allowed, graph = candidates(reach), np.zeros(reach.shape, dtype=np.int64)
    for i in range(data.objects):
        rows = data.after[reach[i, data.acted]]
        if len(rows):
            graph[i, _causes(rows, i, np.flatnonzero(allowed[i]).tolist(), data.values)] = 1
    return graph


def _causes(rows: Ints, target: int, allowed: list[int], values: int) -> list[int]:
    """Returns the causes of a target: added while one is significant, then those still so."""
    chosen: list[int] = []
    level = _ALPHA / max(1, len(allowed))
    while len(chosen) < min(_MOST_CAUSES, len(allowed)):
        rest = [j for j in allowed if j not in chosen]
        chances = [_independence(rows, target, j, chosen, values) for j in rest]
        if min(chances) > level:
            break
        chosen.append(rest[int(np.argmin(chances))])
    return [
        j
        for j in chosen
        if _independence(rows, target, j, [c for c in chosen if c != j], values) <= level
    ]


def _independence(rows: Ints, target: int, cause: int, given: list[int], values: int) -> float:
    """Returns the chance of as much dependence without any: the G test over strata of `given`."""
    stratum = np.zeros(len(rows), dtype=np.int64)
    for other in given:
        stratum = stratum * values + rows[:, other]
    shape = (values ** len(given), values, values)
    counts = np.zeros(shape)
    np.add.at(counts, (stratum, rows[:, cause], rows[:, target]), 1)
    cause_sums, target_sums = counts.sum(2, keepdims=True), counts.sum(1, keepdims=True)
    totals = counts.sum((1, 2), keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(
            counts > 0, counts * np.log(counts * totals / (cause_sums * target_sums)), 0
        )
    seen = [np.maximum((sums > 0).sum((1, 2)) - 1, 0) for sums in (cause_sums, target_sums)]
    freedom = int((seen[0] * seen[1]).sum())
    return float(stats.chi2.sf(2 * terms.sum(), freedom)) if freedom else 1.0


def graph_by_masks(data: StateTransitions, *, seed: int = 0) -> tuple[Ints, NDArray[np.float64]]:
    """Returns the causes and (n, n) the information in nats that each adds to all others.

    Networks are trained on four fifths of the transitions; the others tell the information.
    """
    allowed, cut = candidates(data.reach()), len(data.after) * 4 // 5
    networks = StateNetworks.fitted(data.part(0, cut), allowed, seed=seed, masked=True)
    held_out = data.part(cut, len(data.after))
    whole = networks.losses(held_out)
    information = np.zeros(allowed.shape)
    for j in range(data.objects):
        without = allowed.copy()
        without[:, j] = False
        information[:, j] = networks.losses(held_out, without) - whole
    information[~allowed] = 0.0
    return (information > _INFORMATION).astype(np.int64), information


@final
class StateNetworks(nn.Module):
    """One network per object: the new values of its causes to chances of its own new value."""

    def __init__(self, causes: Flags, reach: Flags, values: int) -> None:
        super().__init__()
        n = len(causes)
        self.values, self.reach = values, reach
        self.causes = torch.as_tensor(np.asarray(causes, dtype=np.float32))
        scale = 1.0 / np.sqrt(n)
        self.inner = nn.Parameter(scale * torch.randn(n, n, values, _HIDDEN))
        self.shift = nn.Parameter(torch.zeros(n, _HIDDEN))
        self.outer = nn.Parameter(torch.randn(n, _HIDDEN, values) / np.sqrt(_HIDDEN))

    @classmethod
    def fitted(
        cls, data: StateTransitions, causes: Flags | Ints, *, seed: int = 0, masked: bool = False
    ) -> StateNetworks:
        """Returns networks trained on the transitions that reach each object.

        Args:
            data: the transitions.
            causes: (n, n), [i, j] where j is an input of i's network; what an action on i changes
                is left out, for a prediction of i cannot wait for it.
            seed: of weights, batches and masks.
            masked: leave a random cause out in half of the batches, so that the networks also
                know what is likely without it.
        """
        rng, reach = generator(seed=seed, name="state_graphs/fit"), data.reach()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks = cls(np.asarray(causes, dtype=bool) & candidates(reach), reach, data.values)
        optimizer = torch.optim.Adam(networks.parameters(), lr=_RATE)
        for step in range(_STEPS):
            rows = rng.integers(len(data.after), size=_BATCH)
            mask = networks.causes
            if masked and step % 2:
                left_out = torch.as_tensor(rng.integers(data.objects, size=data.objects))
                mask = mask * (1 - nn.functional.one_hot(left_out, data.objects))
            after = torch.as_tensor(data.after[rows])
            weight = networks.reached(data.acted[rows])
            likely = networks(after, mask).gather(2, after[:, :, None])[..., 0]
            optimizer.zero_grad()
            (-(likely * weight).sum() / weight.sum().clamp(min=1)).backward()
            optimizer.step()
        return networks.eval()

    def reached(self, acted: Ints) -> Tensor:
        """Returns (N, n) ones where an action on `acted` reaches an object."""
        return torch.as_tensor(self.reach.T[acted].astype(np.float32))

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Returns (N, n, values) log-chances of every object's value, given all values (N, n)."""
        shown = nn.functional.one_hot(values, self.values).to(torch.float32)
        weights = self.inner * (self.causes if mask is None else mask)[:, :, None, None]
        hidden = torch.einsum("bjv,ijvh->bih", shown, weights) + self.shift
        return torch.log_softmax(torch.einsum("bih,ihv->biv", hidden.relu(), self.outer), dim=-1)

    @torch.no_grad()
    def losses(self, data: StateTransitions, causes: Flags | None = None) -> NDArray[np.float64]:
        """Returns (n,) the mean negative log-chance of each object's outcome where it is reached.

        0 for objects that nothing reaches; `causes` leaves some of the own causes out.
        """
        mask = None if causes is None else torch.as_tensor(causes.astype(np.float32))
        after, weight = torch.as_tensor(data.after), self.reached(data.acted)
        likely = self(after, mask).gather(2, after[:, :, None])[..., 0]
        return np.asarray(-(likely * weight).sum(0) / weight.sum(0).clamp(min=1), dtype=np.float64)

    @torch.no_grad()
    def sampled(self, before: Ints, acted: Ints, paint: Ints, *, seed: int) -> Ints:
        """Returns outcomes (N, n) of painting objects, drawn cause after cause."""
        rng = generator(seed=seed, name="state_graphs/sampled")
        out = before.copy()
        out[np.arange(len(out)), acted] = paint
        for i in np.argsort(self.reach.sum(1), kind="stable"):  # ancestors have fewer
            chances = self(torch.as_tensor(out))[:, i].exp().numpy().cumsum(1)
            drawn = (rng.random((len(out), 1)) > chances[:, :-1]).sum(1)
            out[:, i] = np.where(self.reach[i, acted], drawn, out[:, i])
        return out


# ------------------------------------------------------------------------- graphs by situation


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
class _LocalNetworks(nn.Module):
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
        """Returns (B, n) log-chances of the new values from the inputs that masks show."""
        n = self.objects
        inputs = functional.one_hot(after, self.values).to(torch.float32)
        seen = torch.einsum("bjv,ijvh->bijh", inputs, self.inner[:, :n])
        kept = torch.einsum("bij,bijh->bih", mask[:, :, :n], seen)
        old = functional.one_hot(before, self.values).to(torch.float32)
        kept = kept + mask[:, :, n:] * torch.einsum("biv,ivh->bih", old, self.inner[:, n])
        likely = torch.einsum("bih,ihv->biv", (kept + self.shift).relu(), self.outer)
        return torch.log_softmax(likely, dim=-1).gather(2, after[:, :, None])[..., 0]


def local_graphs(
    data: StateTransitions, *, seed: int = 0, steps: int = _LOCAL_STEPS
) -> LocalGraphs:
    """Returns the causes of every object by what is painted, by quantised contexts.

    A context (the values before, and the object that is painted) is encoded, its encoding is
    replaced by the nearest of some codes, and every code stands for one graph: the inputs that each
    object's prediction may see. Predictions, codes and graphs are learned together, by likelihood
    less a price per input; an input is a cause if predictions without it are worse. The idea is
    FCDL's (Hwang et al., 2024); the learner is our own, with the new values of possible causes and
    the own old value as inputs. It was never compared with the authors' code, so its scores are not
    FCDL's.
    """
    rng = generator(seed=seed, name="local_graphs/fit")
    n, moments = data.objects, (data.before, data.acted, data.after)
    before, acted, after = (torch.as_tensor(part) for part in moments)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = _LocalNetworks(candidates(data.reach()), data.values)
        optimizer = torch.optim.Adam(networks.parameters(), lr=_LOCAL_RATE)
        used = torch.zeros(len(networks.codes))
        for step in range(steps):
            if step % _REVIVED == 0 and step < steps // 2:
                # Codes that nobody used move to encodings of contexts.
                idle = torch.nonzero(used == 0)[:, 0]
                at = rng.integers(len(after), size=len(idle))
                with torch.no_grad():
                    networks.codes[idle] = networks.encoded(before[at], acted[at])
                used.zero_()
            rows = torch.as_tensor(rng.integers(len(after), size=_LOCAL_BATCH))
            context = networks.context(before[rows], acted[rows])
            noise = torch.rand_like(context.logits).clamp(1e-6, 1 - 1e-6).logit()
            soft = torch.sigmoid(context.logits + noise)
            mask = soft + ((soft > 0.5).to(soft.dtype) - soft).detach()
            likely = networks(before[rows], after[rows], mask)
            predicted = 1.0 - functional.one_hot(acted[rows], n)  # paint has no cause here
            price = _PRICE * torch.sigmoid(context.logits).sum(2)
            loss = ((price - likely) * predicted).sum(1).mean() + context.loss
            used += functional.one_hot(context.code, len(used)).sum(0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    # The inputs that contexts of each painted object have and need.
    with torch.no_grad():
        context = networks.context(before, acted)
        mask = (context.logits > 0).to(torch.float32)
        whole = networks(before, after, mask)
        worth = np.zeros((len(whole), n, n), dtype=np.float32)
        for j in range(n):
            without = mask.clone()
            without[:, :, j] = 0.0
            worth[:, :, j] = whole - networks(before, after, without)
    worth[np.arange(len(worth)), data.acted] = 0.0  # paint itself has no cause here
    local = np.stack([_needed(worth[data.acted == m]) for m in range(n)])
    return LocalGraphs(local=local, worth=worth, codes=len(context.code.unique()))
