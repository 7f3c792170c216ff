"""Golden episodes: one short recorded episode per id and protocol, so that `-v1` means something.

Each line of `tests/conformance/data/golden.json` holds a few numbers of two worlds played for a few
steps: weighted sums over all variables at the start and at the end, over the observation at the
end, and over the rewards. Run without arguments it prints what changed; `--write` stores the new
numbers, and the change belongs in the commit message.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `python tools/golden.py` starts with tools/ alone
    sys.path.insert(0, str(ROOT))

from interverse.core.rng import Noise, generator  # noqa: E402
from interverse.envs import make_vec  # noqa: E402
from interverse.envs.values import to_numpy  # noqa: E402
from interverse.protocols import PROTOCOLS  # noqa: E402
from interverse.protocols.protocol import Protocol  # noqa: E402
from interverse.worlds import WORLDS  # noqa: E402

FILE = ROOT / "tests" / "conformance" / "data" / "golden.json"
TEXTURES = ROOT / "tests" / "worlds" / "control" / "textures"
# Sums of some hundred numbers of order one: other CPUs and math libraries differ by far less
# within three steps. Pictures are means over 8-bit pixels; another rasteriser moves edges a little.
TOLERANCE = 1e-6
PICTURE_TOLERANCE = 0.5
_STEPS = 3
_WORLDS = 2
_PLAIN = Protocol(name="-")
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "chemistry/custom": {"graph": "0->1->2->4,{0-2}->3"},
    "rooms/": {"image_size": 24, "objects": 2},
    "control/": {"observation": "state", "textures": str(TEXTURES)},
}

Numbers = dict[str, float]


def episodes_of(task: str, *, every: bool = True) -> dict[str, Numbers]:
    """Returns the numbers of a task by protocol; `-` is the world without one.

    Args:
        task: an id.
        every: also the protocols that need a world made with other options, which takes longer.
    """
    protocols = (_PLAIN, *(PROTOCOLS.load(task) if task in PROTOCOLS else ()))
    out: dict[str, Numbers] = {}
    for options, alike in _by_options(protocols):
        if options and not every:
            continue
        venv = make_vec(task, _WORLDS, threads=1, **_options(task), **options)
        out |= {protocol.name: _play(venv, protocol) for protocol in alike}
        venv.close()
    return out


def differences(stored: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Returns a line for each part of each row that is not the stored one, or is missing."""
    lines = []
    for name in sorted({*stored, *found}):
        old, new = stored.get(name), found.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new' if old is None else 'gone'}")
            continue
        for part in sorted({*old, *new}):
            a, b = old.get(part, np.nan), new.get(part, np.nan)
            room = PICTURE_TOLERANCE if part == "picture" else TOLERANCE * (1 + abs(a))
            if not abs(a - b) <= room:
                lines.append(f"{name}: {part} {a} -> {b}")
    return lines


def load() -> dict[str, dict[str, Numbers]]:
    """Returns the stored numbers: task -> protocol -> part -> number."""
    out: dict[str, dict[str, Numbers]] = json.loads(FILE.read_text())
    return out


def _play(venv: Any, protocol: Protocol) -> Numbers:
    driver = venv.unwrapped.driver
    everyone = np.arange(_WORLDS)
    given = protocol.start(everyone)
    options: dict[str, Any] = {"episode": everyone.tolist(), **({"do": given} if given else {})}
    venv.reset(seed=[7] * _WORLDS, options=options)
    out = {"refused": float(len(protocol.apply(driver, everyone)))}
    out["start"] = _values_sum(driver)
    rewards = np.zeros(_WORLDS)
    for step in range(min(_STEPS, driver.world.max_steps)):
        observation, reward, terminated, truncated, _ = venv.step(_actions(venv, step))
        rewards += to_numpy(reward)
        if np.any(to_numpy(terminated | truncated)):
            break
    out |= {"end": _values_sum(driver), "reward": _sum("reward", rewards)} | _seen(observation)
    return {part: float(f"{x:.9g}") for part, x in out.items() if part != "refused" or x}


def _values_sum(driver: Any) -> float:
    """Returns a weighted sum of how far each variable is from its default."""
    variables = driver.world.variables
    return sum(_sum(n, to_numpy(driver.values[n]) - v.default) for n, v in variables.items())


def _seen(observation: Any) -> Numbers:
    parts = observation if isinstance(observation, Mapping) else {"observation": observation}
    arrays = {name: to_numpy(part) for name, part in parts.items()}
    pictures = [part for part in arrays.values() if part.dtype == np.uint8]
    rest = {name: part for name, part in arrays.items() if part.dtype != np.uint8}
    out: Numbers = {}
    if pictures:
        out["picture"] = float(np.mean([part.mean() for part in pictures]))
    if rest:
        out["seen"] = sum(_sum(name, part) for name, part in rest.items())
    return out


def _sum(name: str, numbers: NDArray[Any]) -> float:
    flat = numbers.reshape(-1).astype(np.float64)
    return float(np.sum(flat * _weights(name, len(flat))))


@functools.cache
def _weights(name: str, count: int) -> NDArray[np.float64]:
    return to_numpy(Noise.single(seed=0).uniform(f"golden:{name}", (count,))[0])


def _actions(venv: Any, step: int) -> NDArray[Any]:
    space = venv.unwrapped.world.action_space
    rng = [generator(seed=i, name="golden/action", step=step) for i in range(_WORLDS)]
    if hasattr(space, "low"):
        return np.stack([r.uniform(space.low, space.high).astype(space.dtype) for r in rng])
    return np.stack([r.integers(getattr(space, "nvec", getattr(space, "n", 1))) for r in rng])


def _options(task: str) -> Mapping[str, Any]:
    return next((o for prefix, o in _OPTIONS.items() if task.startswith(prefix)), {})


def _by_options(
    protocols: tuple[Protocol, ...],
) -> Iterator[tuple[Mapping[str, Any], list[Protocol]]]:
    """Gives protocols that can share worlds together: making worlds costs the most."""
    groups: dict[str, list[Protocol]] = {}
    for protocol in protocols:
        groups.setdefault(repr(sorted(protocol.options.items())), []).append(protocol)
    for alike in groups.values():
        yield alike[0].options, alike


def _text(table: Mapping[str, Mapping[str, Numbers]]) -> str:
    """Returns the table as JSON with one line per row, so that a change reads well."""
    tasks = []
    for task in sorted(table):
        rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table[task].items()]
        tasks.append(f" {json.dumps(task)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(tasks) + "\n}\n"


def main() -> int:
    """Prints what changed, or writes the new numbers; returns the exit code."""
    parser = argparse.ArgumentParser(description="Golden episodes: what changed, or write them.")
    parser.add_argument("--write", action="store_true", help="store the new numbers")
    parser.add_argument("tasks", nargs="*", help="ids; all if none is given")
    asked = parser.parse_args()
    stored = load() if FILE.exists() else {}
    found = {task: episodes_of(task) for task in asked.tasks or WORLDS}
    lines = [
        f"{task} {line}"
        for task in found
        for line in differences(stored.get(task, {}), found[task])
    ]
    print("\n".join(lines) if lines else f"{len(found)} ids: nothing changed")
    if asked.write:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(_text(stored | found))
        print(f"wrote {FILE.relative_to(ROOT)}: say why in the commit message")
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
