"""Results: one tidy table of episodes with what made it.

A row is an episode. Its columns are fixed: those of `schema.CONTRACT`, then `experiment` (what was
evaluated), `step` (training steps behind the policy), `solved` (1 where the last fraction
is above .9), `trace` (equal in episodes that are the same step for step: they make intervals wider)
and `settings` (options and engine), then `score:<metric>` for further scores
and `value:<variable>` for the values intervened on, `value:<variable>@<step>` where a protocol acts
more than once in an episode. What a world lacks is null. A refused episode is a row with a reason
and without a score.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name, explain, missing_extra
from interverse.core.type_checks import blames_types
from interverse.results import tables
from interverse.results.provenance import check_poolable, told_apart
from interverse.results.schema import SCORES, checked, is_score, read_table, write_table
from interverse.results.text import split_step

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Scored and refused episodes of any number of experiments, tasks and protocols.

    Attributes:
        data: the table, as an Arrow table; columns are checked, completed and ordered.
        provenance: what made it, as JSON. Reports know these keys and print any other: `command`
            (a string); `versions`: name -> version; `protocols`: name -> {"variables": {pattern:
            space}} or {"variables": [patterns], "space": space}; `variables`: name -> {"unit",
            "space_a": [low, high], "space_b": [low, high]}; `ranges`: task -> {score: [low, high]},
            the range a score can have; `runs`: a list of {"experiment",
            "task", "options", "policy", "source"}, enough to play an episode again.

    >>> row = {"task": "trifinger/pushing-v1", "protocol": "P0", "seed": 0}
    >>> results = Results.from_rows([
    ...     row | {"episode": 0, "last_fractional_success": 0.75},
    ...     row | {"episode": 1, "refused": True, "reason": "block_0 would touch finger_1"},
    ... ])
    >>> results
    Results(2 episodes, 1 refused; 1 experiment, 1 task, 1 protocol)
    >>> results.scores("last_fractional_success").tolist()
    [0.75, nan]
    """

    data: pa.Table = field(default_factory=lambda: pa.table({}))
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            told = json.loads(json.dumps(dict(self.provenance), sort_keys=True, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InvalidValueError(
                f"provenance cannot be written as JSON: {error}", allowed="JSON values"
            ) from None
        object.__setattr__(self, "data", checked(self.data))
        object.__setattr__(self, "provenance", told)

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[str, Any]], provenance: Mapping[str, Any] | None = None
    ) -> Results:
        """Returns the results of rows given as mappings; absent entries are null."""
        listed = list(rows)
        names = dict.fromkeys(name for row in listed for name in row)
        try:
            columns = {name: pa.array([row.get(name) for row in listed]) for name in names}
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidValueError(explain(f"the rows do not form a table: {error}")) from None
        return cls(data=pa.table(columns), provenance=provenance or {})

    @classmethod
    @blames_types
    def from_parquet(cls, path: str | Path, *, any_version: bool = False) -> Results:
        """Returns the results in a file that `to_parquet` wrote.

        Args:
            path: the file.
            any_version: read results of another package version too. Scores of two versions need
                not be comparable, so this is refused unless asked for.

        Raises:
            FileFormatError: the file is truncated, is not a results file, or is of another version.
        """
        data, provenance = read_table(Path(path), any_version=any_version)
        return cls(data=data, provenance=provenance)

    @staticmethod
    def concat(parts: Iterable[Results]) -> Results:
        """Returns the rows of several results as one; the same episode twice is an error.

        So are runs of one experiment in one task with unlike options, engine or protocols of one
        name: their mean would be of no test.
        """
        given = list(parts)
        if not given:
            return Results()
        try:
            data = pa.concat_tables([part.data for part in given], promote_options="default")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidValueError(
                f"the results do not fit together: {error}", fix="Report them apart"
            ) from None
        tested = [set(tables.groups(part)) for part in given]
        joined = _joined(told_apart([part.provenance for part in given], tested))
        check_poolable(joined)
        return Results(data=data, provenance=joined)

    @blames_types
    def to_parquet(self, path: str | Path) -> Path:
        """Writes the table with its provenance, whole or not at all, and returns the path."""
        return write_table(self.data, self.provenance, Path(path))

    def to_pandas(self) -> pd.DataFrame:
        """Returns the table as a pandas DataFrame."""
        try:
            return self.data.to_pandas()
        except ImportError:
            raise missing_extra("pandas", "report") from None

    @blames_types
    def table(
        self,
        format: tables.Format = "rich",
        *,
        metrics: Sequence[str] | None = None,
        unit: tables.Unit | None = None,
    ) -> tables.Text:
        """Returns the mean of each metric per experiment, task and protocol, as text.

        Args:
            format: "rich" (for a terminal), "markdown", "latex" (booktabs) or "csv".
            metrics: which scores, or the name of one; all that the results hold by default.
            unit: what the 95% intervals are over: "episode" (these policies, other episodes) or
                "seed" (other trainings; needs several). By default seeds for each experiment that
                has several trainings, episodes for one policy.
        """
        return tables.scores(self, metrics=metrics, unit=unit).render(format)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __repr__(self) -> str:
        told = {"experiment": self.experiments, "task": self.tasks, "protocol": self.protocols}
        counts = {"episode": len(self), **{word: len(names) for word, names in told.items()}}
        episodes, *parts = [f"{n} {word}{'' if n == 1 else 's'}" for word, n in counts.items()]
        return f"Results({episodes}, {int(self.refused.sum())} refused; {', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Shows the primary score in a notebook; `table()` has all of them."""
        return tables.scores(self, metrics=tables.brief_metrics(self))._repr_html_()

    @property
    def experiments(self) -> list[str]:
        """Returns the experiments' names, in order of appearance."""
        return pc.unique(self.data["experiment"]).to_pylist()

    @property
    def tasks(self) -> list[str]:
        """Returns the tasks' ids, in order of appearance."""
        return pc.unique(self.data["task"]).to_pylist()

    @property
    def protocols(self) -> list[str]:
        """Returns the protocols' names, P2 before P10."""

        def by_number(name: str) -> list[tuple[bool, int, str]]:
            parts = re.split(r"(\d+)", name)
            return [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]

        return sorted(pc.unique(self.data["protocol"]).to_pylist(), key=by_number)

    @property
    def metrics(self) -> list[str]:
        """Returns the scores that at least one episode has; names come without `score:`."""
        columns = [*SCORES, *sorted(n for n in self.data.column_names if n.startswith("score:"))]
        held = [n for n in columns if self.data[n].null_count < len(self)]
        return [name.removeprefix("score:") for name in held]

    @property
    def variables(self) -> list[str]:
        """Returns the variables that were intervened on in at least one episode."""
        names = (n for n in self.data.column_names if n.startswith("value:"))
        return [n.removeprefix("value:") for n in names if self.data[n].null_count < len(self)]

    @property
    def refused(self) -> NDArray[np.bool_]:
        """Returns (row,): True where the episode's intervention was refused."""
        return self.column("refused").astype(bool)

    def column(self, name: str) -> NDArray[Any]:
        """Returns one column as an array; nulls become NaN or None."""
        check_name("column", name, self.data.column_names)
        return self.data[name].to_numpy(zero_copy_only=False)

    def scores(self, metric: str) -> NDArray[np.float64]:
        """Returns (row,) one metric's scores; NaN where refused or missing."""
        names = [n.removeprefix("score:") for n in self.data.column_names if is_score(n)]
        check_name("metric", metric, names)
        column = metric if metric in SCORES else f"score:{metric}"
        return np.where(self.refused, np.nan, self.column(column).astype(np.float64))

    def values(self, variable: str) -> NDArray[np.float64]:
        """Returns (row, component) the values a variable was set to; NaN where it was not."""
        names = [n.removeprefix("value:") for n in self.data.column_names if n.startswith("value:")]
        check_name("variable", variable, names)
        given = self.data[f"value:{variable}"].to_pylist()
        rows = [v if isinstance(v, list) else [v] for v in given]
        width = max((len(row) for row in rows), default=1)
        filled = [row + [None] * (width - len(row)) for row in rows]
        return np.array(filled, dtype=np.float64).reshape(len(rows), width)

    def about(self, variable: str) -> dict[str, Any]:
        """Returns what the provenance says of a variable: unit and spaces, or that it is listed.

        A column such as `box/mass@20`, the value set before action 20, is the variable's.
        """
        return dict(self.provenance.get("variables", {}).get(split_step(variable)[0], {}))

    def select(self, **equal: str | int | Sequence[str | int]) -> Results:
        """Returns the rows whose columns equal a value, or one of a list.

        `select(protocol="P3")`, `select(protocol=["P3", "P5"], seed=0)`.
        """
        data = self.data
        for name, value in equal.items():
            self.column(name)  # an unknown name gets a proper error
            try:
                if isinstance(value, Collection) and not isinstance(value, str):
                    wanted = pa.array(list(value), data[name].type)
                    data = data.filter(pc.is_in(data[name], wanted))
                else:
                    data = data.filter(pc.equal(data[name], value))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                told = f"{name} is {value!r}, and the column holds {data[name].type}"
                raise InvalidValueError(explain(told)) from None
        return replace(self, data=data)

    def final(self) -> Results:
        """Returns the rows of each seed's last training step, per experiment and task."""
        steps = self.column("step").astype(np.float64)
        steps = np.where(np.isnan(steps), -1, steps)
        names = ("experiment", "task", "seed")
        keys = list(zip(*(self.data[name].to_pylist() for name in names), strict=True))
        last: dict[tuple[Any, ...], float] = {}
        for key, step in zip(keys, steps, strict=True):
            last[key] = max(step, last.get(key, step))
        keep = [step == last[key] for key, step in zip(keys, steps, strict=True)]
        return replace(self, data=self.data.filter(pa.array(keep, pa.bool_())))

    @property
    def first_alike(self) -> NDArray[np.intp]:
        """Returns (row,) the first row of the protocol that is the same episode, or the row itself.

        Two episodes with the same start, actions and rewards are one measurement drawn twice: both
        count in a mean, and its interval is as wide as that of the distinct ones.
        """
        rows = np.arange(len(self))
        if "trace" not in self.data.column_names:
            return rows
        names = ("experiment", "step", "task", "protocol", "trace")
        keys = zip(*(self.data[name].to_pylist() for name in names), strict=True)
        seen: dict[tuple[Any, ...], int] = {}
        found = [
            row if key[-1] is None else seen.setdefault(key, row) for row, key in enumerate(keys)
        ]
        return np.array(found, dtype=np.intp)

    def distinct(self) -> Results:
        """Returns the rows without those that repeat an earlier one of their protocol."""
        keep = self.first_alike == np.arange(len(self))
        return replace(self, data=self.data.filter(pa.array(keep)))

    def at_step(self, step: int) -> Results:
        """Returns the same rows as those of a policy after so many training steps."""
        return replace(self, data=_filled(self.data, "step", step))

    def named(self, experiment: str) -> Results:
        """Returns the same rows as one experiment of that name."""
        runs = [{**run, "experiment": experiment} for run in self.provenance.get("runs", [])]
        provenance = {**self.provenance, **({"runs": runs} if runs else {})}
        check_poolable(provenance)
        data = _filled(self.data, "experiment", experiment)
        return replace(self, data=data, provenance=provenance)


def _filled(data: pa.Table, name: str, value: str | int) -> pa.Table:
    """Returns the table with one value in a whole column."""
    column = pa.array([value] * data.num_rows, data[name].type)
    return data.set_column(data.column_names.index(name), name, column)


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns one provenance for several: equal entries once, tables united, the rest listed."""
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        entries = [part[name] for part in parts if name in part]
        different = [e for i, e in enumerate(entries) if e not in entries[:i]]
        if len(different) == 1:
            joined[name] = different[0]
        elif name == "ranges":  # by task and metric, those that no two parts give otherwise
            joined[name] = {}
            for task in dict.fromkeys(itertools.chain(*different)):
                given = [part[task] for part in different if task in part]
                ends = {metric: found for one in given for metric, found in one.items()}
                agreed = (m for m in ends if all(one.get(m, ends[m]) == ends[m] for one in given))
                joined[name][task] = {metric: ends[metric] for metric in agreed}
        elif name in ("better", "protocols", "variables"):
            joined[name] = {k: v for entry in different for k, v in entry.items()}
        elif name == "runs":
            joined[name] = [run for entry in different for run in entry]
        elif name == "command":
            joined[name] = "\n".join(different)
        else:
            joined[name] = different
    return joined


@final
@dataclass(frozen=True, slots=True)
class Highlight:
    """One episode worth a picture; its address is enough to run it again."""

    label: str  # "best", "median" or "worst"
    experiment: str
    task: str
    protocol: str
    seed: int
    episode: int
    score: float

    @property
    def caption(self) -> str:
        """Returns the line that stands under its picture."""
        where = f"{self.protocol}, seed {self.seed}, episode {self.episode}"
        return f"{self.experiment}, {self.label}: {self.score:.2f} ({where})"


def highlights(results: Results, metric: str = "last_fractional_success") -> list[Highlight]:
    """Returns the best, median and worst scored episode of each experiment and task.

    Among equals the first in the table is taken, so the choice is the same every time.
    """
    last = results.final()
    scores = last.scores(metric)
    columns = {n: last.column(n) for n in ("experiment", "task", "protocol", "seed", "episode")}
    found = []
    for experiment in last.experiments:
        for task in last.tasks:
            here = (columns["experiment"] == experiment) & (columns["task"] == task)
            rows = np.flatnonzero(here & ~np.isnan(scores))
            order = rows[np.argsort(-scores[rows], kind="stable")]
            places = {"best": 0, "median": len(order) // 2, "worst": len(order) - 1}
            for label, place in places.items() if len(order) else ():
                row = order[place]
                at = (str(columns["protocol"][row]), int(columns["seed"][row]))
                number = int(columns["episode"][row])
                found.append(Highlight(label, experiment, task, *at, number, float(scores[row])))
    return found
