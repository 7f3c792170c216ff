"""The page of results: printed tables made again, and what the models know of causes.

`python -m interverse.benchmarks.causalmbrl.results_page RESULTS PAGE` prints PAGE from the rows
under RESULTS. Nothing on it is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from interverse.benchmarks.causalmbrl.correlations import FEWEST, Correlation, correlation
from interverse.benchmarks.causalmbrl.dynamics_track import dynamics_section
from interverse.benchmarks.causalmbrl.figures import KNOWLEDGE_FILE, write_knowledge_figure
from interverse.benchmarks.causalmbrl.option_figures import (
    OPTION_FIGURES,
    mean_text,
    option_section,
    write_option_figures,
)
from interverse.benchmarks.causalmbrl.pages import numbers, replay_remark
from interverse.benchmarks.causalmbrl.published import TABLES, printed
from interverse.benchmarks.causalmbrl.yardsticks import UNCHANGED, graph_values, yardstick_values
from interverse.core.files import atomic
from interverse.models.checkpoint import read_json
from interverse.reports.sections import Grid, Section, written_page

_LABELS = {"contrastive": "Contrastive", "jepa": "JEPA", "nll": "NLL Finetuned"}
_SHOWN = {"ranking": "H@1", "zero_shot": "H@1", "planning": "Success"}
_BUDGETS = ("the paper's budget", "fewer epochs", "the reduced budget")
_OPENING = "Do world models that predict well also know what causes what?"
_ACROSS = "H@1 after 1"
_BESIDE = ("CF-H@1", "graph AP", "planning success")
_OVER_DRAWS = ("H@1 after 1", *_BESIDE, "graph F1", "graph SHD")
_REFERENCES = 10_000  # of the full sizes: scores among fewer are higher and not comparable
_IGNORES = 1.0  # points of CF-H@1 around the untouched altered scene that count as it


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

    def value(self, name: str) -> float:
        """Returns a score by its short name; NaN where it was not made."""
        path = _PATHS[name]
        found: Any = self.scores
        for part in path:
            found = found.get(part) if isinstance(found, Mapping) else None
            if found is None:
                return float("nan")
        return float(found)


_PATHS = {
    "H@1 after 1": ("ranking", "1", "hits"),
    "H@1 after 5": ("ranking", "5", "hits"),
    "H@1 after 1, published rule": ("ranking", "1", "published_hits"),
    "planning success": ("planning", "5", "open", "success"),
    "CF-H@1": ("recovery", "counterfactual", "hits"),
    "effect error": ("recovery", "counterfactual", "effect_error"),
    "graph AP": ("recovery", "edges", "average_precision"),
    "graph F1": ("recovery", "fixed", "f1"),
    "graph SHD": ("recovery", "fixed", "shd"),
}


def load_rows(folder: Path) -> list[ResultRow]:
    """Returns every scored model under a folder, of `interverse reproduce` and `interverse fit`."""
    out = []
    for path in sorted(folder.rglob("*.json")):
        record = read_json(path) if ".seed-" in path.name or path.name.startswith("seed-") else {}
        if "model" not in record or "scores" not in record:
            continue
        options = dict(record.get("options", {}))
        draw = int(options.pop("cpt_seed", record.get("cpt_seed", 0)))
        for variant, scores in record["scores"].items():
            out.append(
                ResultRow(
                    world=record["world"],
                    options=options,
                    model=record["model"],
                    loss=_loss(record) if variant == "model" else variant,
                    seed=record["seed"],
                    epochs=_epochs(record["sizes"]),
                    scores=scores,
                    draw=draw,
                )
            )
    return out


def _loss(record: Mapping[str, Any]) -> str:
    """Returns the printed name of the loss of a row of `interverse fit`."""
    return _LABELS[record["loss"]] if record.get("finetune", True) else "NLL"


def _epochs(sizes: Mapping[str, Any]) -> str:
    """Returns the epochs of a training in words, from its sizes or from a table's content."""
    told = f"{sizes['epochs']} epochs"
    first = sizes.get("pretrain_epochs")
    told = told if first is None else f"{first} epochs of pretraining, {told} of the transition"
    small = sizes.get("encoder", "medium") != "medium"
    return f"{told}, {sizes['train']} episodes and a small encoder" if small else told


def _budget(content: Mapping[str, Any]) -> str:
    """Returns what a table's rows have less than the paper's, "" where nothing."""
    if content["budget"] != "full":
        return f", {content['budget']} budget"
    return "" if content["comparable"] else f", {_epochs(content)}"


def beside(folder: Path) -> tuple[int, int]:
    """Returns how many printed numbers stand beside ours under a folder, and how many there are."""
    every = sum(len(printed(number)) for number in TABLES)
    return sum(map(sum, beside_by_budget(folder).values())), every


def beside_by_budget(folder: Path) -> dict[str, tuple[int, int]]:
    """Returns how many printed numbers of trained models and of baselines stand beside ours.

    Each is counted at its largest budget. Baselines learn nothing: theirs says how many episodes
    they were scored on.
    """
    found: dict[str, set[tuple[Any, ...]]] = {name: set() for name in _BUDGETS}
    for content in _contents(folder):
        full = "fewer epochs" if content["budget"] == "full" else "the reduced budget"
        found["the paper's budget" if content["comparable"] else full] |= {
            (content["table"], c["world"], c["loss"], c["model"], c["steps"], c["metric"])
            for c in content["cells"]
            if c["published"] is not None
        }
    counts, known = {}, set[tuple[Any, ...]]()
    for name in _BUDGETS:
        new = found[name] - known
        untrained = sum(loss == "Baseline" for _, _, loss, *_ in new)
        counts[name] = len(new) - untrained, untrained
        known |= found[name]
    return counts


def _counted(folder: Path) -> str:
    """Returns how many printed numbers stand beside ours, models and baselines apart, in words."""
    done, every = beside(folder)
    counts = beside_by_budget(folder)
    trained = ", ".join(f"{own} at {name}" for name, (own, _) in counts.items())
    untrained = sum(other for _, other in counts.values())
    return (
        f"{done} of the paper's {every} printed numbers stand beside ours: {done - untrained} of"
        f" trained models ({trained}) and {untrained} of baselines that learn nothing (random,"
        " greedy, replay)."
    )


def _contents(folder: Path) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted(folder.glob("*/table-*.json"))]


def table_sections(folder: Path) -> Iterator[Section]:
    """Yields one section per printed table, H@1 and success alone."""
    for content in sorted(_contents(folder), key=lambda c: (c["table"], c["epochs"] or 0)):
        metric = _SHOWN[content["kind"]]
        own = [c for c in content["cells"] if c["metric"] == metric]
        for world in dict.fromkeys(cell["world"] for cell in own):
            cells = [cell for cell in own if cell["world"] == world]
            runs = [len(cell["seeds"]) for cell in cells if cell["loss"] != "Baseline"]
            told = f"Runs a row: {min(runs)} to {max(runs)}" if runs else "Baselines alone"
            judged = [cell["differs"] for cell in cells if cell["differs"] is not None]
            less = _budget(content)
            remark = (
                f"{told}{less}; {sum(judged)} of {len(judged)} differences have an interval"
                " without 0."
            )
            if less:
                remark += " The paper trained 100 epochs a stage on 1000 episodes."
            title = f"Table {content['table']}, {world}{less}"
            yield title, [remark, *replay_remark(cells)], numbers(cells)


def knowledge_section(rows: Sequence[ResultRow], world: str, yardsticks: Path) -> Section:
    """Returns prediction beside what a model knows of causes, with the yardsticks first."""
    mine = [row for row in rows if row.world == world and row.comparable]
    names = [name for name in _PATHS if "published" not in name]
    grid = [["model", "runs", *names]]
    for name, values in yardstick_values(yardsticks, world):
        grid.append([name, "", *(f"{values[n]:.3g}" if n in values else "" for n in names)])
    for label in sorted({row.label for row in mine}):
        own = [row for row in mine if row.label == label]
        cells = [mean_text([row.value(name) for row in own]) for name in names]
        grid.append([label, str(len(own)), *cells])
    remark = (
        "The true world in a model's place is the ceiling; +- is the deviation over runs. The line"
        " of the altered scene has what a model gets that ignores the action: in CF-H@1, and in H@1"
        " by comparing pixels of pictures that stay as they are. The acted object alone has its"
        " true outcome and all others stay: what is above needs effects on others. Effect error and"
        " graph scores of models are read by a probe; those of the true world are not."
    )
    return f"Prediction and causes in {world}", [remark], grid


def draws_section(rows: Sequence[ResultRow]) -> Section | None:
    """Returns scores over several draws of a world's mechanisms; None where there is one."""
    grid = [["world", "model", "draws", *_OVER_DRAWS]]
    for world in sorted({row.world for row in rows if row.draw > 0}):
        mine = [row for row in rows if row.world == world and row.in_some_draw]
        ceilings = {
            row.draw: row.scores["recovery"] for row in mine if "recovery" in row.scores
        }.values()
        grid.append([world, "true world", str(len(ceilings)), *_ceiling_cells(ceilings)])
        for label in sorted({row.label for row in mine if row.draw > 0}):
            own = [row for row in mine if row.label == label]
            cells = [mean_text([row.value(name) for row in own]) for name in _OVER_DRAWS]
            grid.append(["", label, str(len({row.draw for row in own})), *cells])
    remark = (
        "Tables 17 and 18 on several screened draws of the mechanisms (`--cpt-seeds`), one run"
        " each; +- is the deviation over draws. The true world is the ceiling on the same draws:"
        " of the graph with the facts' noise, of CF-H@1 with other noise, which is what perfect"
        " mechanisms alone can give. Other sections have draw 0."
    )
    return ("Draws of chemistry's mechanisms", [remark], grid) if len(grid) > 1 else None


def _ceiling_cells(recoveries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns means over draws of what the true world scores."""
    found: dict[str, list[float]] = {}
    for one in recoveries:
        other = one["counterfactual_ceilings"]["true world, other noise"]["hits"]
        for name, value in {**graph_values(one["ceiling"]), "CF-H@1": other}.items():
            found.setdefault(name, []).append(value)
    return [mean_text(found.get(name, ())) for name in _OVER_DRAWS]


def _ignoring(rows: Sequence[ResultRow], yardsticks: Path) -> Iterator[str]:
    """Yields how many runs are no better than answers that know nothing of effects, in words."""
    known = {world: dict(yardstick_values(yardsticks, world)) for world in {r.world for r in rows}}
    scored = [r for r in rows if np.isfinite(r.value("CF-H@1")) and UNCHANGED in known[r.world]]
    still = [known[row.world][UNCHANGED] for row in scored]
    pairs = list(zip(scored, still, strict=True))
    same = [r for r, one in pairs if abs(r.value("CF-H@1") - one["CF-H@1"]) <= _IGNORES]
    worse = [r for r, one in pairs if r.value("effect error") > one["effect error"]]
    if same:
        best = np.median([row.value(_ACROSS) for row in same])
        yield (
            f"{len(same)} of {len(scored)} runs have the CF-H@1 of the altered scene with nothing"
            f" done, to {_IGNORES:g} point, as if they ignored the action. Their median H@1 after 1"
            f" is {best:.1f}."
        )
    ceilings = [r.scores["recovery"].get("counterfactual_ceilings", {UNCHANGED}) for r in scored]
    older = [found for found in ceilings if UNCHANGED not in found]
    if older:
        yield (
            f"CF-H@1 of {len(older)} of {len(scored)} runs was ranked by distances in float32,"
            " before they were exact: `results/causalmbrl/README.md` says what that may change."
        )
    if scored:
        read = [r for r in scored if "read" in r.scores["recovery"]]
        yield (
            f"{len(worse)} of {len(scored)} runs have a larger effect error than an answer without"
            " any effect on others. That need not be the models' fault: a probe reads effects off"
            " their states, and its mistakes count as effects. What true outcomes score when the"
            f" same probe reads them was measured in {len(read)} of these runs;"
            " `results/causalmbrl/README.md` has an example where it is more, too."
        )


def _correlated(rows: Sequence[ResultRow], name: str) -> Correlation:
    """Returns how a score goes together with prediction."""
    pairs = np.array([(row.value(_ACROSS), row.value(name)) for row in rows]).reshape(-1, 2)
    return correlation(pairs, [row.label for row in rows])


def _answer(rows: Sequence[ResultRow]) -> str:
    """Returns the range of the correlations over worlds, in words."""
    told = []
    for name in _BESIDE:
        each = [
            _correlated([row for row in rows if row.world == world], name)
            for world in sorted({row.world for row in rows})
        ]
        across = [one.across for one in each if np.isfinite(one.across)]
        within = [one.within for one in each if np.isfinite(one.within)]
        if across:
            told.append(f"{name} {min(across):.2f} to {max(across):.2f} in {len(across)} worlds")
        if within:
            told[-1] += f", among runs of one model {min(within):.2f} to {max(within):.2f}"
    return "In short, rank correlations with prediction: " + "; ".join(told) + "."


def results_page(folder: Path) -> str:
    """Returns the page as Markdown."""
    rows = load_rows(folder)
    plain = [row for row in rows if row.comparable]
    opening = (
        _OPENING,
        [
            _counted(folder)
            + " Every number below is printed from the rows in `results/causalmbrl` by"
            " `python -m interverse.benchmarks.causalmbrl.results_page`; each row names its commit"
            " and command, rows of models their device, seed and training too. A cell is ours by"
            " the published rule, then the printed number in brackets; +- is the standard deviation"
            " over runs (of the population, as the paper's); a star marks a difference whose 95 %"
            " interval by Welch has no 0 in it. The"
            " commands of all rows, made and missing, are in `results/causalmbrl/README.md`.",
            "Do models that predict well also know what causes what? The table gives rank"
            " correlations over runs of H@1 after one step with what a model knows and can do,"
            f" from {FEWEST} runs in one world on. AP is the average precision of the edges, which"
            " needs no threshold; graph F1 and SHD count effects above 0.1 as edges. Runs differ in"
            " model, loss, epochs and seed. Over all runs of a world a correlation may be one of"
            " models alone; within models it says whether a run that predicts better than others of"
            " its model also knows more (ranks within each model; p by shuffling them, not"
            " corrected for the number of tests). In the figure a mark is a run, filled in blocks,"
            " empty in chemistry.",
            _answer(plain),
            *_ignoring(plain, folder / "yardsticks"),
        ],
        _overview(plain),
    )
    worlds = sorted({row.world for row in plain})
    sections = [opening, *(knowledge_section(rows, w, folder / "yardsticks") for w in worlds)]
    over_draws = draws_section(rows)
    sections += [over_draws] if over_draws else []
    placed = {_OPENING: KNOWLEDGE_FILE}
    for figure in OPTION_FIGURES:
        if figure.rows(rows):
            sections.append(option_section(rows, figure, folder / "yardsticks"))
            placed[figure.title] = figure.file
    states = dynamics_section(folder / "dynamics")
    sections += [states] if states else []
    sections += list(table_sections(folder))
    title = "World models beside the paper, and what they know of causes"
    return written_page(title, sections, (), placed)[0]


def _overview(rows: Sequence[ResultRow]) -> Grid:
    """Returns a line per world: its runs and models, and what goes with prediction."""
    grid = [["world", "runs", "models", *_BESIDE]]
    for world in sorted({row.world for row in rows}):
        mine = [row for row in rows if row.world == world]
        told = [str(_correlated(mine, name)) for name in _BESIDE]
        grid.append([world, str(len(mine)), str(len({row.label for row in mine})), *told])
    return grid


def main(words: Sequence[str]) -> None:
    """Writes the page and its figures."""
    folder, page = (Path(word) for word in words)
    rows = load_rows(folder)
    write_option_figures(page, rows)
    write_knowledge_figure(page, [row for row in rows if row.comparable], _BESIDE)
    atomic.write_text(page, results_page(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
