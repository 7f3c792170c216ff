"""Reproduction of the tables: fit, score, compare, write; finished rows are not done again."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any, final

from interverse.benchmarks import driver
from interverse.benchmarks.causalmbrl.compare import compare, discovery_file, sections
from interverse.benchmarks.causalmbrl.findings import write_findings
from interverse.benchmarks.causalmbrl.settings import VARIANTS, MbrlRow, Settings, world_name
from interverse.fit.materials import Materials, fitted_models, model_config, training_record
from interverse.fit.scores import KINDS, baselines
from interverse.fit.work import Clock, Record, run_stamp


def reproduce(settings: Settings) -> dict[str, Any]:
    """Returns our numbers beside the published ones, and writes them to `settings.out`."""
    if settings.findings:
        return write_findings(settings.out, settings.out / "findings")
    return driver.reproduce(_MbrlWork, settings)


@final
class _MbrlWork(driver.Work):
    """Rows on their way."""

    paper, title = "causalmbrl", "Published tables, made again"
    compare, sections = staticmethod(compare), staticmethod(sections)
    settings: Settings
    file, waits_with = "table-{:02d}.json", (Exception,)

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.stamp = run_stamp(settings.command(), settings.device)

    def run_all(self) -> None:
        """Does all that is not done yet, world by world: their data are held one at a time."""
        settings = self.settings
        shared = operator.attrgetter("world", "cpt_seed", "loss")
        for _, group in itertools.groupby(settings.rows(), key=shared):
            rows = list(group)
            materials = Materials(
                rows[0].world,
                settings.budget_of(rows[0]),
                device=settings.device,
                folder=settings.out / "work" / "data",
                options=rows[0].options,
            )
            kinds = (*settings.kinds(rows[0].world), "recovery")
            if "planning" in kinds:
                self._baselines(materials, rows[0])
            if settings.discovery and rows[0].world.startswith("chemistry/"):
                self._discovery(materials, rows[0])
            for row in rows:
                self._row(row, materials, kinds)

    def _row(self, row: MbrlRow, materials: Materials, kinds: Iterable[str]) -> None:
        settings = self.settings
        wanted = [(variant, kind) for variant in settings.variants(row) for kind in kinds]
        records = {
            seed: record
            for seed in range(1, settings.seeds + 1)
            for record in [self._record(row.name, settings.asked(row), seed)]
            if not all(record.has(*one) for one in wanted)
        }
        if not records:
            self.clock.say(f"{row.name}: done before")
            return
        folder = settings.out / "work" / (row.name + ("" if settings.finetune else ".plain"))
        Record(folder / "asked.json", settings.asked(row)).write()
        made = fitted_models(
            model_config(materials, row.model, row.loss),
            materials,
            folder,
            list(records),
            self.clock,
            name=row.name,
            precision=settings.training_precision,
            finetune=settings.finetune,
            compile=settings.compile,
        )
        for seed, fitted in made.items():
            record = records[seed]
            record.made_by_run(self.stamp)
            record.trained_as(training_record(fitted))  # drops scores of another training
            for variant, kind in wanted:
                if not record.has(variant, kind):
                    self.clock.check()
                    stage = VARIANTS[fitted.config.loss][variant]
                    model = fitted.model(stage, device=settings.device)
                    told = f"{record.path.stem}: {variant} {kind}"
                    with self.failures.kept(told), self.clock.timed(told):
                        record.put(variant, kind, KINDS[kind](model, materials, fitted.seed))

    def _baselines(self, materials: Materials, row: MbrlRow) -> None:
        name = f"{world_name(row.world, row.cpt_seed)}.baselines"
        # Baselines have no training: what they depend on is the number of episodes.
        asked = {"world": row.world, "episodes": materials.budget.episodes, **row.options}
        for seed in range(1, self.settings.seeds + 1):
            record = self._record(name, asked, seed)
            if record.content["scores"]:
                continue
            self.clock.check()
            record.made_by_run(self.stamp)
            with self.clock.timed(f"{name} seed {seed}"):
                found = baselines(materials, seed)
                record.note("scores", {name: {"planning": found[name]} for name in found})

    def _discovery(self, materials: Materials, row: MbrlRow) -> None:
        from interverse.benchmarks.causalmbrl import discovery  # an extra, loaded when asked for

        asked = {"world": row.world, "episodes": materials.budget.test, **row.options}
        record = Record(discovery_file(self.settings.out, row.world, row.cpt_seed), asked)
        if record.content["scores"]:
            return
        record.made_by_run(self.stamp)
        states = discovery.start_states(materials.test_set)
        graph = materials.graph.trials.graph
        with self.clock.timed(f"{materials.world}: PC and GES on {len(states)} true states"):
            found = {m: discovery.discovery_scores(states, graph, m) for m in discovery.METHODS}
            record.note("scores", found)

    def _record(self, name: str, settings: dict[str, Any], seed: int) -> Record:
        return Record(driver.row_file(self.settings.out, name, seed), {**settings, "seed": seed})
