"""Contents of a trained model's representation: object class, true factors, sparse change.

A frozen representation tells what a network trained on it can say of new samples. All of it
concerns the weights after the last epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import MissingExtraError
from interverse.core.rng import generator
from interverse.metrics.representation import (
    Kind,
    block_mcc,
    canonical_mcc,
    halves,
    mcc,
    r2,
    r2_matrix,
    r2_summary,
)
from interverse.models.pairs.fit import PairRun
from interverse.models.pairs.head import critic
from interverse.models.pairs.tensors import PairTensors, factor_kinds
from interverse.models.steps import seeded

_CITRIS_HIDDEN, _CITRIS_RATE, _CITRIS_BATCH, _CITRIS_EPOCHS = 128, 4e-3, 512, 100
_SMALLEST_DEVIATION = 0.01
_MOST_SAMPLES = 1000  # pictures per metric: trees take their time
_LEAST_SAMPLES = 20
_PER_GROUP = 32  # pairs in the picture of sparse change


def analyse(run: PairRun) -> dict[str, Any]:
    """Returns object predictability, sparse change and, with true factors, their recovery."""
    out: dict[str, Any] = {"object": object_predictability(run), "change": change_table(run)}
    if run.work.data.factors:
        out["factors"] = factor_scores(run)
    return out


def object_predictability(run: PairRun) -> dict[str, float]:
    """Returns how often a network tells the object class from the frozen action embedding.

    Returns:
        accuracy: on the ID test set; commonest: what always naming its commonest class gives.
    """
    train, test = (
        (run.work.outputs(rows).action, run.work.data.noun[rows])
        for rows in (run.sets["train"], run.sets["test_id"])
    )
    classes = len(run.work.data.nouns)
    found = class_readout(train, test, classes=classes, seed=run.work.seed)
    commonest = torch.bincount(test[1]).max() / len(test[1])
    return {"accuracy": round(found, 6), "commonest": round(float(commonest), 6)}


def change_table(run: PairRun) -> dict[str, Any]:
    """Returns the mean absolute change of each block of features under each group of actions.

    Returns:
        groups: names; table: [group][block]; own: share of the change in the group's own block.
    """
    rows = run.sets["test_id"]
    change, group = _changes(run, rows)
    blocks = run.work.blocks.cpu().numpy()
    count = blocks[-1] + 1
    per_block = np.stack([change[:, blocks == b].mean(1) for b in range(count)], axis=1)
    table = [
        per_block[group == g].mean(0) if (group == g).any() else np.zeros(count)
        for g in range(count)
    ]
    total = per_block.sum(1)
    own = per_block[np.arange(len(group)), group][total > 0] / total[total > 0]
    return {
        "groups": group_names(run),
        "table": np.round(table, 6).tolist(),
        "own": round(float(own.mean()), 6) if len(own) else 0.0,
    }


def change_samples(run: PairRun) -> tuple[NDArray[np.float64], list[str]]:
    """Returns |p2 - p1| of up to 32 ID pairs per group, (rows, width), and each row's group."""
    rows = run.sets["test_id"]
    change, group = _changes(run, rows)
    names = group_names(run)
    rng = generator(seed=run.work.seed, name="pairs/change")
    chosen = [rng.permutation(np.flatnonzero(group == g))[:_PER_GROUP] for g in range(len(names))]
    told = [names[g] for g, some in enumerate(chosen) for _ in some]
    return change[np.concatenate(chosen)], told


def group_names(run: PairRun) -> list[str]:
    """Returns a name for each group of actions, as "open/close"."""
    groups, verbs = run.work.groups.tolist(), run.work.data.verbs
    return [
        "/".join(v for v, g in zip(verbs, groups, strict=True) if g == group)
        for group in range(max(groups) + 1)
    ]


def factor_scores(run: PairRun) -> dict[str, Any]:
    """Returns how well the features of ID test pictures hold the true factors.

    Features are averaged over tokens; pictures before and after are both taken. `feature_scores`
    says what is scored, with `picture_groups` kept together; `class_accuracy` is added.
    """
    rows = run.sets["test_id"][: _MOST_SAMPLES // 2]
    features = run.work.outputs(rows).features.mean(2).flatten(0, 1).cpu().numpy()
    data, at = run.work.data, rows.cpu().numpy()
    factors = {name: values[at].ravel() for name, values in data.factors.items()}
    groups = picture_groups(data, at)
    out = feature_scores(features, factors, run.work.blocks.tolist(), run.work.seed, groups)
    if "object/class" in out["names"]:
        parts = [
            (run.work.outputs(some).features.flatten(1), data.noun[some]) for some in _two(run)
        ]
        found = class_readout(*parts, classes=len(data.nouns), seed=run.work.seed)
        out["class_accuracy"] = _round(found)
    return out


def picture_groups(pairs: PairTensors, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (2 * rows,) which pictures must not be parted: those of a house.

    Pictures before and after follow each other. A pair is a group of its own where houses are
    not known, or all pairs are of one.
    """
    house = pairs.labels.house
    known = house is not None and len(np.unique(house[rows])) > 1
    return np.repeat(house[rows] if known and house is not None else np.arange(len(rows)), 2)


def feature_scores(
    features: NDArray[Any],
    factors: Mapping[str, NDArray[Any]],
    blocks: Sequence[int],
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """Returns how well features hold true factors.

    Factors that never change are left out, and all are with fewer than 20 samples. Angles count as
    sine and cosine; classes are scored by CITRIS's reader alone. Scores that need scikit-learn are
    left out without it. `halves` says whether samples or groups were drawn.

    Args:
        features: (samples, features); at most the first 1,000 samples count.
        factors: by name, (samples,).
        blocks: the block of each feature, from 0.
        seed: of the halves that readers train on.
        groups: (samples,) near copies, which go to one half (`picture_groups`); None: there are
            none, every sample is drawn on its own.
    """
    features = features[:_MOST_SAMPLES]
    factors = {name: values[:_MOST_SAMPLES] for name, values in factors.items()}
    groups = None if groups is None else groups[:_MOST_SAMPLES]
    names = [name for name, values in factors.items() if np.ptp(values) > 0]
    if not names or len(features) < _LEAST_SAMPLES:
        return {"names": []}
    kinds = factor_kinds(names)
    whole = np.stack([factors[name] for name in names], axis=1)
    out: dict[str, Any] = {"names": names, "halves": "samples" if groups is None else "groups"}
    columns = {}  # of an angle its sine and cosine, of a class none
    for name, kind, column in zip(names, kinds, whole.T, strict=True):
        if kind == "continuous":
            columns[name] = column
        elif kind == "angle":
            columns |= {f"{name}/sin": np.sin(column), f"{name}/cos": np.cos(column)}
    if columns:
        truth, same = np.stack(list(columns.values()), axis=1), [0] * features.shape[1]

        def rng(name: str) -> np.random.Generator:
            return generator(seed=seed, name=f"pairs/factors/{name}")

        by_block, by_all = (
            r2_matrix(features, truth, of, rng=rng("r2"), groups=groups) for of in (blocks, same)
        )
        canonical = canonical_mcc(features, truth, rng=rng("canonical"), groups=groups)
        in_blocks = block_mcc(features, truth, blocks, rng=rng("block"), groups=groups)
        out |= {
            "mcc_pearson": _round(mcc(features, truth)),
            "mcc_spearman": _round(mcc(features, truth, "spearman")),
            "mcc_canonical": _round(canonical),
            "block_mcc": _round(in_blocks),
            "r2": dict(zip(columns, np.round(by_all[0], 6).tolist(), strict=True)),
            "r2_blocks": np.round(by_block, 6).tolist(),
            **_owned(by_block, "r2"),
            **_tree_scores(features, truth, rng, groups),
        }
    table = citris_r2(features, whole, blocks=blocks, kinds=kinds, groups=groups)
    best = np.round(table.max(axis=0), 6).tolist()
    out["citris_r2_factors"] = dict(zip(names, best, strict=True))
    return out | _owned(table, "citris")


def _owned(table: NDArray[np.float64], kind: str) -> dict[str, float]:
    """Returns CITRIS's two numbers, each factor owned by the block that tells it best."""
    found = r2_summary(table, table.argmax(axis=0).tolist())
    return {f"{kind}_{name}": value for name, value in found.items()}


def _tree_scores(
    features: NDArray[Any], truth: NDArray[Any], rng: Any, groups: NDArray[np.int64] | None
) -> dict[str, Any]:
    try:
        from interverse.metrics import disentanglement as metric
    except MissingExtraError:
        return {"left_out": "dci, sap, mig, modularity, explicitness: no scikit-learn"}
    found = metric.dci(features, truth, rng=rng("dci"), groups=groups)
    out = {
        "dci_disentanglement": found.disentanglement,
        "dci_completeness": found.completeness,
        "dci_informativeness": found.informativeness,
        "sap": metric.sap(features, truth),
        "mig": metric.mig(features, truth),
        "explicitness": metric.explicitness(
            features, truth, rng=rng("explicitness"), groups=groups
        ),
    }
    if truth.shape[1] > 1:
        out["modularity"] = metric.modularity(features, truth)
    return {name: _round(value) for name, value in out.items()}


def _changes(run: PairRun, rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    features = run.work.outputs(rows).features.mean(2)
    change = (features[:, 1] - features[:, 0]).abs().double().cpu().numpy()
    return change, run.work.groups[run.work.data.verb[rows]].cpu().numpy()


def _two(run: PairRun) -> tuple[Tensor, Tensor]:
    return run.sets["train"], run.sets["test_id"]


def _round(value: float) -> float:
    return round(float(value), 6)


# ---------------------------------------------------------------------------------------- readers


def class_readout(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    classes: int,
    steps: int = 500,
    seed: int = 0,
) -> float:
    """Returns how often a network like the critic tells the class of test samples.

    Both sets are embeddings (N, width) and classes (N,); every update is on the whole training
    set.
    """
    inputs, targets = train
    mean, scale = inputs.mean(0), inputs.std(0).clamp(min=1e-6)
    with seeded("readout/weights", seed):
        network = critic(inputs.shape[1], classes).to(inputs.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2, fused=True)
    ready = (inputs - mean) / scale
    for _ in range(steps):
        loss = functional.cross_entropy(network(ready), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        guess = network((test[0] - mean) / scale).argmax(1)
    return float((guess == test[1]).float().mean())


def citris_r2(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    blocks: Sequence[int] | None = None,
    kinds: Sequence[Kind] | None = None,
    epochs: int = _CITRIS_EPOCHS,
    seed: int = 42,
    groups: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Returns CITRIS's R2 matrix, (blocks, factors): each factor from each block by a network.

    One network reads all blocks: it gets the latents of one block, zeros elsewhere, and which
    block that is. It learns on a random half of the samples and is judged on the other.

    Args:
        latents: (samples, latents); standardised here.
        factors: (samples, factors).
        blocks: the block of each latent, from 0; None: each latent alone.
        kinds: of each factor: continuous (default), angle (radians) or categorical (from 0).
        epochs: of training.
        seed: of the halves and the network.
        groups: the group of each sample, which goes to one half; None: each sample alone.
    """
    values = torch.as_tensor(np.asarray(latents, dtype=np.float32))
    values = (values - values.mean(0)) / values.std(0).clamp(min=_SMALLEST_DEVIATION)
    true = np.asarray(factors, dtype=np.float64)
    told: Sequence[Kind] = kinds or ("continuous",) * true.shape[1]
    at = torch.arange(values.shape[1]) if blocks is None else torch.as_tensor(list(blocks))
    masks = functional.one_hot(at).T.float()  # (blocks, latents)
    goals = [_Goal(column, kind) for column, kind in zip(true.T, told, strict=True)]
    parted = halves(len(values), generator(seed=seed, name="citris/halves"), groups)
    rows, test = (torch.as_tensor(part) for part in parted)
    with seeded("citris/weights", seed):
        network = nn.Sequential(
            nn.Linear(2 * values.shape[1], _CITRIS_HIDDEN),
            nn.ReLU(),
            nn.Linear(_CITRIS_HIDDEN, _CITRIS_HIDDEN),
            nn.ReLU(),
            nn.Linear(_CITRIS_HIDDEN, sum(goal.size for goal in goals)),
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=_CITRIS_RATE)
    sizes = [goal.size for goal in goals]
    for epoch in range(epochs):
        rng = generator(seed=seed, name="citris/order", episode=epoch)
        for some in rows[torch.as_tensor(rng.permutation(len(rows)))].split(_CITRIS_BATCH):
            block = torch.as_tensor(rng.integers(len(masks), size=len(some)))
            out = network(_masked(values[some], masks[block]))
            loss = torch.zeros(())
            for goal, part in zip(goals, out.split(sizes, dim=1), strict=True):
                loss = loss + goal.loss(part, some)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    scores = []
    for mask in masks:
        with torch.no_grad():
            out = network(_masked(values[test], mask))
        parts = zip(goals, out.split(sizes, dim=1), strict=True)
        scores.append([goal.score(part, test) for goal, part in parts])
    return np.array(scores)


@final
class _Goal:
    """One factor to predict: numbers standardised, angles as sine and cosine, categories."""

    def __init__(self, column: NDArray[Any], kind: Kind) -> None:
        self.kind: Kind = kind
        deviation = column.std()
        if kind == "continuous":  # R2 does not mind the scale; the network does
            column = (column - column.mean()) / (deviation if deviation > 0 else 1.0)
        self.truth = torch.as_tensor(column)
        self.size = {"continuous": 1, "angle": 2, "categorical": int(column.max()) + 1}[kind]

    def loss(self, out: Tensor, rows: Tensor) -> Tensor:
        true = self.truth[rows]
        if self.kind == "categorical":
            return functional.cross_entropy(out, true.long())
        wanted = true[:, None]
        if self.kind == "angle":
            wanted = torch.cat([wanted.sin(), wanted.cos()], dim=1)
        return functional.mse_loss(out, wanted.float())

    def score(self, out: Tensor, rows: Tensor) -> float:
        if self.kind == "categorical":
            guess = out.argmax(1)
        elif self.kind == "angle":
            guess = torch.atan2(out[:, 0], out[:, 1])
        else:
            guess = out[:, 0]
        found = r2(guess[:, None].numpy(), self.truth[rows][:, None].numpy(), self.kind)
        return max(0.0, float(found[0]))


def _masked(values: Tensor, mask: Tensor) -> Tensor:
    mask = mask.expand_as(values)
    return torch.cat([values * mask, mask], dim=-1)
