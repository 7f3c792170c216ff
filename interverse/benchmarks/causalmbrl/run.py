"""Reproduction of the tables: fit, score, compare, write; finished rows are not done again."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any, final

from interverse.benchmarks.causalmbrl.compare import compare
from interverse.benchmarks.causalmbrl.findings import write_findings
from interverse.benchmarks.causalmbrl.pages import write_pages
from interverse.benchmarks.causalmbrl.rows import (
    VARIANTS,
    MbrlRow,
    baselines_name,
    discovery_file,
    row_file,
)
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.benchmarks.driver import reproduce_tables
from interverse.fit.materials import Materials
from interverse.fit.scores import KINDS, baselines
from interverse.fit.training import fitted_models, model_config, training_record
from interverse.fit.work import Clock, Failures, Record, run_stamp
from interverse.models.world_fit import Fitted


def reproduce(settings: Settings) -> dict[str, Any]:
    """Returns our numbers beside the published ones, and writes them to `settings.out`."""
    if settings.findings:
        return write_findings(settings.out, settings.out / "findings")
    return reproduce_tables(settings, _MbrlWork, compare, write_pages)


@final
class _MbrlWork:
    """Rows on their way."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.stamp = run_stamp(settings.command(), settings.device)
        self.failures = Failures(clock, Exception)

    def run_all(self) -> None:
        """Does all that is not done yet, world by world: their data are held one at a time."""
        rows = self.settings.rows()
        shared = operator.attrgetter("world", "cpt_seed", "loss")
        for _, group in itertools.groupby(rows, key=shared):
            self._group(list(group))

    def _group(self, rows: list[MbrlRow]) -> None:
        """Does rows that share their data."""
        world = rows[0].world
        materials = Materials(
            world,
            self.settings.budget_of(rows[0]),
            device=self.settings.device,
            folder=self.settings.out / "work" / "data",
            options=rows[0].options,
        )
        kinds = (*self.settings.kinds(world), "recovery")
        if "planning" in kinds:
            self._baselines(materials)
        if self.settings.discovery and world.startswith("chemistry/"):
            self._discovery(materials)
        for row in rows:
            self._row(row, materials, kinds)

    def _row(self, row: MbrlRow, materials: Materials, kinds: Iterable[str]) -> None:
        records = {
            seed: self._record(row.name, self.settings.asked(row), seed)
            for seed in range(1, self.settings.seeds + 1)
        }
        variants = self.settings.variants(row)
        todo = {seed: list(_missing(variants, record, kinds)) for seed, record in records.items()}
        if not any(todo.values()):
            self.clock.say(f"{row.name}: done before")
            return
        seeds = [seed for seed, missing in todo.items() if missing]
        settings = self.settings
        folder = settings.out / "work" / (row.name + ("" if settings.finetune else ".plain"))
        Record(folder / "asked.json", settings.asked(row)).write()
        made = fitted_models(
            model_config(materials, row.model, row.loss),
            materials,
            folder,
            seeds,
            self.clock,
            name=row.name,
            precision=settings.training_precision,
            finetune=settings.finetune,
            compile=settings.compile,
        )
        for seed, fitted in made.items():
            records[seed].made_by_run(self.stamp)
            records[seed].trained_as(training_record(fitted))
            for variant, kind in list(_missing(variants, records[seed], kinds)):
                self.clock.check()
                self._score(records[seed], fitted, materials, variant, kind)

    def _score(
        self, record: Record, fitted: Fitted, materials: Materials, variant: str, kind: str
    ) -> None:
        stage = VARIANTS[fitted.config.loss][variant]
        model = fitted.model(stage, device=self.settings.device)
        told = f"{record.path.stem}: {variant} {kind}"
        with self.failures.kept(told), self.clock.timed(told):
            record.put(variant, kind, KINDS[kind](model, materials, fitted.seed))

    def _baselines(self, materials: Materials) -> None:
        name = baselines_name(materials.world, materials.options.get("cpt_seed", 0))
        # Baselines have no training: what they depend on is the number of episodes.
        settings = {
            "world": materials.world,
            "episodes": materials.budget.episodes,
            **materials.options,
        }
        for seed in range(1, self.settings.seeds + 1):
            record = self._record(name, settings, seed)
            if record.content["scores"]:
                continue
            self.clock.check()
            record.made_by_run(self.stamp)
            with self.clock.timed(f"{name} seed {seed}"):
                found = baselines(materials, seed)
                record.note("scores", {name: {"planning": found[name]} for name in found})

    def _discovery(self, materials: Materials) -> None:
        from interverse.benchmarks.causalmbrl import discovery  # an extra, loaded when asked for

        draw = materials.options.get("cpt_seed", 0)
        settings = {
            "world": materials.world,
            "episodes": materials.budget.test,
            **materials.options,
        }
        record = Record(discovery_file(self.settings.out, materials.world, draw), settings)
        if record.content["scores"]:
            return
        record.made_by_run(self.stamp)
        states = discovery.start_states(materials.test_set)
        graph = materials.graph.trials.graph
        with self.clock.timed(f"{materials.world}: PC and GES on {len(states)} true states"):
            record.note(
                "scores",
                {m: discovery.discovery_scores(states, graph, m) for m in discovery.METHODS},
            )

    def _record(self, name: str, settings: dict[str, Any], seed: int) -> Record:
        return Record(row_file(self.settings.out, name, seed), {**settings, "seed": seed})


def _missing(
    variants: Iterable[str], record: Record, kinds: Iterable[str]
) -> Iterable[tuple[str, str]]:
    for variant in variants:
        for kind in kinds:
            if not record.has(variant, kind):
                yield variant, kind
