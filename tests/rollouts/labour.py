"""Units of work that other processes can find: some well behaved, some that raise, wait or die."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from interverse.core.errors import InterventionError
from interverse.rollouts.saved import PolicyFiles, unpacked_policy


def times(unit: int, shared: int) -> int:
    return unit * shared


def heavy(unit: int, shared: int) -> bytes:
    """Returns so many bytes."""
    return bytes(shared)


def whereabouts(unit: int, shared: Any) -> int:
    time.sleep(0.2)
    return os.getpid()


def refuse(unit: int, shared: int) -> int:
    if unit == 2:
        raise InterventionError("block/mass is 7 kg. Allowed: 0.1 to 1 kg.", ["block/mass"])
    return unit


def die_once(unit: int, shared: Path) -> int:
    """Kills its own process, the first time that unit 2 is done."""
    mark = shared / "died"
    if unit == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return unit * unit


def die(unit: int, shared: Any) -> int:
    if unit == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return unit


def leave_slowly(unit: int, shared: Any) -> int:
    """Returns a process that waits for a thread of its own before it ends."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    return os.getpid()


def dawdle(unit: int, shared: Path) -> int:
    """Says that it began, and takes longer than any test."""
    (shared / f"began-{unit}").touch()
    time.sleep(600)
    return unit


class Shipment:
    """Something to share that counts how often it is packed."""

    packed = 0

    def __getstate__(self) -> dict[str, int]:
        Shipment.packed += 1
        return {"value": 3}

    def __setstate__(self, state: dict[str, int]) -> None:
        self.value = state["value"]


def open_shipment(unit: int, shared: Shipment) -> int:
    return unit * shared.value


def wait_for(condition: Any, seconds: float = 180.0) -> None:
    """Waits until a condition holds; a test that waits in vain fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def group_alive(group: int) -> bool:
    """Returns whether a process of a group is left; one that nobody waits for does not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = status.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False


def node(unit: int, shared: Path) -> tuple[int, str]:
    """Returns a product and its node, once two nodes are at work: one CPU each, held by waiting."""
    import ray

    name = ray.get_runtime_context().get_node_id()
    (shared / name).touch()
    wait_for(lambda: len(list(shared.iterdir())) == 2)
    return 10 * unit, name


def unpack(unit: int, shared: PolicyFiles) -> tuple[Path, dict[str, bytes]]:
    """Returns where a policy was unpacked and what it held."""
    with unpacked_policy(shared) as root:
        found = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
        return root, {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def steer(gain: float) -> Any:
    """Returns a policy of the slider that only a closure knows."""
    return lambda seen: np.clip(gain * (seen[:, 9:11] - seen[:, 0:2]), -1, 1).astype(np.float32)


def save_policy(folder: Path) -> None:
    """Writes a small network for the slider, as `interverse train` exports one."""
    import torch

    from interverse.rollouts.exported import Card, ExportedPolicy

    draw = torch.Generator().manual_seed(0)
    shapes = {"0.weight": (64, 11), "0.bias": (64,), "1.weight": (2, 64), "1.bias": (2,)}
    weights = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    weights |= {"obs.mean": torch.zeros(11), "obs.std": torch.ones(11)}
    bounds = {"low": [-1.0, -1.0], "high": [1.0, 1.0]}
    card = Card(layers=2, activation="tanh", squash=True, trained={}, **bounds)
    ExportedPolicy(card, weights).save(folder)


class Staller:
    """A policy of the slider that, on one node and once, hangs until the node is killed."""

    def __init__(self, mark: Path, node_id: str) -> None:
        self.mark, self.node_id = mark, node_id

    def __call__(self, seen: Any) -> Any:
        import ray

        if not self.mark.exists() and ray.get_runtime_context().get_node_id() == self.node_id:
            self.mark.touch()
            time.sleep(600)
        return steer(4.0)(seen)


def descendants(pid: int) -> dict[int, str]:
    """Returns the processes that a process started, and theirs, with their command lines."""
    found: dict[int, str] = {}
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, tasks.read_text().split()):
            with suppress(OSError):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                found |= descendants(child)
    return found
