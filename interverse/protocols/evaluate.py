"""`iv.evaluate`: policies x protocols x seeds, in units that any number of workers may share."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from interverse.actors.actor import matching
from interverse.core.code import code_identity, stamp
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    check_whole,
    explain,
)
from interverse.core.files.atomic import remove_stale, write_json
from interverse.core.files.json_text import plain
from interverse.core.rng import Noise, check_seed
from interverse.core.type_checks import blames_types
from interverse.envs import WorldEnv, make
from interverse.envs.values import to_numpy
from interverse.protocols import record
from interverse.protocols.measures import (
    Metric,
    MetricLike,
    check_told,
    is_registered,
    select_metrics,
)
from interverse.protocols.protocol import Protocol, Selection, check_unset, select_protocols
from interverse.protocols.record import RUN_FILE, Request, add_to_index, check_indexed, write_index
from interverse.protocols.unit import ROWS, Unit, play, run_unit
from interverse.results import Results
from interverse.results.provenance import command, versions
from interverse.rollouts.executors import run_units, sendable
from interverse.rollouts.policy import PolicyLike, as_policy, uniform_action
from interverse.rollouts.policy_world import (
    check_task,
    policy_world,
    training_notes,
    unrecorded_note,
)
from interverse.rollouts.saved import pack_policy
from interverse.scm.space import Choice, Space
from interverse.scm.variable import Variable
from interverse.worlds.own_code import own_code
from interverse.worlds.world import engine_of, resolved_options

_LOG = logging.getLogger(__name__)
MOST_EPISODES = 2_000_000  # episodes of one call
RESULT_FILE = "results.parquet"
EVALUATION_FILE = "evaluation.parquet"  # of a training run, one step a checkpoint
COMMAND_FILE = "command.json"  # apart from the table: how it was asked for changes no score


@final
@dataclass(frozen=True, kw_only=True)
class _Plan:
    units: tuple[Unit, ...]
    folder: Path | None
    identity: Mapping[str, Any]
    provenance: Mapping[str, Any]

    def file(self, unit: Unit) -> Path | None:
        return None if self.folder is None else self.folder / "units" / f"{unit.name}.parquet"


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
    counts = {"episodes": episodes, "workers": workers, "seeds": len(tested)}
    _check_counts(protocols=len(chosen), **counts)
    check_unset(chosen, options)
    for protocol in chosen:
        trained.with_options(protocol.options)  # one that turns the interface is no test of it
    policy, options = trained.policy, trained.for_tests().with_options(options)
    about, engine, resolved = _check_world(task, options, chosen, policy, measured)
    about_policy = training_notes(policy, task, asked, engine, tested)
    for note in (*about_policy, *about.get("notes", ())):
        if note:
            Console(stderr=True).print(note, soft_wrap=True, markup=False)
    request = Request(
        task=task,
        options=options,
        protocols=chosen,
        episodes=int(episodes),
        seeds=tested,
        label=experiment or policy_name(policy),
        policy=policy,
        metrics=measured,
        engine=engine,
        policy_version=version,
    )
    plan = _plan(request, None if out is None else Path(out), about, resolved)
    held: dict[str, _Held] = {}
    folder = plan.folder
    if folder is not None:
        codes = stamp(folder / RUN_FILE, plan.identity, "evaluation", free=("version",))
        if len(codes) > 1:
            plan = replace(plan, provenance={**plan.provenance, "earlier_code": codes[:-1]})
        remove_stale(folder)
        remove_stale(folder / "units")
        held = _held_units(folder)
        if held and not record.is_known(plan.identity):
            _check_same(request, held)
    rows = _collect(plan, held, policy, int(workers), cluster, progress=progress)
    results = Results.from_rows(rows, plan.provenance).named(request.label)
    if folder is not None:
        _table(plan, folder, request.label).to_parquet(folder / RESULT_FILE)
        write_json(folder / COMMAND_FILE, {"command": command()})
        write_index(folder)
    return replace(results, provenance={**results.provenance, "command": command()})


def _seeds(first: int, given: int | Sequence[int]) -> Sequence[int]:
    """Returns the seeds that are meant: so many from the first one on, or those of a list."""
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        chosen = [check_seed(seed, name="seeds") for seed in given]
        if first != 0 or not chosen or len(set(chosen)) < len(chosen):
            raise InvalidValueError(
                explain(
                    f"seeds is {list(given)!r} and seed {first!r}",
                    allowed="a list of different seeds and no seed, or how many from seed on",
                )
            )
        return chosen
    check_whole(given, "seeds", MOST_EPISODES)
    return range(check_seed(first), check_seed(first) + int(given))


def _check_counts(*, protocols: int, **counts: int) -> None:
    """Raises unless the numbers are whole, from 1, and an evaluation that can end."""
    for name, count in counts.items():
        check_whole(count, name, MOST_EPISODES)
    total = counts["episodes"] * counts["seeds"] * protocols
    if total > MOST_EPISODES:
        raise InvalidValueError(
            explain(
                f"{counts['episodes']} episodes x {counts['seeds']} seeds x {protocols} protocols "
                f"are {total:,} episodes",
                allowed=f"at most {MOST_EPISODES:,} in one call",
            )
        )


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
    for settings in _distinct([{**options, **protocol.options} for protocol in chosen]):
        env = make(task, **settings)
        try:
            env.reset(seed=0)
            if own_code(task, settings):
                _check_own(env)
            as_policy(policy, env.world)
            check_task(policy, task, env.world)
            for protocol in chosen:
                protocol.check(env.driver)
                notes[protocol.late_note(env.world.max_steps)] = None
            notes[unrecorded_note(policy, env.world)] = None
            for metric in metrics:
                _check_names(metric, env.driver.world.variables)
                if is_registered(metric):
                    check_told(metric.name, task, env.driver.world.score().info)
            about |= {n: _ranges(v) for n, v in env.variables.items() if v.space_a is not None}
            about |= {n: {"listed": True} for protocol in chosen for n in protocol.grid}
            ends.append(env.world.return_range)
            engine |= engine_of(env.world)
            for protocol in chosen:
                if plain({**options, **protocol.options}) == plain(settings):
                    notes[_unseen_note(protocol, env)] = None
                    resolved[protocol.name] = resolved_options(engine_of(env.world))
        finally:
            env.close()
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    known = math.isfinite(low) and math.isfinite(high) and low < high
    ranges: dict[str, Any] = {task: {"return": [low, high]}} if known else {}
    for metric in metrics:
        if metric.range is not None:
            ranges.setdefault(task, {})[metric.name] = list(metric.range)
    better = {metric.name: metric.better for metric in metrics if metric.better != "more"}
    said: dict[str, Any] = {"notes": told} if (told := [note for note in notes if note]) else {}
    said |= {"better": better} if better else {}
    return {"variables": about, "ranges": ranges, **said}, engine, resolved


def _unseen_note(protocol: Protocol, env: WorldEnv) -> str:
    """Returns the line that says that a protocol changes what no policy is shown; empty if not.

    Looks move nothing, so where observations stay as they were, scores do too.
    """
    if protocol.everything is not None or not protocol.variables:
        return ""
    kinds = {env.variables[name].kind for name in matching(env.variables, protocol.variables)}
    if kinds != {"appearance"}:
        return ""
    env.reset(seed=0)
    before = copy.deepcopy(env.world.observe())
    protocol.apply(env.driver, np.arange(1))
    if not _alike(before, env.world.observe()):
        return ""
    return (
        f"Protocol {protocol.name} changes looks alone, and observations show none: its scores are"
        " those of the episodes as they are, and say nothing of looks."
    )


def _check_own(env: WorldEnv) -> None:
    """Raises where a world of one's own breaks what a score takes for granted; takes one step."""
    world, told = env.world, []
    asked = world.options.max_steps
    if asked is not None and world.max_steps > asked:
        told.append(f"max_steps is {world.max_steps}, and the option asks for {asked}")
    first = world.observe()
    before = copy.deepcopy(first)
    noise = Noise(env.driver.seeds, env.driver.episodes, env.driver.steps + 1)
    action = uniform_action(env.action_space, noise)[0]
    env.step(action)
    if not _alike(first, before):
        told.append("observe() returns its buffer, so earlier observations change: return a copy")
    score = world.score()
    if to_numpy(score.terminated).dtype.kind != "b":
        told.append("terminated is no array of bool")
    for name in {"success", "fractional_success"} & score.info.keys():
        value = to_numpy(score.info[name]).astype(float)
        if not np.all((value >= 0) & (value <= 1)):
            told.append(f"{name} is {value.max():g}, beyond 0 to 1")
    for name, variable in env.variables.items():  # their spaces are as they are now
        domain = variable.domain
        for space in (variable.space_a, variable.space_b):
            if isinstance(space, Space) and not (
                np.all(space.low >= domain.low) and np.all(space.high <= domain.high)
            ):
                told.append(f"a space of {name} reaches beyond its domain")
    env.reset(seed=0)
    if told:
        raise InvalidValueError(
            explain(
                f"{env.driver.id} breaks what scores rest on: {'; '.join(told)}",
                fix="`interverse check ID` tries all that a world promises",
            )
        )


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return all(_alike(one[name], other[name]) for name in one)
    return np.array_equal(to_numpy(one), to_numpy(other), equal_nan=to_numpy(one).dtype.kind == "f")


def _check_names(metric: Metric, variables: Mapping[str, Variable]) -> None:
    for name in metric.values:
        check_name(f"variable of metric {metric.name}", name, variables)


def _distinct(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told = [plain(item) for item in given]  # arrays cannot be compared as they are
    return [item for i, item in enumerate(given) if told[i] not in told[:i]]


def _ranges(variable: Variable) -> dict[str, Any]:
    out: dict[str, Any] = {"unit": variable.unit}
    for name in ("space_a", "space_b"):
        space = getattr(variable, name)
        if space is not None:
            out[name] = [space.low.tolist(), space.high.tolist()]
        if isinstance(space, Choice):
            out[name.replace("space", "options")] = list(space.options)
    return out


def _plan(
    request: Request,
    folder: Path | None,
    about: Mapping[str, Any],
    resolved: Mapping[str, Mapping[str, Any]],
) -> _Plan:
    units = tuple(
        Unit(
            task=request.task,
            options={**request.options, **resolved[protocol.name]},
            protocol=protocol,
            seed=seed,
            number=number,
            episodes=min(ROWS, request.episodes - number * ROWS),
            metrics=request.metrics,
        )
        for protocol in request.protocols
        for seed in request.seeds
        for number in range(-(-request.episodes // ROWS))
    )
    identity = record.identity(request)
    provenance = {
        **identity,
        "episodes": request.episodes,
        "seeds": list(request.seeds),
        "versions": {**versions(), **_solver(request.engine)},
        "code": {**code_identity(), **identity.get("code", {})},
        "protocols": {p.name: record.describe(p) for p in request.protocols},
        **about,
        "runs": [record.run(request, identity)],
    }
    return _Plan(units=units, folder=folder, identity=identity, provenance=provenance)


def _solver(engine: Mapping[str, str]) -> dict[str, str]:
    """Returns which binary solved exact contacts."""
    if engine.get("contact") != "exact":
        return {}
    from interverse.sim import coulomb  # loads MuJoCo

    return {"friction solver": coulomb.solver_hash()}


def _collect(
    plan: _Plan,
    held: Mapping[str, _Held],
    policy: PolicyLike,
    workers: int,
    cluster: str | None,
    *,
    progress: bool,
) -> list[dict[str, Any]]:
    """Runs what is missing and returns the rows that were asked for, in the plan's order."""
    done: dict[str, list[dict[str, Any]]] = {}
    missing = []
    for unit in plan.units:
        known = held.get(unit.name)
        same = known is not None and known.identity == _identity(unit)
        if known is not None and same and len(known.rows) >= unit.episodes:
            done[unit.name] = known.rows[: unit.episodes]
        else:
            missing.append(unit)
    # Asks for a twin in the first unit whose episodes start differently, for 2% of the steps.
    if missing:
        drawing = (i for i, u in enumerate(missing) if u.protocol.draws or u.protocol.grid)
        chosen = next(drawing, 0)
        missing[chosen] = replace(missing[chosen], again=min(1.0, len(missing) / 50))
    finished = closing(_run(missing, policy, workers, cluster))
    with _bar(len(plan.units), len(done), show=progress) as advance, finished as pairs:
        for unit, rows in pairs:
            file = plan.file(unit)
            if file is not None:
                told = {"unit": _identity(unit), "protocol": record.describe(unit.protocol)}
                Results.from_rows(rows, told).to_parquet(file)
                add_to_index(file)
            done[unit.name] = rows
            advance()
    return [row for unit in plan.units for row in done[unit.name]]


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


def _check_same(request: Request, held: Mapping[str, _Held]) -> None:
    """Raises unless a policy or metric without an identity gives what the folder holds.

    One episode is played again: the last of the first unit that says its protocol.
    """
    for unit in held.values():
        if unit.protocol is None or not unit.rows:
            continue
        row = unit.rows[-1]
        again = Unit(
            task=request.task,
            options=request.options,
            protocol=record.protocol_from(row["protocol"], unit.protocol),
            seed=row["seed"],
            number=row["episode"] // ROWS,
            episodes=1,
            metrics=request.metrics,
        )
        (now,) = play(again, request.policy, np.array([row["episode"]]))
        if all(now.get(name) == value for name, value in row.items()):
            return
        break
    raise InvalidValueError(
        explain(
            "the folder holds an evaluation that is not this one: the policy or a metric is a"
            " callable whose content cannot be hashed, and an episode played again came out"
            " otherwise",
            allowed="the policy that the folder holds, a saved policy, or a version",
            fix="Choose a new folder, or pass version='...' in every call and change it whenever"
            " the policy changes",
        )
    )


def _table(plan: _Plan, folder: Path, label: str) -> Results:
    """Returns all units of the folder as one table, those of this call first."""
    held = _held_units(folder)
    described = dict(plan.provenance["protocols"])
    wanted = [unit.name for unit in plan.units]
    others = [n for n, unit in held.items() if n not in wanted and unit.protocol is not None]
    for name in others:
        protocol = held[name].rows[0]["protocol"]
        if described.setdefault(protocol, held[name].protocol) != held[name].protocol:
            _LOG.warning("%s is of another protocol of that name, and not in the table", name)
    others = [n for n in others if described[held[n].rows[0]["protocol"]] == held[n].protocol]
    rows = [row for name in (*wanted, *others) for row in held[name].rows]
    provenance = {**plan.provenance, "protocols": described}
    if len(rows) != sum(unit.episodes for unit in plan.units):  # more than this call asked for
        provenance["seeds"] = sorted({row["seed"] for row in rows})
        provenance["episodes"] = max(row["episode"] for row in rows) + 1
        provenance["units"] = {name: len(held[name].rows) for name in (*wanted, *others)}
    return Results.from_rows(rows, provenance).named(label)


def _identity(unit: Unit) -> str:
    """A hash of what the unit's protocol is, so that an edited protocol is run again."""
    text = json.dumps([unit.name, record.describe(unit.protocol)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _run(
    units: list[Unit], policy: PolicyLike, workers: int, cluster: str | None
) -> Generator[tuple[Unit, list[dict[str, Any]]]]:
    if cluster is not None:  # another machine may not see this one's files
        return run_units(run_unit, units, pack_policy(policy), workers=workers, cluster=cluster)
    if workers > 1 and len(units) > 1:
        sendable(policy, "the policy")
        sendable(units[0].metrics, "a metric")
    return run_units(run_unit, units, policy, workers=workers)


@contextmanager
def _bar(total: int, done: int, *, show: bool) -> Iterator[Callable[[], None]]:
    """Shows a progress bar with time left on standard error, or nothing."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not show) as progress:
        task = progress.add_task(f"units of {ROWS} episodes", total=total, completed=done)
        yield lambda: progress.advance(task)
