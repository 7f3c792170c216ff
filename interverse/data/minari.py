"""Export to Minari, Farama's store of offline reinforcement-learning data (extra `minari`)."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from interverse.core.errors import missing_extra
from interverse.data.dataset import Dataset
from interverse.data.episodes import TwinFolder
from interverse.data.worldmodel import lengthened
from interverse.rollouts.episode import Episode, Refusal
from interverse.worlds.own_code import check_trusted


def to_minari(data: Dataset | TwinFolder, name: str, **about: Any) -> Any:
    """Returns the data set as a new `minari.MinariDataset`, stored under a name, pixels lossless.

    Args:
        data: what to export; of collected episodes the facts, with all values of variables and
            every twin's observations, rewards and values as infos. A twin that was refused has
            `twin_K.refused` 1 and the fact's; one that ended early repeats its last row.
        name: Minari's id, such as "interverse/blocks-observed-3/train-v0".
        **about: what else `minari.create_dataset_from_buffers` takes: author, code_permalink, ...
    """
    try:
        minari = importlib.import_module("minari")
        buffers = importlib.import_module("minari.data_collector")
    except ImportError as error:
        raise missing_extra("minari", "minari") from error
    if isinstance(data, TwinFolder):
        header: Any = data.facts[0]
        episodes, algorithm = _collected(data, buffers.EpisodeBuffer), "see collect.json"
    else:
        header = data.header
        episodes, algorithm = _episodes(data, buffers.EpisodeBuffer), "random"
    check_trusted("the data set", header.id, header.options)
    spec = copy.deepcopy(gym.spec(header.id))
    spec.kwargs.update(header.options)
    told = {
        "algorithm_name": algorithm,
        "description": f"{header.id}, seed {header.seed}, interverse {header.version}",
        "jpeg_encoding": False,
    } | about
    return minari.create_dataset_from_buffers(name, episodes, env=spec, **told)


def _collected(data: TwinFolder, buffer: Any) -> Iterator[Any]:
    """Yields the facts, with values and twins as infos."""
    for number, fact in enumerate(data.facts):
        infos = {f"value.{_flat(name)}": rows for name, rows in fact.values.items()}
        for k in range(len(data.twins)):
            infos |= _twin(data.twin(number, k), fact, f"twin_{k}.")
        yield buffer(
            id=number,
            seed=fact.seed,
            options={"episode": fact.episode},
            observations=fact.observations,
            actions=fact.actions,
            rewards=fact.rewards,
            terminations=fact.terminated,
            truncations=fact.truncated,
            infos=infos,
        )


def _twin(twin: Episode | Refusal, fact: Episode, prefix: str) -> dict[str, Any]:
    """Returns a twin's infos, a row for each moment of its fact."""
    shown, rows = twin if isinstance(twin, Episode) else fact, len(fact) + 1
    infos = {f"value.{_flat(name)}": lengthened(v, rows) for name, v in shown.values.items()}
    infos["observations"] = _lengthened(shown.observations, rows)
    infos["rewards"] = np.append(lengthened(shown.rewards, rows - 1), np.nan)
    infos["refused"] = np.full(rows, not isinstance(twin, Episode))
    return {prefix + name: column for name, column in infos.items()}


def _lengthened(tree: Any, rows: int) -> Any:
    if isinstance(tree, Mapping):
        return {name: _lengthened(part, rows) for name, part in tree.items()}
    return lengthened(np.asarray(tree), rows)


def _flat(name: str) -> str:
    """Returns a variable's name as HDF5 takes it in one piece."""
    return name.replace("/", ".")


def _episodes(data: Dataset, buffer: Any) -> Iterator[Any]:
    """Yields one episode at a time, so that the pixels of one are in memory, not of all."""
    for e in range(len(data)):
        frames = data.images(e)[0]
        seen = {"image": frames, "state": data.states[e]}
        if data.header.targets:
            seen["target"] = np.broadcast_to(data.target_images(e)[0], frames.shape)
        never = np.zeros(data.header.steps, dtype=bool)
        yield buffer(
            id=e,
            seed=int(data.seeds[e]),
            options={"episode": int(data.episodes[e])},
            observations=seen,
            actions=data.actions[e],
            rewards=data.rewards[e],
            terminations=never,
            truncations=np.arange(1, data.header.steps + 1) == data.header.steps,
        )
