"""Pairs for the recognition results, drawn in parallel and joined to one .npz a set.

Usage: python tools/recognition_sets.py OUT [--workers 2] [--seconds 500] [--share 1.0] [SET ...]

Houses lie under OUT/SET, each complete or not there, so the same command goes on after a kill; all
sets grow alike until the time is up. At the end OUT/SET.npz and OUT/SET.json (commit, command,
world, options, houses) are what `interverse reproduce --data` and `recognition_runs.py` take.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

import interverse as iv
from interverse.core.files.atomic import atomic
from interverse.data.pairs.shards import PAIRS_OF_A_HOUSE
from interverse.fit.work import commit
from interverse.models.pairs.tensors import PairTensors, load, pair_factors
from interverse.results.provenance import command
from interverse.worlds.rooms import Pair, generate_pairs
from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS, possible


class PairSet(NamedTuple):
    """A set: its world, options, how many pairs are wanted, its first house, edge in pixels."""

    world: str
    options: Mapping[str, Any]
    pairs: int
    first: int
    size: int = 128


def _confounded(strength: float) -> PairSet:
    options = {"confounder": True, "defaults": {"confounding": strength}}
    return PairSet("rooms/single-v1", options, 800, 30_000)


SETS = {
    "both": PairSet("rooms/single-v1", {"pair_nuisance": "both"}, 30_500, 0),
    "none": PairSet("rooms/single-v1", {}, 2500, 20_000),
    **{f"confounded-{s:g}": _confounded(s) for s in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)},
    "graded": PairSet("rooms/single-v1", {"states": "graded"}, 1000, 40_000),
    "scenes-none": PairSet("rooms/multi-v1", {}, 600, 50_000, 224),
    "scenes-both": PairSet("rooms/multi-v1", {"pair_nuisance": "both"}, 1600, 60_000, 224),
}
TWINNED = "graded"  # the set whose pairs have a counterfactual picture: another action


def houses(names: list[str], share: float) -> list[tuple[str, int]]:
    """Returns set and house of everything to draw, all sets growing alike."""
    found = []
    for name in names:
        count = max(2, round(share * SETS[name].pairs / PAIRS_OF_A_HOUSE))
        found += [((i + 0.5) / count, name, SETS[name].first + i) for i in range(count)]
    return [(name, house) for _, name, house in sorted(found)]


def draw(out: Path, name: str, house: int) -> None:
    """Draws one house of a set into its file, unless that is there."""
    path = out / name / f"{house:06d}.npz"
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    began, refused, pairs = time.process_time(), Counter[str](), []
    asked = SETS[name]
    options = {**asked.options, "image_size": asked.size}
    for found in generate_pairs(asked.world, 0, house, options=options):
        if isinstance(found, Pair):
            pairs.append(found)
        else:
            refused[found.reason] += 1
    if not pairs:
        return
    content = _content(pairs, asked)
    if name == TWINNED:
        twins = [_twin(pair, asked.size) for pair in pairs]
        content |= {"twin_verb": [t[0] for t in twins], "twins": np.stack([t[1] for t in twins])}
    content |= {"refused": json.dumps(refused), "cpu": time.process_time() - began}
    with atomic(path) as partial, partial.open("wb") as file:
        np.savez(file, **content)


def _content(pairs: list[Pair], asked: PairSet) -> dict[str, Any]:
    """Returns the pairs of a house as `load` takes them; graded ones have true factors."""
    crop = "single" if asked.world == "rooms/single-v1" else "multi"
    shown = {
        name: np.stack([_shown(getattr(p, name), p, asked.size) for p in pairs])
        for name in ("before", "after")
    }
    masks = [[_mask(getattr(p, f"mask_{n}"), p, asked.size) for n in shown] for p in pairs]
    before, after = (
        {name: np.stack([row[name] for row in rows]) for name in pairs[0].factors_before}
        for rows in ([p.factors_before for p in pairs], [p.factors_after for p in pairs])
    )
    factors = pair_factors(before, after) if "states" in asked.options else {}
    return {
        **shown,
        "masks": np.array(masks),
        "verb": [p.verb for p in pairs],
        "noun": [p.cls for p in pairs],
        "verbs": [verb.name for verb in VERBS],
        "nouns": CLASS_NAMES,
        "crop": crop,
        "coding": "plain",
        "boxes": [p.box_after for p in pairs],
        "scenes": [p.address.house for p in pairs],
        "edges": np.tile([asked.size, asked.size], (len(pairs), 1)),
        **{f"factor/{name}": values for name, values in factors.items()},
    }


def _shown(picture: NDArray[Any], pair: Pair, size: int) -> NDArray[np.uint8]:
    """Returns a picture (3, size, size): the object's box, of scenes the whole."""
    x = torch.from_numpy(np.ascontiguousarray(np.moveaxis(np.atleast_3d(picture), -1, 0)))[None]
    left, top, right, bottom = pair.box_after
    if pair.origin is None or pair.origin.world_id == "rooms/single-v1":
        x = x[..., top:bottom, left:right]
    if x.shape[-2:] != (size, size):
        x = functional.interpolate(x.float(), size=(size, size), mode="bilinear", antialias=True)
        x = x.round().clamp(0, 255)
    found: NDArray[np.uint8] = x[0].to(torch.uint8).numpy()
    return found


def _mask(mask: NDArray[np.bool_], pair: Pair, size: int) -> NDArray[np.bool_]:
    return _shown(mask.astype(np.uint8) * 255, pair, size)[0] >= 128


def _twin(pair: Pair, size: int) -> tuple[int, NDArray[np.uint8]]:
    """Returns another action on the same object and the picture after it; -1 without any."""
    slot = int(pair.factors_after["action/object"])
    state = pair.factors_before["object/state"]
    verbs = [v for v in possible(pair.cls, state, graded=True) if v != pair.verb and slot == 0]
    if not verbs:
        return -1, _shown(pair.after, pair, size)
    verb = verbs[pair.address.index % len(verbs)]
    other = iv.counterfactual(pair, do={"action/verb": verb})
    return verb, _shown(other.after, pair, size)


def join(out: Path, name: str) -> int:
    """Writes one .npz of a set's houses, with a record beside it; returns how many pairs."""
    held = [dict(np.load(path)) for path in sorted((out / name).glob("*.npz"))]
    if not held:
        return 0
    shared = ("verbs", "nouns", "crop", "coding")
    own = [key for key in held[0] if key not in (*shared, "refused", "cpu")]
    content = {key: np.concatenate([house[key] for house in held]) for key in own}
    twins = {key: content.pop(key) for key in ("twins", "twin_verb") if key in content}
    _write(out / f"{name}.npz", content | {key: held[0][key] for key in shared})
    if twins:
        _write(out / f"{name}-twins.npz", twins)
    asked, refused = SETS[name], Counter[str]()
    for house in held:
        refused.update(json.loads(str(house["refused"])))
    record = {
        "set": name,
        "commit": commit(),
        "command": command(),
        "world": asked.world,
        "options": {**asked.options, "image_size": asked.size},
        "first_house": asked.first,
        "houses": len(held),
        "pairs": len(content["verb"]),
        "cpu_seconds": round(sum(float(house["cpu"]) for house in held), 1),
        "refused": dict(refused),
    }
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    return len(content["verb"])


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with atomic(path) as partial, partial.open("wb") as file:
        np.savez(file, **content)


def read(out: Path, name: str) -> tuple[PairTensors, dict[str, Any]]:
    """Returns the pairs of a joined set, and its record."""
    return load(out / f"{name}.npz"), json.loads((out / f"{name}.json").read_text())


def _work(out: Path, todo: list[tuple[str, int]], counter: Any, until: float) -> None:
    """Draws houses that nobody has taken yet, as long as there is time."""
    torch.set_num_threads(1)
    for name, house in _taken(todo, counter):
        if time.time() > until:
            return
        draw(out, name, house)


def _taken(todo: list[tuple[str, int]], counter: Any) -> Iterator[tuple[str, int]]:
    while True:
        with counter.get_lock():
            at = counter.value
            counter.value += 1
        if at >= len(todo):
            return
        yield todo[at]


def main() -> None:
    """Draws until all is there or the time is up, then joins."""
    parser = argparse.ArgumentParser(description="Pairs for the recognition results.")
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--share", type=float, default=1.0, help="of the pairs that sets want")
    asked = parser.parse_args()
    names = asked.sets or list(SETS)
    spawn = multiprocessing.get_context("spawn")
    todo, counter = houses(names, asked.share), spawn.Value("i", 0)
    until = time.time() + asked.seconds
    workers = [
        spawn.Process(target=_work, args=(asked.out, todo, counter, until))
        for _ in range(asked.workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with spawn.Pool(min(len(names), asked.workers)) as pool:
        counts = pool.starmap(join, [(asked.out, name) for name in names], chunksize=1)
    print(dict(zip(names, counts, strict=True)), flush=True)


if __name__ == "__main__":
    main()
