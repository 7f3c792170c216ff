"""Verification of results: the hashes of their files, and a sample of episodes played again."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from interverse.core.code import code_identity, different
from interverse.core.errors import (
    FileFormatError,
    InterverseError,
    InvalidValueError,
    check_whole,
)
from interverse.core.files.atomic import file_hash
from interverse.core.files.json_text import read_json_object
from interverse.core.rng import generator
from interverse.protocols.evaluate import RESULT_FILE
from interverse.protocols.fingerprint import fingerprint, recorded_policy
from interverse.protocols.measures import select_metrics
from interverse.protocols.protocol import protocol_from
from interverse.protocols.record import RUN_FILE, read_index
from interverse.protocols.unit import ROWS, Unit, play, unit_name
from interverse.results import Results
from interverse.rollouts.policy import PolicyLike, load_policy
from interverse.rollouts.saved import CARD, policy_path
from interverse.worlds.own_code import check_trusted, own_code, trusting

_ADDRESS = ("protocol", "seed", "episode")
_MOST_SHOWN = 5


class VerificationError(InterverseError, ValueError):
    """Results that are not what was written, or not what their episodes give."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a verification; `problems` is empty where the results hold."""

    files: int
    """Files whose hashes were compared."""
    episodes: int
    """Episodes played again."""
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        done = f"{self.files} files have their hashes; {self.episodes} episodes played again"
        if not self.problems:
            return "\n".join(["VERIFIED", f"{done}, equal bit for bit", *self.notes])
        shown = list(self.problems[:_MOST_SHOWN])
        more = len(self.problems) - len(shown)
        shown += [f"and {more} more"] if more else []
        return "\n".join(["NOT VERIFIED", *shown, *self.notes])


def verify(
    folder: str | os.PathLike[str],
    *,
    policy: PolicyLike | None = None,
    episodes: int | None = 20,
    seed: int = 0,
    trust: bool = False,
) -> Verdict:
    """Returns whether a folder of `evaluate` holds what was written and what its episodes give.

    Args:
        folder: the folder that `evaluate(out=...)` wrote.
        policy: what acted; by default the name in the results, or the policy of the training run
            that they lie in. No file that results name is opened.
        episodes: how many to play again, drawn from all; None plays all of them.
        seed: of the draw.
        trust: whether to import the code that the results name for their world (MODULE:ID); without
            it such results are refused, unless it is imported already.
    """
    root = Path(folder)
    index, problems = read_index(root), []
    if not index:
        ended = "the evaluation did not end, or was tampered with"
        problems.append(f"{root} has no index of hashes: {ended}")
    for name, known in index.items():
        path = root / name
        if Path(name).is_absolute() or ".." in Path(name).parts or not path.is_file():
            problems.append(f"{name} is missing")
        elif file_hash(path) != known:
            problems.append(f"{name} was changed after it was written")
    count = len(index)
    try:
        results = Results.from_parquet(root / RESULT_FILE)
    except FileFormatError as error:
        return Verdict(files=count, episodes=0, notes=(), problems=(*problems, str(error)))
    told, table = results.provenance, results.data.to_pylist()
    with trusting(trust):  # code that the results name, for their world or a protocol's
        options = [told.get("options", {})]
        options += [said.get("options", {}) for said in told.get("protocols", {}).values()]
        for task in (told.get("task"), *results.tasks):
            for given in options:
                check_trusted(root, task, given)
    problems += _check_rows(root, told, {_address(row): row for row in table})
    actor, rows = _policy(root, results, policy), table
    if episodes is not None and episodes < len(table):
        check_whole(episodes, "episodes", 10**9)
        chosen = generator(seed=seed, name="verify").choice(len(table), episodes, replace=False)
        rows = [table[i] for i in sorted(chosen.tolist())]
    blocks: dict[tuple[str, int, int], list[dict[str, Any]]] = {}  # each is played as one unit
    for row in rows:
        if row["protocol"] in told["protocols"]:  # else `_check_rows` has told
            key = (row["protocol"], row["seed"], row["episode"] // ROWS)
            blocks.setdefault(key, []).append(row)
    # Functions of a user's own cannot be run again.
    measured = told.get("metrics", {}).items()
    metrics = select_metrics([name for name, known in measured if known[0] == f"row {name}"])
    for (protocol, number_of_seed, number), wanted in blocks.items():
        # The contacts that a row was played with, whatever would be the best here.
        contact = re.search(r"(?:^|, )contact=(\w+)", wanted[0].get("settings") or "")
        unit = Unit(
            task=wanted[0]["task"],
            options={**told["options"], **({"contact": contact[1]} if contact else {})},
            protocol=protocol_from(protocol, told["protocols"][protocol]),
            seed=number_of_seed,
            number=number,
            episodes=len(wanted),
            metrics=metrics,
        )
        numbers = np.array([row["episode"] for row in wanted], dtype=np.int64)
        for held, now in zip(wanted, play(unit, actor, numbers), strict=True):
            problems += _compare(held, now)
    # What a reader should know besides: other code than the one that scored.
    file, task = root / RUN_FILE, told.get("task")
    code = read_json_object(file).get("code", {}) if file.exists() else {}
    own = own_code(task, told.get("options", {})) if isinstance(task, str) else {}
    here = {**code_identity(), **own}
    codes = code if isinstance(code, list) else [code]
    other = sorted({name for code in codes for name in different(code, here)})
    refused = int(results.refused.sum())
    notes = [f"played with other code than the results: {', '.join(other)}"] * bool(other)
    notes += [f"{refused} episodes are refused, without a score"] * bool(refused)
    return Verdict(files=count, episodes=len(rows), notes=tuple(notes), problems=tuple(problems))


def _check_rows(
    root: Path, told: Mapping[str, Any], held: Mapping[tuple[Any, ...], Mapping[str, Any]]
) -> list[str]:
    """Returns where the table differs from its units, or has not every episode of its record."""
    problems = []
    for file in sorted((root / "units").glob("*.parquet")):
        try:
            rows = Results.from_parquet(file).data.to_pylist()
        except (FileFormatError, InvalidValueError) as error:
            problems.append(str(error))
            continue
        for row in rows:
            if _address(row) in held:  # a folder may hold more protocols than its last table
                problems += _compare(held[_address(row)], row)
    wanted = {
        (protocol, seed, episode)
        for protocol in told.get("protocols", {})
        for seed in told.get("seeds", [])
        for episode in range(told.get("episodes", 0))
    }
    if "units" in told:  # of calls with unlike protocols, seeds or numbers of episodes
        wanted = {
            address
            for address in wanted
            if address[2] % ROWS < told["units"].get(unit_name(*address[:2], address[2] // ROWS), 0)
        }
    problems += [f"{_where(row)} is missing" for row in sorted(wanted - held.keys())]
    others = sorted(held.keys() - wanted)
    return problems + [f"{_where(row)} is not of this evaluation" for row in others]


def _where(address: tuple[Any, ...]) -> str:
    return ", ".join(f"{key} {part}" for key, part in zip(_ADDRESS, address, strict=True))


def _address(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _ADDRESS)


def policy_of_run(root: Path) -> Path | None:
    """Returns the policy of the training run that the results lie in: safetensors and JSON."""
    found = policy_path(root.parent)
    return found if found is not None and (found / CARD).is_file() else None


def _policy(root: Path, results: Results, given: PolicyLike | None) -> PolicyLike:
    run = (results.provenance.get("runs") or [{}])[0]
    policy = given if given is not None else recorded_policy(run) or policy_of_run(root)
    if policy is None:
        raise InvalidValueError(
            f"the results do not hold their policy, {results.experiments[0]}",
            fix="Pass it: interverse verify FOLDER --policy PATH",
        )
    known, mine = run.get("policy"), {fingerprint(policy)}
    if (path := policy_path(policy)) is not None:
        mine.add(fingerprint(load_policy(path)))  # it may have been scored once loaded
    mine.discard(None)
    if known is not None and mine and known not in mine:
        raise VerificationError(f"the policy {policy} is another one than was scored")
    return policy


def _compare(held: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns the columns in which two rows of one episode differ in any bit."""
    skipped = ("experiment", "step")
    names = [n for n in held if n not in skipped and (n in now or held[n] is not None)]
    found = []
    for name in names:
        one, other = held[name], now.get(name)
        if name.startswith("score:") and name not in now:
            continue  # a metric of the user's own
        if one != other and not (one is None and other != other):  # NaN is kept as null
            found.append(f"{name} of {_where(_address(held))} is {one}, its episode gives {other}")
    return found
