"""Work on a GPU asks a cluster for one, so that units spread over the GPUs there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interverse.cli.sweep import SweepCell
from interverse.core.errors import InvalidValueError
from interverse.data import Collect
from interverse.data.episodes import CollectEpisodes
from interverse.protocols.protocol import select_protocols
from interverse.protocols.unit import Unit
from interverse.rollouts.executors import gpus_of, run_units

TASK = "trifinger/pushing-v1"


def unit(device: str) -> Any:
    (protocol,) = select_protocols(TASK, "P0")
    options = {"device": device}
    return Unit(task=TASK, options=options, protocol=protocol, seed=0, number=0, episodes=1)


def cell(device: str) -> Any:
    train = ("--task", TASK, "--device", device)
    return SweepCell(task=TASK, experiment="ppo", seed=0, train=train, evaluate=())


def collected(device: str) -> Any:
    return Collect(id="blocks/observed-3-v1", out=Path("x.h5"), options={"device": device})


def recorded(device: str) -> Any:
    return CollectEpisodes(id=TASK, out=Path("x"), options={"device": device})


@pytest.mark.parametrize("make", [unit, cell, collected, recorded])
def test_what_runs_on_cuda_needs_a_gpu(make: Any) -> None:
    assert make("cuda").gpus == 1
    assert make("torch").gpus == 0


def test_which_gpu_is_the_clusters_to_choose() -> None:
    with pytest.raises(InvalidValueError, match="device is 'cuda:1'"):
        gpus_of("cuda:1")


@dataclass(frozen=True)
class Work:
    gpus: float


def given(work: Work, shared: None) -> list[int]:
    import ray

    return [int(number) for number in ray.get_gpu_ids()]


@pytest.mark.slow
@pytest.mark.ray
def test_ray_gives_each_unit_what_it_asks_for() -> None:
    import ray

    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    try:
        units = [Work(1), Work(0), Work(0.5)]
        found = {w.gpus: ids for w, ids in run_units(given, units, None, cluster="auto")}
        assert [len(found[gpus]) for gpus in (1, 0, 0.5)] == [1, 0, 1]
        with pytest.raises(InvalidValueError, match="needs 3 GPU"):
            list(run_units(given, [Work(3)], None, cluster="auto"))
    finally:
        ray.shutdown()
