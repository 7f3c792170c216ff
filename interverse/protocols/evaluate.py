"""`iv.evaluate`: policies x protocols x seeds, in units that any number of workers may share."""

from __future__ import annotations

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

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from interverse.core.code import code_identity
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    check_whole,
    explain,
)
from interverse.core.files.atomic import remove_stale, write_json
from interverse.core.files.json_text import plain
from interverse.core.rng import check_seed
from interverse.core.type_checks import blames_types
from interverse.envs import make
from interverse.protocols import record
from interverse.protocols.folder import add_to_index, check_indexed, claim, write_index
from interverse.protocols.measures import (
    Metric,
    MetricLike,
    check_told,
    is_registered,
    select_metrics,
)
from interverse.protocols.protocol import Protocol
from interverse.protocols.record import Request
from interverse.protocols.select import Selection, check_unset, select_protocols
from interverse.protocols.unit import ROWS, Unit, run_unit
from interverse.results import Results
from interverse.results.provenance import command, versions
from interverse.rollouts.executors import run_units, sendable
from interverse.rollouts.policy import (
    PolicyLike,
    as_policy,
    engine_note,
    seen_note,
    space_note,
    training_engine,
    training_space,
)
from interverse.rollouts.policy_files import pack_policy
from interverse.rollouts.policy_world import (
    check_task,
    defaults_note,
    place_note,
    policy_world,
    task_note,
    unrecorded_note,
)
from interverse.scm.space import Choice
from interverse.scm.variable import Variable
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
    seeds: int = 1,
    workers: int = 1,
    out: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    metrics: Sequence[MetricLike] = (),
    progress: bool = False,
    cluster: str | None = None,
    version: str | None = None,
    allow_other_code: bool = False,
    device: str | None = None,
    **options: Any,
) -> Results:
    """Returns the scores of a policy under protocols.

    The score of an episode depends on (task, protocol, seed, episode) alone: not on the number of
    workers, the order, or a restart. With `out`, each finished unit of 50 episodes is on disk at
    once, and a call with the same arguments goes on from there. A folder holds one policy: one that
    cannot be told from others by its content (any callable that is no Torch module) needs a
    `version`, or a folder of its own every time.

    Args:
        policy: what acts; see `interverse.rollouts.as_policy`. A trained one brings the options of
            its world, but not those that say where it was trained (in which looks, say): a test
            says itself what it varies. `options` may change what it does not depend on.
        task: a world's id.
        protocols: "P0-P11", "P3", "all", protocols of your own, or a list of these.
        episodes: how many per protocol and seed.
        seed: the first seed; `seeds` counts on from it.
        seeds: how many seeds.
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
        allow_other_code: go on with a folder that other code or libraries began.
        device: where the worlds run, such as cuda, in worlds that run there; the CPU by default.
        **options: options of the world, as for `make`; none that a protocol sets itself.
    """
    options |= {} if device is None else {"device": device}
    trained = policy_world(policy).in_task(task)
    left_out = {name: v for name, v in trained.place.items() if name not in options}
    place = place_note(left_out), defaults_note(trained.options, options)
    chosen, measured = select_protocols(task, protocols), select_metrics(metrics)
    _check_counts(episodes=episodes, seeds=seeds, workers=workers, protocols=len(chosen))
    check_unset(chosen, options)
    for protocol in chosen:
        trained.with_options(protocol.options)  # one that turns the interface is no test of it
    first = check_seed(seed)
    tested = range(first, first + int(seeds))
    policy, options = trained.policy, trained.for_tests().with_options(options)
    about, engine, resolved = _check_world(task, options, chosen, policy, measured)
    trained_on = space_note(training_space(policy)), engine_note(training_engine(policy), engine)
    about_policy = (task_note(policy, task), *place, *trained_on, seen_note(policy, tested))
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
    if plan.folder is not None:
        claim(plan.folder, plan.identity, allow_other_code=allow_other_code)
        remove_stale(plan.folder)
        remove_stale(plan.folder / "units")
    rows = _collect(plan, policy, int(workers), cluster, progress=progress)
    results = Results.from_rows(rows, plan.provenance).named(request.label)
    if plan.folder is not None:
        results.to_parquet(plan.folder / RESULT_FILE)
        write_json(plan.folder / COMMAND_FILE, {"command": command()})
        write_index(plan.folder)
    return replace(results, provenance={**results.provenance, "command": command()})


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
                    resolved[protocol.name] = resolved_options(engine_of(env.world))
        finally:
            env.close()
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    known = math.isfinite(low) and math.isfinite(high) and low < high
    ranges = {task: {"return": [low, high]}} if known else {}
    said = {"notes": told} if (told := [note for note in notes if note]) else {}
    return {"variables": about, "ranges": ranges, **said}, engine, resolved


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
    plan: _Plan, policy: PolicyLike, workers: int, cluster: str | None, *, progress: bool
) -> list[dict[str, Any]]:
    """Runs what is missing and returns all rows, in the plan's order."""
    done: dict[str, list[dict[str, Any]]] = {}
    missing = []
    for unit in plan.units:
        rows = _read(plan.file(unit), unit)
        if rows is None:
            missing.append(unit)
        else:
            done[unit.name] = rows
    _play_one_again(missing)
    finished = closing(_run(missing, policy, workers, cluster))
    with _bar(len(plan.units), len(done), show=progress) as advance, finished as pairs:
        for unit, rows in pairs:
            file = plan.file(unit)
            if file is not None:
                Results.from_rows(rows, {"unit": _identity(unit)}).to_parquet(file)
                add_to_index(file)
            done[unit.name] = rows
            advance()
    return [row for unit in plan.units for row in done[unit.name]]


def _play_one_again(missing: list[Unit]) -> None:
    """Asks for a twin in the first unit whose episodes start differently, for 2% of the steps."""
    if missing:
        drawing = (i for i, u in enumerate(missing) if u.protocol.draws or u.protocol.grid)
        chosen = next(drawing, 0)
        missing[chosen] = replace(missing[chosen], again=min(1.0, len(missing) / 50))


def _identity(unit: Unit) -> str:
    """A hash of what the unit's protocol is, so that an edited protocol is run again."""
    text = json.dumps([unit.name, record.describe(unit.protocol), unit.episodes], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _read(file: Path | None, unit: Unit) -> list[dict[str, Any]] | None:
    if file is None or not file.exists():
        return None
    try:
        check_indexed(file)
        held = Results.from_parquet(file)
    except (FileFormatError, InvalidValueError) as error:
        _LOG.warning("%s is played again: %s", file, error)
        return None  # a torn, edited or foreign unit is simply run again
    if held.provenance.get("unit") != _identity(unit):
        return None
    rows = held.data.drop_columns(["experiment", "step"]).to_pylist()
    return [{k: v for k, v in row.items() if v is not None} for row in rows]


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
