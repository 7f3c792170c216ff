"""`iv.evaluate`: policies x protocols x seeds, in units that any number of workers may share."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from rich.console import Console

from interverse._version import __version__
from interverse.actors.actor import matching
from interverse.core.arrays import alike
from interverse.core.code import code_identity, stamp
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    check_whole,
)
from interverse.core.files.atomic import remove_stale, write_json
from interverse.core.files.json_text import plain
from interverse.core.rng import Noise, check_seed
from interverse.core.run import Display
from interverse.core.type_checks import blames_types
from interverse.envs.build import build_world
from interverse.envs.driver import Driver
from interverse.envs.single import first as first_world
from interverse.envs.values import to_numpy
from interverse.protocols.fingerprint import fingerprint, function_hash
from interverse.protocols.measures import (
    Metric,
    MetricLike,
    check_told,
    is_registered,
    select_metrics,
)
from interverse.protocols.protocol import (
    Protocol,
    Selection,
    check_unset,
    describe,
    protocol_from,
    select_protocols,
)
from interverse.protocols.record import RUN_FILE, add_to_index, check_indexed, write_index
from interverse.protocols.unit import ROWS, Unit, play, run_unit
from interverse.results import Results
from interverse.results.provenance import command, versions
from interverse.rollouts.executors import run_units, sendable
from interverse.rollouts.policy import PolicyLike, as_policy, uniform_action
from interverse.rollouts.policy_world import (
    check_task,
    engine_note,
    policy_world,
    training_notes,
    unrecorded_note,
)
from interverse.rollouts.saved import is_named, pack_policy
from interverse.scm.space import Choice, Space
from interverse.worlds.own_code import own_code
from interverse.worlds.world import engine_of, resolved_options

_LOG = logging.getLogger(__name__)
_ONE = np.arange(1)
MOST_EPISODES = 2_000_000  # episodes of one call
RESULT_FILE = "results.parquet"
EVALUATION_FILE = "evaluation.parquet"  # of a training run, one step a checkpoint
COMMAND_FILE = "command.json"  # apart from the table: how it was asked for changes no score


@blames_types
def evaluate(
    policy: PolicyLike,
    task: str,
    protocols: Selection = "all",
    episodes: int = 200,
    seed: int = 0,
    seeds: int | Sequence[int] = 1,
    workers: int = 1,
    out: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    metrics: Sequence[MetricLike] = (),
    progress: bool = False,
    cluster: str | None = None,
    version: str | None = None,
    device: str | None = None,
    **options: Any,
) -> Results:
    """Returns the scores of a policy under protocols.

    The score of an episode depends on (task, protocol, seed, episode) alone: not on the number of
    workers, the order, or a restart. With `out`, each finished unit of 50 episodes is on disk at
    once, and a call with the same arguments goes on from there; a call with other protocols, seeds
    or episodes adds to the table. A folder holds one policy. One that cannot be told from others by
    its content (any callable that is no Torch module) plays an episode of the folder again, which
    must come out as it did; a `version` of yours says it at once.

    Args:
        policy: what acts; see `interverse.rollouts.as_policy`. A trained one brings the options of
            its world, but not those that say where it was trained (in which looks, say): a test
            says itself what it varies. `options` may change what it does not depend on.
        task: a world's id.
        protocols: "P0-P11", "P3", "all", protocols of your own, or a list of these.
        episodes: how many per protocol and seed.
        seed: the first seed; `seeds` counts on from it.
        seeds: how many seeds; or a list of them, which `seed` is then no part of.
        workers: how many units run at a time; more than one sends the policy to other
            processes.
        out: a folder for the results; None keeps them in memory.
        experiment: the name the rows carry; the policy's by default.
        metrics: further scores of an episode's steps: functions of `Steps`, `Metric`s, or names of
            `interverse.metrics.METRICS`; each is a column `score:<name>`.
        progress: whether to show a progress bar on standard error.
        cluster: a Ray cluster that runs the units, "local", "auto" or an address (see
            `docs/cluster.md`); None runs them on this machine, in `workers` processes.
        version: a name of your own for this state of the policy and of the metrics, where their
            content cannot be hashed; change it whenever what they do changes.
        device: where the worlds run, such as cuda, in worlds that run there; the CPU by default.
        **options: options of the world, as for `make`; none that a protocol sets itself.
    """
    options |= {} if device is None else {"device": device}
    trained, asked = policy_world(policy).in_task(task), options
    chosen, measured = select_protocols(task, protocols), select_metrics(metrics)
    tested = _seeds(seed, seeds)
    for name, count in {"episodes": episodes, "workers": workers, "seeds": len(tested)}.items():
        check_whole(count, name, MOST_EPISODES)
    if (total := episodes * len(tested) * len(chosen)) > MOST_EPISODES:
        asked_for = f"{episodes} episodes x {len(tested)} seeds x {len(chosen)} protocols"
        most = f"at most {MOST_EPISODES:,} in one call"
        raise InvalidValueError(f"{asked_for} are {total:,} episodes", allowed=most)
    check_unset(chosen, options)
    for protocol in chosen:
        trained.with_options(protocol.options)  # one that turns the interface is no test of it
    policy, options = trained.policy, trained.for_tests().with_options(options)
    about, engine, resolved = _check_world(task, options, chosen, policy, measured)
    if not is_named(policy):  # a policy by name has learned nothing
        _tell(*training_notes(policy, task, asked, engine, tested))
    _tell(*about.get("notes", ()))
    label = experiment or policy_name(policy)
    identity = {  # what a folder is tied to: anything else may differ between two calls
        "task": task,
        "options": plain(options),
        "experiment": label,
        "policy": fingerprint(policy),  # None where its content is unknown
        "policy_version": version,
        "engine": dict(engine),
        "version": __version__,
    }
    if code := own_code(task, options):
        identity["code"] = code
    if measured:
        identity["metrics"] = {
            m.name: [f"row {m.name}" if is_registered(m) else function_hash(m.function), *m.values]
            for m in measured
        }
    # What it takes to play an episode of these results again.
    run = {name: identity[name] for name in ("experiment", "task", "options", "policy")}
    run["source"] = os.fspath(policy) if isinstance(policy, str | os.PathLike) else None
    if trained.space != "A":
        run["training_space"] = trained.space
    if place := {n: v for n, v in trained.place.items() if options.get(n) != v}:
        run["training_place"] = plain(place)
    if engine_note(trained.engine, engine):
        run["training_engine"] = dict(trained.engine)
    provenance = {
        **identity,
        "episodes": int(episodes),
        "seeds": list(tested),
        "versions": versions(),
        "code": {**code_identity(), **code},
        "protocols": {p.name: describe(p) for p in chosen},
        **about,
        "runs": [run],
    }
    if engine.get("contact") == "exact":
        from interverse.sim import coulomb  # loads MuJoCo

        provenance["versions"] |= {"friction solver": coulomb.solver_hash()}
    units = [
        Unit(
            task=task,
            options={**options, **resolved[protocol.name]},
            protocol=protocol,
            seed=number_of_seed,
            number=number,
            episodes=min(ROWS, int(episodes) - number * ROWS),
            metrics=measured,
        )
        for protocol in chosen
        for number_of_seed in tested
        for number in range(-(-int(episodes) // ROWS))
    ]
    held: dict[str, _Held] = {}
    folder = None if out is None else Path(out)
    if folder is not None:
        codes = stamp(folder / RUN_FILE, identity, "evaluation", free=("version",))
        if len(codes) > 1:
            provenance["earlier_code"] = codes[:-1]
        remove_stale(folder)
        remove_stale(folder / "units")
        held = _held_units(folder)
        told = [identity["policy"], *(first for first, *_ in identity.get("metrics", {}).values())]
        if held and version is None and None in told:
            _check_same(units[0], options, policy, held)
    rows = _collect(units, folder, held, policy, int(workers), cluster, progress=progress)
    if note := _same_note(chosen, rows, about.get("notes", ())):
        _tell(note)
        provenance["notes"] = [*about.get("notes", ()), note]
    results = Results.from_rows(rows, provenance).named(label)
    if folder is not None:
        _table(units, folder, provenance, label).to_parquet(folder / RESULT_FILE)
        write_json(folder / COMMAND_FILE, {"command": command()})
        write_index(folder)
    return replace(results, provenance={**results.provenance, "command": command()})


def _tell(*notes: str) -> None:
    """Writes lines on standard error; an empty one is none."""
    for note in filter(None, notes):
        Console(stderr=True).print(note, soft_wrap=True, markup=False)


def _seeds(first: int, given: int | Sequence[int]) -> Sequence[int]:
    """Returns the seeds that are meant: so many from the first one on, or those of a list."""
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        chosen = [check_seed(seed, name="seeds") for seed in given]
        if first != 0 or not chosen or len(set(chosen)) < len(chosen):
            raise InvalidValueError(
                f"seeds is {list(given)!r} and seed {first!r}",
                allowed="a list of different seeds and no seed, or how many from seed on",
            )
        return chosen
    check_whole(given, "seeds", MOST_EPISODES)
    return range(check_seed(first), check_seed(first) + int(given))


def policy_name(policy: PolicyLike) -> str:
    """Returns a name for a policy: its own, its run's folder, or its class's.

    >>> policy_name("scripted")
    'scripted'
    """
    if isinstance(policy, str | os.PathLike):
        folder = Path(policy)
        if not folder.is_dir():
            return folder.stem if folder.is_file() else os.fspath(policy)
        whole = folder.resolve()
        return whole.parent.name if whole.name == "policy" else whole.name
    name = getattr(policy, "__name__", None)
    return name if isinstance(name, str) else type(policy).__name__


def _check_world(
    task: str,
    options: Mapping[str, Any],
    chosen: tuple[Protocol, ...],
    policy: PolicyLike,
    metrics: tuple[Metric, ...],
) -> tuple[dict[str, Any], dict[str, str], dict[str, dict[str, Any]]]:
    """Builds each kind of world once, so that every mistake shows before any work starts.

    Returns:
        What the record says of variables and of the range of scores by task, with notes to the
        user; the engine; and by protocol, the options of engine and contacts as they came out.
    """
    about: dict[str, Any] = {}
    notes: dict[str, None] = {}  # each once, in order
    ends: list[tuple[float, float]] = []
    engine: dict[str, str] = {}
    resolved: dict[str, dict[str, Any]] = {}
    listed = [{**options, **protocol.options} for protocol in chosen]
    told = [plain(item) for item in listed]  # arrays cannot be compared as they are
    for settings in (item for i, item in enumerate(listed) if told[i] not in told[:i]):
        world = build_world(task, 1, settings)
        driver = Driver(task, world)
        try:
            driver.reset(_ONE, seeds=[0])
            if own_code(task, settings):
                _check_own(driver)
            as_policy(policy, world)
            if not is_named(policy):
                check_task(policy, task, world)
                notes[unrecorded_note(policy, world)] = None
            for protocol in chosen:
                protocol.check(driver)
                notes[protocol.late_note(world.max_steps)] = None
            for metric in metrics:
                for name in metric.values:
                    check_name(f"variable of metric {metric.name}", name, world.variables)
                if is_registered(metric):
                    check_told(metric.name, task, world.score().info)
            for name, variable in driver.variables.items():
                if variable.space_a is not None:
                    about[name] = {"unit": variable.unit}
                    for part in ("a", "b"):
                        space = getattr(variable, f"space_{part}")
                        if space is not None:
                            about[name][f"space_{part}"] = [space.low.tolist(), space.high.tolist()]
                        if isinstance(space, Choice):
                            about[name][f"options_{part}"] = list(space.options)
            about |= {n: {"listed": True} for protocol in chosen for n in protocol.grid}
            ends.append(world.return_range)
            engine |= engine_of(world)
            for protocol in chosen:
                if plain({**options, **protocol.options}) == plain(settings):
                    notes[_unseen_note(protocol, driver)] = None
                    resolved[protocol.name] = resolved_options(engine_of(world))
        finally:
            world.close()
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    known = math.isfinite(low) and math.isfinite(high) and low < high
    spans = {"return": [low, high]} if known else {}
    spans |= {metric.name: list(metric.range) for metric in metrics if metric.range is not None}
    ranges = {task: spans} if spans else {}
    better = {metric.name: metric.better for metric in metrics if metric.better != "more"}
    said: dict[str, Any] = {"notes": told} if (told := [note for note in notes if note]) else {}
    said |= {"better": better} if better else {}
    return {"variables": about, "ranges": ranges, **said}, engine, resolved


def _unseen_note(protocol: Protocol, driver: Driver) -> str:
    """Returns the line that says that a protocol changes what no policy is shown; empty if not.

    Looks move nothing, so where observations stay as they were, scores do too.
    """
    variables, world = driver.variables, driver.world
    kinds = {variables[name].kind for name in matching(variables, protocol.variables)}
    if protocol.everything is not None or kinds != {"appearance"}:
        return ""
    driver.reset(_ONE, seeds=[0])
    before = copy.deepcopy(world.observe())
    protocol.apply(driver, _ONE)
    if not alike(before, world.observe()):
        return ""
    return (
        f"Protocol {protocol.name} changes looks alone, and observations show none: its scores are"
        " those of the episodes as they are, and say nothing of looks."
    )


def _same_note(
    chosen: tuple[Protocol, ...], rows: Sequence[Mapping[str, Any]], told: Collection[str]
) -> str:
    """Returns the line that names protocols whose episodes score as those where nothing is set."""
    scores: dict[str, dict[Any, Any]] = {}
    for row in rows:
        at = row["seed"], row["episode"]
        scores.setdefault(row["protocol"], {})[at] = (row.get("return"), row["length"])
    plain = next((p.name for p in chosen if not (p.draws or p.grid or p.options)), None)
    if plain is None or not any(gained for gained, _ in scores[plain].values()):
        return ""
    acting = [p.name for p in chosen if (p.draws or p.grid) and not p.options]
    same = [name for name in acting if scores[name] == scores[plain]]
    same = [name for name in same if not any(f"Protocol {name} changes looks" in n for n in told)]
    note = (
        f"Returns under {', '.join(same)} are those of {plain}, episode for episode, to the last"
        " digit: what is set there did nothing here."
    )
    return note if same else ""


def _check_own(driver: Driver) -> None:
    """Raises where a world of one's own breaks what a score takes for granted; takes one step."""
    world, told = driver.world, []
    asked = world.options.max_steps
    if asked is not None and world.max_steps > asked:
        told.append(f"max_steps is {world.max_steps}, and the option asks for {asked}")
    first = world.observe()
    before = copy.deepcopy(first)
    noise = Noise(driver.seeds, driver.episodes, driver.steps + 1)
    if not world.observation_space.contains(first_world(first)):
        told.append("what observe() gives lies outside observation_space, or has another type")
    score = world.score()
    for name in ("reward", "terminated"):
        if (shape := np.shape(to_numpy(getattr(score, name)))) != (1,):
            told.append(f"{name} of one world has shape {shape}, not (1,)")
    if not told:
        driver.step(uniform_action(world.action_space, noise), _ONE)
    if not alike(first, before):
        told.append("observe() returns its buffer, so earlier observations change: return a copy")
    score = world.score()
    if to_numpy(score.terminated).dtype.kind != "b":
        told.append("terminated is no array of bool")
    for name in {"success", "fractional_success"} & score.info.keys():
        value = to_numpy(score.info[name]).astype(float)
        if not np.all((value >= 0) & (value <= 1)):
            told.append(f"{name} is {value.max():g}, beyond 0 to 1")
    for name, variable in driver.variables.items():  # their spaces are as they are now
        domain = variable.domain
        for space in (variable.space_a, variable.space_b):
            if isinstance(space, Space) and not (
                np.all(space.low >= domain.low) and np.all(space.high <= domain.high)
            ):
                told.append(f"a space of {name} reaches beyond its domain")
    driver.reset(_ONE, seeds=[0])
    if told:
        raise InvalidValueError(
            f"{driver.id} breaks what scores rest on: {'; '.join(told)}",
            fix="`interverse check ID` tries all that a world promises",
        )


def _collect(
    units: list[Unit],
    folder: Path | None,
    held: Mapping[str, _Held],
    policy: PolicyLike,
    workers: int,
    cluster: str | None,
    *,
    progress: bool,
) -> list[dict[str, Any]]:
    """Runs what is missing and returns the rows that were asked for, in the units' order."""
    done: dict[str, list[dict[str, Any]]] = {}
    missing = []
    for unit in units:
        known = held.get(unit.name)
        if known and known.identity == _identity(unit) and len(known.rows) >= unit.episodes:
            done[unit.name] = known.rows[: unit.episodes]
        else:
            missing.append(unit)
    if missing:  # a twin of the first unit whose episodes start differently, for 1% of the steps
        drawing = (i for i, u in enumerate(missing) if u.protocol.draws or u.protocol.grid)
        chosen = next(drawing, 0)
        missing[chosen] = replace(missing[chosen], again=min(1.0, len(missing) / 100))
    if cluster is None and workers > 1 and len(missing) > 1:
        sendable(policy, "the policy")
        sendable(missing[0].metrics, "a metric")
    # Another machine may not see this one's files.
    sent = policy if cluster is None else pack_policy(policy)
    finished = run_units(run_unit, missing, sent, workers=workers, cluster=cluster)
    with Display(show=progress, unit="done") as display, closing(finished):
        task = display.add(f"units of {ROWS} episodes", len(units))
        display.update(task, len(done))
        for unit, rows in finished:
            if folder is not None:
                file = folder / "units" / f"{unit.name}.parquet"
                about = {"unit": _identity(unit), "protocol": describe(unit.protocol)}
                Results.from_rows(rows, about).to_parquet(file)
                add_to_index(file)
            done[unit.name] = rows
            display.update(task, len(done))
    return [row for unit in units for row in done[unit.name]]


@final
@dataclass(frozen=True, slots=True)
class _Held:
    """A unit that a folder holds: its rows, and what its protocol is, where its file says so."""

    identity: str
    rows: list[dict[str, Any]]
    protocol: Mapping[str, Any] | None


def _held_units(folder: Path) -> dict[str, _Held]:
    """Returns the whole units of a folder by name; a torn or edited one is left to be played."""
    found = {}
    for file in sorted((folder / "units").glob("*.parquet")):
        try:
            check_indexed(file)
            held = Results.from_parquet(file)
        except (FileFormatError, InvalidValueError) as error:
            _LOG.warning("%s is played again: %s", file, error)
            continue
        rows = held.data.drop_columns(["experiment", "step"]).to_pylist()
        rows = [{k: v for k, v in row.items() if v is not None} for row in rows]
        told = held.provenance
        found[file.stem] = _Held(str(told.get("unit")), rows, told.get("protocol"))
    return found


def _check_same(
    asked: Unit, options: Mapping[str, Any], policy: PolicyLike, held: Mapping[str, _Held]
) -> None:
    """Raises unless a policy or metric without an identity gives what the folder holds.

    One episode is played again: the last of the first unit that says its protocol.
    """
    for unit in held.values():
        if unit.protocol is None or not unit.rows:
            continue
        row = unit.rows[-1]
        again = replace(
            asked,
            options=options,
            protocol=protocol_from(row["protocol"], unit.protocol),
            seed=row["seed"],
            number=row["episode"] // ROWS,
            episodes=1,
        )
        (now,) = play(again, policy, np.array([row["episode"]]))
        if all(now.get(name) == value for name, value in row.items()):
            return
        break
    raise InvalidValueError(
        "the folder holds an evaluation that is not this one: the policy or a metric is a"
        " callable whose content cannot be hashed, and an episode played again came out"
        " otherwise",
        allowed="the policy that the folder holds, a saved policy, or a version",
        fix="Choose a new folder, or pass version='...' in every call and change it whenever"
        " the policy changes",
    )


def _table(units: list[Unit], folder: Path, provenance: Mapping[str, Any], label: str) -> Results:
    """Returns all units of the folder as one table, those of this call first."""
    held = _held_units(folder)
    described = dict(provenance["protocols"])
    wanted = [unit.name for unit in units]
    others = [n for n, unit in held.items() if n not in wanted and unit.protocol is not None]
    for name in others:
        protocol = held[name].rows[0]["protocol"]
        if described.setdefault(protocol, held[name].protocol) != held[name].protocol:
            _LOG.warning("%s is of another protocol of that name, and not in the table", name)
    others = [n for n in others if described[held[n].rows[0]["protocol"]] == held[n].protocol]
    rows = [row for name in (*wanted, *others) for row in held[name].rows]
    provenance = {**provenance, "protocols": described}
    if len(rows) != sum(unit.episodes for unit in units):  # more than this call asked for
        provenance["seeds"] = sorted({row["seed"] for row in rows})
        provenance["episodes"] = max(row["episode"] for row in rows) + 1
        provenance["units"] = {name: len(held[name].rows) for name in (*wanted, *others)}
    return Results.from_rows(rows, provenance).named(label)


def _identity(unit: Unit) -> str:
    """A hash of what the unit's protocol is, so that an edited protocol is run again."""
    text = json.dumps([unit.name, describe(unit.protocol)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
