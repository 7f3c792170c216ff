"""Witnesses of every id: the trials that show each declared edge and variable to act.

Each family's trials lie beside its world, in `witnesses.json`; `make test` runs them. Without
arguments it runs what is stored and prints what has no witness; `--write` searches for what is
missing and stores the trials that are needed. A graph or a world that changed is one command more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `python tools/witnesses.py` starts with tools/ alone
    sys.path.insert(0, str(ROOT))

from interverse.rollouts.witness_search import search  # noqa: E402
from interverse.rollouts.witnesses import (  # noqa: E402
    WitnessBench,
    WitnessTrial,
    replay,
    stored,
    witness_file,
)
from interverse.worlds import WORLDS  # noqa: E402

# What a family's worlds are made with, how many at a time, and how many situations are tried.
_SETTINGS: Mapping[str, tuple[Mapping[str, Any], int, int]] = {
    "blocks/": ({}, 32, 900),
    "chemistry/custom": ({"graph": "0->1->2->4,{0-2}->3"}, 32, 200),
    "chemistry/": ({}, 32, 200),
    "control/": ({"observation": "state"}, 4, 60),
    "rooms/": ({"image_size": 24, "objects": 2}, 4, 40),
    "trifinger/": ({}, 32, 60),
    "": ({}, 16, 20),
}


def find(world_id: str, *, fresh: bool, tries: int | None) -> tuple[WitnessBench, dict[str, Any]]:
    """Returns the bench after the search, and the row to store.

    Args:
        world_id: an id.
        fresh: leave out what is stored.
        tries: how many situations to try; None takes the family's number.
    """
    options, worlds, most = next(row for p, row in _SETTINGS.items() if world_id.startswith(p))
    trials = []
    bench = WitnessBench(world_id, options, worlds)
    for data in () if fresh else stored(world_id).get("trials", ()):
        trial = WitnessTrial.from_json(data)
        if any(part.edges or part.seen for part in bench.run(trial)):
            trials.append(trial)
    trials += search(bench, most if tries is None else tries, start=0 if fresh else 10**4)
    rows = [trial.to_json() for trial in trials]
    return bench, {"options": dict(options), "worlds": worlds, "trials": rows}


def report(world_id: str, bench: WitnessBench) -> list[str]:
    """Returns a line for each thing that breaks the law."""
    return [f"{world_id}: {line}" for line in bench.evidence.broken(bench.declared, bench.world)]


def _write(world_id: str, row: Mapping[str, Any]) -> None:
    """Stores an id's row: one line per trial, so that a change reads well."""
    file = witness_file(world_id)
    table = json.loads(file.read_text()) if file.exists() else {}
    table[world_id] = row
    ids = []
    for name in sorted(table):
        head = {key: part for key, part in table[name].items() if key != "trials"}
        trials = ",\n".join(f"   {json.dumps(trial)}" for trial in table[name]["trials"])
        text = json.dumps(head)[:-1]
        ids.append(f" {json.dumps(name)}: {text},\n  \"trials\": [\n{trials}\n  ]\n }}")
    file.write_text("{\n" + ",\n".join(ids) + "\n}\n")


def main() -> int:
    """Prints what has no witness, or searches and stores; returns the exit code."""
    parser = argparse.ArgumentParser(description="Witnesses: what has none, or find them.")
    parser.add_argument("--write", action="store_true", help="search, and store what was found")
    parser.add_argument("--fresh", action="store_true", help="with --write: forget what is stored")
    parser.add_argument("--tries", type=int, help="situations to try per id")
    parser.add_argument("ids", nargs="*", help="ids or families; all if none is given")
    asked = parser.parse_args()
    broken = []
    for world_id in [n for n in WORLDS if not asked.ids or n.startswith(tuple(asked.ids))]:
        began = time.process_time()
        if asked.write:
            bench, row = find(world_id, fresh=asked.fresh, tries=asked.tries)
            _write(world_id, row)
        else:
            bench = replay(world_id)
        lines = report(world_id, bench)
        bench.close()
        broken += lines
        took = f"{time.process_time() - began:.1f} CPU s"
        print(f"{world_id}: {len(lines)} without ({took})", *lines, sep="\n  ", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
