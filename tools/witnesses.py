"""Witnesses of every id: the trials that show each declared edge and variable to act.

Each family's trials lie beside its world, in `witnesses.json`; `make test` runs them. Without
arguments it runs what is stored and prints what has no witness; `--write` searches for what is
missing and stores the trials that are needed. A graph or a world that changed is one command more.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `python tools/witnesses.py` starts with tools/ alone
    sys.path.insert(0, str(ROOT))

from interverse.rollouts.evidence import Evidence, WitnessTrial  # noqa: E402
from interverse.rollouts.witnesses import (  # noqa: E402
    SEARCH_NUMBERS,
    WitnessBench,
    needed,
    replay,
    search,
    some_action,
    stored,
    witness_file,
)
from interverse.worlds import WORLDS  # noqa: E402
from interverse.worlds.trifinger.world import TriFinger  # noqa: E402

# What a family's worlds are made with, how many at a time, and how many situations are tried.
_SETTINGS: Mapping[str, tuple[tuple[Mapping[str, Any], int, int], ...]] = {
    "blocks/": (({}, 12, 600),),
    "chemistry/custom": (({"graph": "0->1->2->4,{0-2}->3"}, 16, 100),),
    "chemistry/": (({}, 16, 100),),
    "control/": (({"observation": "state"}, 4, 60),),
    "rooms/": (({"image_size": 24, "objects": 2}, 4, 40),),
    "trifinger/": (({}, 24, 60), (TriFinger.pixel_options, 4, 3)),
    "": (({}, 16, 20),),
}


def find(world_id: str, *, fresh: bool, tries: int | None) -> tuple[list[str], list[Any]]:
    """Returns what breaks the law after the search, and the groups to store.

    Args:
        world_id: an id.
        fresh: leave out what is stored.
        tries: how many situations to try at most; None takes the family's number.
    """
    settings = next(row for p, row in _SETTINGS.items() if world_id.startswith(p))
    evidence, groups, broken = Evidence(), [], list[str]()
    known = {} if fresh else {str(g["options"]): g["trials"] for g in stored(world_id)}
    for options, worlds, most in settings:
        bench = WitnessBench(world_id, options, worlds, evidence)
        trials = [WitnessTrial.from_json(data) for data in known.get(str(dict(options)), ())]
        trials += [] if known else _of_relatives(world_id, options, bench)
        declared = bench.declared
        parts = (needed(trial, bench.run(trial), declared) for trial in trials)
        trials = [part for part in parts if part.changes]
        start = SEARCH_NUMBERS * sum(
            map(len, known.values())
        )  # not the situations of the last search
        trials += search(bench, min(most, tries or most), start=start)
        rows = [trial.to_json() for trial in trials]
        groups.append({"options": dict(options), "worlds": worlds, "trials": rows})
        broken = [line for lines in bench.broken().values() for line in lines]
        bench.close()
    return broken, [group for group in groups if group["trials"]]


def _of_relatives(
    world_id: str, options: Mapping[str, Any], bench: WitnessBench
) -> list[WitnessTrial]:
    """Returns the trials of the nearest id of the family, as far as they fit this world."""
    file = witness_file(world_id)
    table = json.loads(file.read_text()) if file.exists() else {}
    nearest = difflib.get_close_matches(world_id, [n for n in table if n != world_id], 1, 0.0)
    groups = [g for n in nearest for g in table[n] if g["options"] == dict(options)]
    trials = [WitnessTrial.from_json(data) for g in groups for data in g["trials"]]
    shape = np.shape(some_action(bench.world, 0, 0))
    fitting = [t for t in trials if all(np.shape(a) == shape for a in t.actions)]
    fitting = [t for t in fitting if all(_fits(m, bench) for kind, m in t.before if kind == "do")]
    return [replace(t, changes=[c for c in t.changes if _fits(c.do, bench)]) for t in fitting]


def _fits(values: Mapping[str, Any], bench: WitnessBench) -> bool:
    declared = bench.world.variables
    return all(
        name in declared and (value is None or np.shape(value) == declared[name].shape)
        for name, value in values.items()
    )


def _write(world_id: str, groups: list[Any]) -> None:
    """Stores the groups of an id: one line per trial, so that a change reads well."""
    file = witness_file(world_id)
    table = json.loads(file.read_text()) if file.exists() else {}
    table[world_id] = groups
    rows = [f' "{name}": [{", ".join(map(_text, table[name]))}]' for name in sorted(table)]
    file.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _text(group: Mapping[str, Any]) -> str:
    head = json.dumps({key: part for key, part in group.items() if key != "trials"})[1:-1]
    trials = ",\n".join(f"  {json.dumps(trial)}" for trial in group["trials"])
    return f'{{{head}, "trials": [\n{trials}\n ]}}'


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
            lines, groups = find(world_id, fresh=asked.fresh, tries=asked.tries)
            _write(world_id, groups)
        else:
            lines = replay(world_id)
        broken += lines
        took = f"{time.process_time() - began:.1f} CPU s"
        print(f"{world_id}: {len(lines)} without ({took})", *lines, sep="\n  ", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
