"""Results of world models, printed from the rows of results/causalmbrl.

Usage: python tools/causalmbrl_page.py [--check]; writes results/causalmbrl/tables.md, and the table
and figure of docs/world_model_results.md, or exits 1 if they are not what the rows say.
python tools/causalmbrl_page.py yardsticks OUT WORLD [OPTION=VALUE ...] writes the yardsticks of a
world: scores of the true world, and of answers that know nothing, at the sizes of the full budget.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from interverse.benchmarks.causalmbrl.compare import numbers, replay_remark
from interverse.benchmarks.causalmbrl.settings import TABLES, printed
from interverse.core.files.json_text import read_json_object
from interverse.core.rng import generator
from interverse.fit.materials import Materials
from interverse.fit.scores import ceiling
from interverse.fit.settings import Budget, budget
from interverse.fit.work import Record, run_stamp
from interverse.models.effects import score_effects
from interverse.reports.plots import style
from interverse.reports.sections import (
    Grid,
    Score,
    Section,
    grouped,
    markdown,
    pivot,
    with_table,
    written_page,
)
from interverse.scoring.planning import COLUMNS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "causalmbrl"
PAGE = ROOT / "docs" / "world_model_results.md"
FIGURE = PAGE.parent / "images" / "world_models_planning.svg"
_LABELS = {"contrastive": "Contrastive", "jepa": "JEPA", "nll": "NLL Finetuned"}
_SHOWN = {"ranking": "H@1", "zero_shot": "H@1", "planning": "Success"}
_REFERENCES = 10_000  # of the full sizes: scores among fewer are higher and not comparable
_IGNORES = 1.0  # points of CF-H@1 around the untouched altered scene that count as it
_PATHS = {
    "H@1 after 1": ("ranking", "1", "hits"),
    "H@1 after 5": ("ranking", "5", "hits"),
    "H@1 after 1, published rule": ("ranking", "1", "published_hits"),
    "H@1 after 10": ("ranking", "10", "hits"),
    "planning success": ("planning", "5", "open", "success"),
    "CF-H@1": ("recovery", "counterfactual", "hits"),
    "effect error": ("recovery", "counterfactual", "effect_error"),
    "graph AP": ("recovery", "edges", "average_precision"),
    "graph F1": ("recovery", "fixed", "f1"),
    "graph SHD": ("recovery", "fixed", "shd"),
    **{f"open {k}": ("planning", k, "open", "success") for k in ("1", "5", "10")},
    **{f"closed {k}": ("planning", k, "closed", "success") for k in ("1", "5", "10")},
}
_PLANNING = ("H@1 after 1", "H@1 after 10", *(n for n in _PATHS if n[:4] in ("open", "clos")))
_KNOWN = ("CF-H@1", "effect error", "graph AP", "graph F1", "graph SHD")
_CAUSES = ("H@1 after 1", "H@1 after 5", "planning success", *_KNOWN)
_OPTIONS = ("H@1 after 1", "H@1 after 1, published rule", "planning success")
_BESIDE = ("CF-H@1", "graph AP", "planning success", "closed 10")
_WORLDS = tuple(
    f"blocks/{mode}-{objects}-v1"
    for mode in ("observed", "unobserved", "fixed_unobserved")
    for objects in (3, 5)
)
_PAGE = ("GNN", "Modular")  # the models of the page's table; figure and correlations have AE, too
_TRAINED = "Contrastive, 100 epochs"
_KNOWS = {
    "in-scene H@1": ("asked", "in_scene", "value"),
    "still": ("asked", "in_scene", "strata", "still", "value"),
    "move": ("asked", "in_scene", "strata", "move", "value"),
    "blocked": ("asked", "in_scene", "strata", "blocked", "value"),
    "push": ("asked", "in_scene", "strata", "push", "value"),
    "H@1 after 10": ("asked", "ranking", "10", "value"),
    "nothing predicted": ("asked", "ranking", "10", "nothing_predicted"),
    **{
        f"{name.replace('_', ' ')} {k}": ("asked", "planning", name, k, "value")
        for name in COLUMNS
        for k in ("1", "5", "10")
    },
}
"""Scores of `interverse.score_world_model`, which lie beside the rows."""
_DYNAMICS = {
    "F1": "f1",
    "local F1": "local_f1",
    "F1 by state": "state_f1",
    "SHD": "shd",
    "NLL": "nll",
    "NLL, even colours": "nll_even",
    "NLL, noisy others": "nll_noisy",
    "planning": "planning",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """The scores of one model, loss and seed in one world."""

    world: str
    options: Mapping[str, Any]
    model: str
    loss: str
    seed: int
    epochs: str
    scores: Mapping[str, Any]
    draw: int = 0

    @property
    def comparable(self) -> bool:
        """Whether it is in the world as it is by default and ranked among all references."""
        return self.draw == 0 and self.in_some_draw

    @property
    def in_some_draw(self) -> bool:
        """Likewise, but with any draw of the world's mechanisms."""
        ranked = self.scores.get("ranking", {}).get("1", {}).get("references", _REFERENCES)
        return not self.options and ranked == _REFERENCES

    @property
    def label(self) -> str:
        """Model, loss and epochs, for tables."""
        return f"{self.model} {self.loss}, {self.epochs}"

    def value(self, name: str, paths: Mapping[str, Sequence[str]] | None = None) -> float:
        """Returns a score by its short name; NaN where it was not made."""
        found: Any = self.scores
        for part in (paths or _PATHS)[name]:
            found = found.get(part) if isinstance(found, Mapping) else None
            if found is None:
                return float("nan")
        return float(found)

    def tidy(
        self,
        names: Iterable[str],
        where: str = "",
        paths: Mapping[str, Sequence[str]] | None = None,
    ) -> Iterator[Score]:
        """Yields its scores as rows of a table."""
        for name in names:
            yield Score(
                where=where or self.world,
                who=self.label,
                what=name,
                value=self.value(name, paths),
                run=f"{self.draw}/{self.seed}",
            )


def load_rows(folder: Path) -> list[ResultRow]:
    """Returns every scored model under a folder, of `interverse reproduce` and `interverse fit`."""
    out = []
    for path in sorted(folder.rglob("*.json")):
        record = (
            read_json_object(path) if ".seed-" in path.name or path.name.startswith("seed-") else {}
        )
        if "model" not in record or "scores" not in record:
            continue
        options = dict(record.get("options", {}))
        draw = int(options.pop("cpt_seed", record.get("cpt_seed", 0)))
        own = _LABELS[record["loss"]] if record.get("finetune", True) else "NLL"
        beside = path.parent.parent / "scores" / path.name
        asked = {"asked": read_json_object(beside)} if beside.exists() else {}
        for variant, scores in record["scores"].items():
            out.append(
                ResultRow(
                    world=record["world"],
                    options=options,
                    model=record["model"],
                    loss=own if variant == "model" else variant,
                    seed=record["seed"],
                    epochs=_epochs(record["sizes"]),
                    scores=scores | asked,
                    draw=draw,
                )
            )
    return out


def _epochs(sizes: Mapping[str, Any]) -> str:
    """Returns the epochs of a training in words, from its sizes or from a table's content."""
    told = f"{sizes['epochs']} epochs"
    first = sizes.get("pretrain_epochs")
    told = told if first is None else f"{first} epochs of pretraining, {told} of the transition"
    small = sizes.get("encoder", "medium") != "medium"
    return f"{told}, {sizes['train']} episodes and a small encoder" if small else told


def _contents(folder: Path) -> list[dict[str, Any]]:
    return [read_json_object(path) for path in sorted(folder.glob("*/table-*.json"))]


def beside(folder: Path) -> tuple[int, int]:
    """Returns how many printed numbers stand beside ours under a folder, and how many there are."""
    found = {
        (content["table"], c["world"], c["loss"], c["model"], c["steps"], c["metric"])
        for content in _contents(folder)
        for c in content["cells"]
        if c["published"] is not None
    }
    return len(found), sum(len(printed(number)) for number in TABLES)


def table_sections(folder: Path) -> Iterator[Section]:
    """Yields one section per printed table, H@1 and success alone."""
    for content in sorted(_contents(folder), key=lambda c: (c["table"], c["epochs"] or 0)):
        metric, less = _SHOWN[content["kind"]], ""
        if content["budget"] != "full":
            less = f", {content['budget']} budget"
        elif not content["comparable"]:
            less = f", {_epochs(content)}"
        own = [c for c in content["cells"] if c["metric"] == metric]
        for world, cells in grouped(own, "world").items():
            runs = [len(cell["seeds"]) for cell in cells if cell["loss"] != "Baseline"]
            told = f"Runs a row: {min(runs)} to {max(runs)}" if runs else "Baselines alone"
            judged = [cell["differs"] for cell in cells if cell["differs"] is not None]
            remark = (
                f"{told}; {sum(judged)} of {len(judged)} differences have an interval without 0."
            )
            if less:
                remark += " The paper trained 100 epochs a stage on 1000 episodes."
            title = f"Table {content['table']}, {world}{less}"
            yield title, [remark, *replay_remark(cells)], numbers(cells)


def causes(rows: Sequence[ResultRow], yardsticks: Path) -> list[Score]:
    """Returns prediction beside what models know of causes, after each world's yardsticks."""
    out: list[Score] = []
    for world in sorted({row.world for row in rows}):
        for name, values in yardstick_values(yardsticks, world):
            for what in _CAUSES:
                value = values.get(what, float("nan"))
                out.append(Score(where=world, who=name, what=what, value=value))
        mine = [row for row in rows if row.world == world]
        for row in sorted(mine, key=lambda r: r.label):
            out += row.tidy(_CAUSES)
    return out


def ceilings(rows: Sequence[ResultRow]) -> list[Score]:
    """Returns what the true world scores on the draws of the mechanisms that rows have."""
    found = {(r.world, r.draw): r.scores["recovery"] for r in rows if "recovery" in r.scores}
    out = []
    for (world, draw), one in sorted(found.items()):
        other = one["counterfactual_ceilings"]["true world, other noise"]["hits"]
        values = {**graph_values(one["ceiling"]), "CF-H@1": other}
        for what in _CAUSES:
            value = values.get(what, float("nan"))
            out.append(Score(where=world, who="true world", what=what, value=value, run=str(draw)))
    return out


def over_options(rows: Sequence[ResultRow], yardsticks: Path) -> list[Score]:
    """Returns scores by the value of an option of the world; unchanged pictures come first."""
    out: list[Score] = []
    for row in sorted(rows, key=lambda r: (r.world, sorted(r.options.items()), r.label)):
        where = ", ".join([row.world, *(f"{k}={v}" for k, v in row.options.items())])
        path = yardstick_file(yardsticks, row.world, row.options)
        if path.exists() and not any(score.where == where for score in out):
            found = read_json_object(path)["scores"]["unchanged"]["1"]
            for name, field in zip(_OPTIONS, ("hits", "published_hits"), strict=False):
                out.append(
                    Score(where=where, who="unchanged pictures", what=name, value=found[field])
                )
        out += row.tidy(_OPTIONS, where)
    return out


def dynamics(folder: Path) -> list[Score]:
    """Returns the stored rows of the causal-dynamics track."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        row = read_json_object(path)
        task = row["task"]
        kind = ", pictures" * task.get("pixels", False) + ", switched" * task.get("switched", False)
        where = f"{task['graph']}, {task['objects']:2d} objects{kind}"
        rows.append((where, path.stem, row["scores"]))
    return [
        Score(where=where, who=who, what=what, value=own.get(field, np.nan), run=run)
        for where, run, scores in sorted(rows, key=lambda row: row[0])
        for who, own in scores.items()
        for what, field in _DYNAMICS.items()
    ]


def ignoring(rows: Sequence[ResultRow], yardsticks: Path) -> tuple[int, int, int]:
    """Returns how many runs score as if they ignored the action, worse than no effect, and all.

    The first have the CF-H@1 of the altered scene with nothing done, to one point; the second a
    larger effect error than an answer without any effect on others.
    """
    known = {world: dict(yardstick_values(yardsticks, world)) for world in {r.world for r in rows}}
    scored = [r for r in rows if np.isfinite(r.value("CF-H@1")) and UNCHANGED in known[r.world]]
    still = [known[row.world][UNCHANGED] for row in scored]
    pairs = list(zip(scored, still, strict=True))
    same = sum(abs(r.value("CF-H@1") - one["CF-H@1"]) <= _IGNORES for r, one in pairs)
    worse = sum(r.value("effect error") > one["effect error"] for r, one in pairs)
    return same, worse, len(pairs)


def overview(rows: Sequence[ResultRow]) -> Grid:
    """Returns a line per world: its runs and models, and what goes with prediction."""
    grid = [["world", "runs", "models", *_BESIDE]]
    for world in sorted({row.world for row in rows}):
        mine = [row for row in rows if row.world == world]
        told = [str(correlated(mine, name)) for name in _BESIDE]
        grid.append([world, str(len(mine)), str(len({row.label for row in mine})), *told])
    return grid


def correlated(rows: Sequence[ResultRow], name: str) -> Correlation:
    """Returns how a score goes together with prediction."""
    pairs = np.array([(row.value("H@1 after 1"), row.value(name)) for row in rows]).reshape(-1, 2)
    return correlation(pairs, [row.label for row in rows])


def tables(folder: Path) -> str:
    """Returns every table as Markdown."""
    rows = load_rows(folder)
    plain = [row for row in rows if row.comparable]
    done, every = beside(folder)
    same, worse, scored = ignoring(plain, folder / "yardsticks")
    drawn = {row.world for row in rows if row.draw > 0}
    draws = [row for row in rows if row.world in drawn and row.in_some_draw]
    planned = [row for row in plain if np.isfinite(row.value("closed 10"))]
    known = sorted((row for row in plain if "asked" in row.scores), key=_place)
    sections: list[Section] = [
        (
            "Who knows the cause",
            [
                "Scores of `interverse.score_world_model` at its small budget, in percent: the true"
                " outcome among those of all actions of the scene, by what happens there, and H@1"
                " among 1000. Nothing predicted: the same encoder without its transition.",
            ],
            pivot(s for r in known for s in r.tidy(list(_KNOWS)[:7], paths=_KNOWS)),
        ),
        (
            "Planning in six columns",
            [
                "Goals reached after 1, 5 and 10 steps, scored by a learned reward or by latent"
                " distance to the target; the future in one go (open), looking again (closed), or"
                " as it truly comes (true).",
            ],
            pivot(s for r in known for s in r.tidy(list(_KNOWS)[7:], paths=_KNOWS)),
        ),
        (
            "Planning by horizon",
            [
                "Success after 1, 5 and 10 steps. Open: the whole plan follows from the first"
                " picture. Closed: the model looks again after every step. Goals are scored by a"
                " learned reward. H@1 by our rule.",
            ],
            pivot(score for r in sorted(planned, key=_place) for score in r.tidy(_PLANNING)),
        ),
        (
            "What goes with prediction",
            [
                "Rank correlations over runs of H@1 after one step with other scores, from 10 runs"
                " in one world on. Within models: ranks among runs of the same model, p by"
                " shuffling them, not corrected for the number of tests.",
            ],
            overview(plain),
        ),
        (
            "Prediction and causes",
            [
                "The true world in a model's place is the ceiling. The altered scene with nothing"
                " done is what a model gets that ignores the action. The acted object alone has"
                " its true outcome and all others stay. Effect error and graphs of models are read"
                " by a probe, and its mistakes count. "
                f"{same} of {scored} runs have the CF-H@1 of the altered scene, to 1 point;"
                f" {worse} have a larger effect error than an answer without effects.",
            ],
            pivot(causes(plain, folder / "yardsticks")),
        ),
        (
            "Draws of chemistry's mechanisms",
            [
                "Several screened draws (`--cpt-seeds`); one run each, +- is over draws. The true"
                " world is the ceiling on the same draws: of CF-H@1 with other noise, which is what"
                " perfect mechanisms alone can give."
            ],
            pivot(
                [*ceilings(draws), *(s for r in sorted(draws, key=_place) for s in r.tidy(_CAUSES))]
            ),
        ),
        (
            "Options of the world (Figures 24 and 26)",
            ["Unchanged pictures are what a model gets that predicts no change."],
            pivot(over_options([r for r in rows if r.options], folder / "yardsticks")),
        ),
        (
            "Causal dynamics from states",
            [
                "Chemistry's colours as states, 10,000 transitions under random paints. The true"
                " graph in a learner's place is the ceiling. PC and GES see the states before the"
                " paints alone. Settings were chosen on chain and jungle of 5 objects, seed 0."
                " Quantised contexts are our own learner after FCDL, never compared with its"
                " authors' code.",
            ],
            pivot(dynamics(folder / "dynamics")),
        ),
        *table_sections(folder),
    ]
    title = f"World models: {done} of {every} printed numbers beside ours"
    return written_page(title, sections, ())[0]


def _place(row: ResultRow) -> tuple[str, str]:
    return row.world, row.label


def scored(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Returns the rows of one commit that `interverse.score_world_model` was asked about."""
    return [row for row in rows if "asked" in row.scores and row.label.endswith(_TRAINED)]


def short_table(rows: Sequence[ResultRow]) -> Grid:
    """Returns the table of the page: who knows, who plans, and what the paper printed."""
    shown = {"H@1": "H@1 after 10", "nothing predicted": "nothing predicted"}
    shown |= {"in-scene H@1": "in-scene H@1", "planning": "latent closed 5"}
    grid = [["world", "model", *shown, "as the paper planned", "printed"]]
    success = {
        (one["world"], one["model"]): one.value
        for number, (kind, _) in TABLES.items()
        for one in (printed(number) if kind == "planning" else ())
        if (one["loss"], one["metric"], int(one["steps"])) == ("Contrastive", "Success", 10)
    }
    for world in _WORLDS:
        for model in _PAGE:
            own = [r for r in scored(rows) if (r.world, r.model) == (world, model.lower())]
            line = [world.split("/")[1].removesuffix("-v1"), model]
            for name in shown.values():
                found = float(np.mean([row.value(name, _KNOWS) for row in own]))
                line.append(f"{found:.{2 if 'latent' in name else 1}f}")
            told = float(np.mean([row.value("open 10") for row in own]))
            grid.append([*line, f"{told:.2f}", f"{success[world, model]:.2f}"])
    return grid


def goes_with_planning(rows: Sequence[ResultRow], name: str) -> tuple[float, float, float]:
    """Returns a score's rank correlation with planning over runs, and its 95% interval.

    The interval is by drawing model and world anew with all their seeds: seeds are alike.
    """
    own = scored(rows)
    pairs = np.array(
        [(row.value(name, _PATHS | _KNOWS), row.value("latent closed 5", _KNOWS)) for row in own]
    )
    kinds = sorted({(row.world, row.model) for row in own})
    members = [np.array([(r.world, r.model) == kind for r in own]).nonzero()[0] for kind in kinds]
    rng, drawn = generator(seed=0, name="results/goes_with_planning"), []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[i] for i in rng.integers(len(kinds), size=len(kinds))])
        drawn.append(stats.spearmanr(*pairs[chosen].T)[0])
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(stats.spearmanr(*pairs.T)[0]), float(low), float(high)


_DRAWS = 2000


@style.styled
def planning_figure(rows: Sequence[ResultRow]) -> Any:
    """Returns planning by H@1 and by in-scene H@1, a mark a run, filled where shapes stay."""
    canvas = style.new_figure(3.4)
    axes = canvas.subplots(1, 2, sharey=True)
    names = {"H@1 after 1": "H@1 after one step, %", "in-scene H@1": "in-scene H@1, %"}
    for panel, (name, label) in zip(axes, names.items(), strict=True):
        for index, model in enumerate(("ae", "gnn", "modular")):
            for fixed in (True, False):
                own = [
                    row
                    for row in scored(rows)
                    if row.model == model and row.world.startswith("blocks/fixed") == fixed
                ]
                look = style.look(index)
                panel.scatter(
                    [row.value(name, _PATHS | _KNOWS) for row in own],
                    [row.value("latent closed 5", _KNOWS) for row in own],
                    s=30,
                    color=look.color if fixed else "none",
                    edgecolor=look.color,
                    marker=look.marker,
                    label=f"{model}, {'the same shapes' if fixed else 'shapes by episode'}",
                )
        panel.set_xlabel(label)
        panel.set_ylim(-0.03, 1.03)
    axes[0].set_ylabel("goals reached, 5 steps")
    style.legend_above(canvas, axes[0], 3)
    return canvas


FEWEST = 10
"""Runs below which a correlation says nothing."""
_SHUFFLES = 9999


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """How two scores go together; NaN where there are too few runs.

    Attributes:
        across: Spearman's, over all runs. Runs of one model are alike, so it has no p-value.
        within: among runs of the same model: each run's rank among those of its model.
        chance: p-value of `within`, by shuffling the runs of each model.
        runs: how many have both scores.
        repeated: those of them whose model has runs that differ in both scores.
    """

    across: float
    within: float
    chance: float
    runs: int
    repeated: int

    def __str__(self) -> str:
        """Returns it in words."""
        if math.isnan(self.across):
            return f"not given ({self.runs} runs)"
        told = f"{self.across:.2f} ({self.runs} runs)"
        if math.isnan(self.within):
            return f"{told}; within models not given ({self.repeated} runs)"
        p = "p < 0.001" if self.chance < 0.001 else f"p {self.chance:.3f}"
        return f"{told}; within models {self.within:.2f} ({p}, {self.repeated} runs)"


def correlation(pairs: NDArray[np.float64], models: Sequence[str]) -> Correlation:
    """Returns how the two columns of (runs, 2) scores go together; rows with NaN are left out.

    >>> scores = np.array([[model + run, model - run] for model in (0, 50) for run in range(9)])
    >>> str(correlation(scores.astype(float), ["a"] * 9 + ["b"] * 9))
    '0.50 (18 runs); within models -1.00 (p < 0.001, 18 runs)'
    """
    known = np.isfinite(pairs).all(axis=1)
    pairs, names = pairs[known], np.asarray(models)[known]
    groups = [np.flatnonzero(names == name) for name in sorted(set(names))]
    groups = [rows for rows in groups if _varies(pairs[rows])]
    repeated = sum(map(len, groups))
    within = chance = across = math.nan
    if len(pairs) >= FEWEST and _varies(pairs):
        across = float(stats.spearmanr(pairs[:, 0], pairs[:, 1])[0])
    if not math.isnan(across) and repeated >= FEWEST:
        within, chance = _within([pairs[rows] for rows in groups])
    return Correlation(
        across=across, within=within, chance=chance, runs=len(pairs), repeated=repeated
    )


def _varies(pairs: NDArray[np.float64]) -> bool:
    """Returns whether both columns have more than one value: others go together with nothing."""
    return bool((np.ptp(pairs, axis=0) > 0).all())


def _within(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Returns the correlation of runs' ranks among those of their model, and its p-value."""
    ranks = [stats.rankdata(pairs, axis=0) / (len(pairs) + 1) - 0.5 for pairs in groups]
    every = np.concatenate(ranks)
    scale = float(np.sqrt((every**2).sum(axis=0).prod()))
    found = float((every[:, 0] * every[:, 1]).sum())
    rng = generator(seed=0, name="results/correlation")
    drawn: Any = np.zeros(_SHUFFLES)
    for one in ranks:
        shuffled = rng.permuted(np.tile(one[:, 1], (_SHUFFLES, 1)), axis=1)
        drawn += shuffled @ one[:, 0]
    extreme = int((np.abs(drawn) >= abs(found) - 1e-12).sum())
    return found / scale, (extreme + 1) / (_SHUFFLES + 1)


TRUE, UNCHANGED = "true world", "altered scene, nothing done"


def write_yardsticks(
    out: Path, world: str, sizes: Budget, options: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Returns a world's yardsticks after writing them to `out`; what is there stays."""
    asked = {"world": world, "references": sizes.test, "trials": sizes.trials}
    asked |= {"options": dict(options)} if options else {}
    record = Record(yardstick_file(out, world, options), asked)
    if not record.content["scores"]:
        words = [world, *(f"{name}={value}" for name, value in options.items())]
        command = f"python tools/causalmbrl_page.py yardsticks OUT {shlex.join(words)}"
        record.made_by_run(run_stamp(command, "cpu"))
        with TemporaryDirectory() as data:
            made = Materials(world, sizes, device="cpu", folder=Path(data), options=options)
            graph, every = made.graph, np.ones_like(made.graph.truth.total)
            # An answer that has every edge, equally strong.
            found = replace(graph.truth, total=every, direct=every)
            graph_of_all = score_effects(
                graph.trials.graph, truth=graph.truth, found=found, one_step=graph.one_step
            )
            scores = {
                "unchanged": made.unchanged,
                "graph": ceiling(graph),
                "all_edges": asdict(graph_of_all),
                "counterfactual": made.counterfactual_ceilings,
            }
            record.note("scores", scores)
    return record.content["scores"]


def yardstick_file(
    folder: Path, world: str, options: Mapping[str, Any] = MappingProxyType({})
) -> Path:
    """Returns where a world's yardsticks lie."""
    told = "".join(f".{name}-{value}" for name, value in options.items())
    return folder / f"{world.replace('/', '-')}{told}.json"


def yardstick_values(folder: Path, world: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields each yardstick of a world under `folder` with its scores by their short names."""
    path = yardstick_file(folder, world)
    if not path.exists():
        return
    scores = read_json_object(path)["scores"]
    for name, found in scores["counterfactual"].items():
        values = {"CF-H@1": found["hits"], "effect error": found["effect_error"]}
        if name == TRUE:
            values |= graph_values(scores["graph"])
        if name == UNCHANGED:
            values |= {f"H@1 after {k}": scores["unchanged"][k]["hits"] for k in ("1", "5")}
        yield name, values
    if "all_edges" in scores:
        yield "all edges", graph_values(scores["all_edges"])


def graph_values(scores: Mapping[str, Any]) -> dict[str, float]:
    """Returns what the page shows of a graph's scores, by short names."""
    fixed, precision = scores["fixed"], scores["edges"]["average_precision"]
    return {"graph AP": precision, "graph F1": fixed["f1"], "graph SHD": fixed["shd"]}


def main(arguments: Iterable[str]) -> int:
    """Writes or checks tables and page; returns the exit status."""
    words = list(arguments)
    if words[:1] == ["yardsticks"]:
        options = dict(pair.split("=", 1) for pair in words[3:])
        write_yardsticks(Path(words[1]), words[2], budget("full", "contrastive"), options)
        return 0
    plain = [row for row in load_rows(RESULTS) if row.comparable]
    page = with_table(PAGE, markdown(short_table(plain)))
    every, file = tables(RESULTS), RESULTS / "tables.md"
    if "--check" in words:
        return int(page != PAGE.read_text() or every != file.read_text())
    PAGE.write_text(page)
    file.write_text(every)
    style.save(planning_figure(plain), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
