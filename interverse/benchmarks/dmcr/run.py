"""The whole of it: train, test, compare, write; what is done is not done again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, final

from interverse.agents.pixel.config import PixelTrain, plan
from interverse.agents.pixel.train import CURVES, train_together
from interverse.art.pictures.folder import folder
from interverse.benchmarks import driver
from interverse.benchmarks.dmcr.compare import compare, sections
from interverse.benchmarks.dmcr.settings import DmcrVariant, RemasteredSettings
from interverse.core.files.json_text import read_json_object
from interverse.fit.work import Failures, Record
from interverse.protocols.evaluate import evaluate
from interverse.rollouts.saved import CARD

_PIECE = 10_000  # decisions between looks at the clock, where there is a limit


def reproduce(settings: RemasteredSettings) -> dict[str, Any]:
    """Returns our numbers beside the published ones, and writes them to `settings.out`.

    Returns:
        {"complete": whether all is done, "tables": one comparison per table}.
    """
    if settings.textures is not None:
        folder(settings.textures)  # refuses a folder without pictures at once
    return driver.reproduce(_DmcrWork, settings)


@final
class _DmcrWork(driver.Work):
    """Variants on their way, run by run: what was stopped has some of every agent."""

    paper, title = "dmcr", "DMC Remastered, made again"
    compare, sections = staticmethod(compare), staticmethod(sections)
    settings: RemasteredSettings

    def run_all(self) -> None:
        """Trains and tests all that is not done yet."""
        seeds, variants = range(self.settings.sizes().runs), self.settings.variants()
        rows = [(variant, seed) for seed in seeds for variant in variants]
        for start in range(0, len(rows), self.settings.together):
            some = rows[start : start + self.settings.together]
            if len(some) > 1:
                with Failures(self.clock).kept("training together"):  # below, each on its own
                    for variant, seed in some:
                        self._record(variant, seed)
                    self._train(some)
            for variant, seed in some:
                self.clock.check()
                with self.failures.kept(f"{variant.name} seed {seed}"):
                    self._one(variant, seed)

    def _record(self, variant: DmcrVariant, seed: int) -> Record:
        """Returns a row; what decides its numbers is how many actors act, not the device."""
        config = self.settings.training(variant, seed).record()
        kept = ("task", "algorithm", "preset", "steps", "seed", "actors", "options", "hyper")
        sizes = self.settings.sizes()
        tests = {name: getattr(sizes, name) for name in ("looks", "starts", "train_episodes")}
        precision = None if config["precision"] == "float32" else config["precision"]
        asked = {"variant": variant.name, "precision": precision, "tests": tests}
        asked |= {name: config[name] for name in kept}
        record = Record(driver.row_file(self.settings.out, variant.name, seed), asked)
        record.write()  # so that other settings are refused before they cost anything
        return record

    def _one(self, variant: DmcrVariant, seed: int) -> None:
        record = self._record(variant, seed)
        self._train([(variant, seed)])
        config = self.settings.training(variant, seed)
        if "evaluations" not in record.content:
            curves = read_json_object(config.out / CURVES)
            record.note("evaluations", curves["evaluations"])
        for name in sorted(variant.protocols):
            if record.has(name, "return"):
                continue
            self.clock.check()
            protocol, episodes = self.settings.protocols()[name]
            with self.clock.timed(f"{variant.name} seed {seed}: {name}, {episodes} episodes"):
                found = evaluate(
                    config.out / "policy",
                    config.task,
                    [protocol],
                    episodes,
                    workers=self.settings.workers,
                    cluster=self.settings.cluster,
                    out=config.out / "tests" / name,
                    experiment=variant.name,
                )
            returns = found.scores("return").tolist()
            record.put(name, "return", {"returns": returns, "mean": sum(returns) / len(returns)})

    def _train(self, rows: Sequence[tuple[DmcrVariant, int]]) -> None:
        """Trains those that are not trained yet, side by side."""
        todo = self._untrained(rows)
        if not todo:
            return
        pieces = []  # the lengths after which to look at the clock; the last is the whole run
        for config in todo.values():
            whole, done = plan(config).steps, _steps(config.out / "policy")
            limited = self.settings.time_limit is not None
            looks = range(_PIECE, whole, _PIECE) if limited else ()
            pieces.append([*(n for n in looks if n > done), whole])
        with self.clock.timed(f"{', '.join(todo)}: trained"):
            for lengths in zip_longest(*pieces):
                self.clock.check()
                pairs = zip(todo.values(), lengths, strict=True)
                train_together([replace(config, steps=n) for config, n in pairs if n is not None])
        self._untrained(rows)

    def _untrained(self, rows: Sequence[tuple[DmcrVariant, int]]) -> dict[str, PixelTrain]:
        """Returns what is still to be trained, by name; the others give up their replay buffers."""
        todo = {}
        for variant, seed in rows:
            config = self.settings.training(variant, seed)
            if _steps(config.out / "policy") < plan(config).steps:
                todo[f"{variant.name} seed {seed}"] = config
            else:
                shutil.rmtree(config.out / "checkpoint", ignore_errors=True)  # gigabytes
        return todo


def _steps(policy: Path) -> int:
    """Returns how many decisions a policy was trained for; none if it is not there."""
    return read_json_object(policy / CARD)["trained"]["steps"] if (policy / CARD).exists() else 0
