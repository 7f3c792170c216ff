"""Contents of a trained model's representation: object class, true factors, sparse change.

All of it concerns the weights after the last epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.errors import MissingExtraError
from interverse.core.rng import generator
from interverse.metrics.representation import (
    Kind,
    block_mcc,
    canonical_mcc,
    mcc,
    r2_matrix,
    r2_summary,
)
from interverse.models.pairs.factors import factor_kinds
from interverse.models.pairs.fit import PairRun
from interverse.models.pairs.readout import citris_r2, class_readout
from interverse.models.pairs.tensors import PairTensors

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
    train, test = ((run.work.outputs(rows).action, run.work.data.noun[rows]) for rows in _two(run))
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
        out["class_accuracy"] = _class_accuracy(run)
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
    out |= _number_scores(features, _numbers(names, kinds, whole), blocks, seed, groups)
    table = citris_r2(features, whole, blocks=blocks, kinds=kinds, groups=groups)
    best = np.round(table.max(axis=0), 6).tolist()
    out["citris_r2_factors"] = dict(zip(names, best, strict=True))
    return out | _owned(table, "citris")


def _numbers(
    names: Sequence[str], kinds: Sequence[Kind], values: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Returns the columns that are numbers; of an angle its sine and cosine, of a class none."""
    out = {}
    for name, kind, column in zip(names, kinds, values.T, strict=True):
        if kind == "continuous":
            out[name] = column
        elif kind == "angle":
            out |= {f"{name}/sin": np.sin(column), f"{name}/cos": np.cos(column)}
    return out


def _number_scores(
    features: NDArray[Any],
    columns: dict[str, NDArray[np.float64]],
    blocks: Sequence[int],
    seed: int,
    groups: NDArray[np.int64] | None,
) -> dict[str, Any]:
    if not columns:
        return {}
    truth = np.stack(list(columns.values()), axis=1)

    def rng(name: str) -> np.random.Generator:
        return generator(seed=seed, name=f"pairs/factors/{name}")

    table = r2_matrix(features, truth, blocks, rng=rng("r2"), groups=groups)
    whole = r2_matrix(features, truth, [0] * features.shape[1], rng=rng("r2"), groups=groups)
    return {
        "mcc_pearson": _round(mcc(features, truth)),
        "mcc_spearman": _round(mcc(features, truth, "spearman")),
        "mcc_canonical": _round(
            canonical_mcc(features, truth, rng=rng("canonical"), groups=groups)
        ),
        "block_mcc": _round(block_mcc(features, truth, blocks, rng=rng("block"), groups=groups)),
        "r2": dict(zip(columns, np.round(whole[0], 6).tolist(), strict=True)),
        "r2_blocks": np.round(table, 6).tolist(),
        **_owned(table, "r2"),
        **_tree_scores(features, truth, rng, groups),
    }


def _class_accuracy(run: PairRun) -> float:
    """Returns how often a network tells the object's class from the features of both pictures."""
    parts = []
    for rows in _two(run):
        parts.append((run.work.outputs(rows).features.flatten(1), run.work.data.noun[rows]))
    found = class_readout(*parts, classes=len(run.work.data.nouns), seed=run.work.seed)
    return _round(found)


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


def _changes(run: PairRun, rows: torch.Tensor) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    features = run.work.outputs(rows).features.mean(2)
    change = (features[:, 1] - features[:, 0]).abs().double().cpu().numpy()
    return change, run.work.groups[run.work.data.verb[rows]].cpu().numpy()


def _two(run: PairRun) -> tuple[torch.Tensor, torch.Tensor]:
    return run.sets["train"], run.sets["test_id"]


def _round(value: float) -> float:
    return round(float(value), 6)
