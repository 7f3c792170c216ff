"""Training with an evaluation at every checkpoint: what learning curves are drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from interverse.agents.train import Train, train
from interverse.core.errors import check_whole
from interverse.core.files.atomic import write_json
from interverse.protocols.evaluate import COMMAND_FILE, EVALUATION_FILE, MOST_EPISODES, evaluate
from interverse.protocols.protocol import select_protocols
from interverse.results import Results
from interverse.results.provenance import command
from interverse.rollouts.exported import ExportedPolicy

_PARTS = "evaluation"
_WHERE_IT_RUNS = ("device", "threads")  # the policy brings all other options itself


@dataclass(frozen=True, kw_only=True)
class TrainAndEvaluate(Train):
    """Trains a baseline and scores it at every checkpoint."""

    evaluate_episodes: int = 10
    """Episodes per protocol at every checkpoint; 0 scores nothing."""
    evaluate_protocols: str = ""
    """Names separated by commas, or a range such as P0-P11; by default the task's first: P0, or
    train in control."""

    def __post_init__(self) -> None:
        Train.__post_init__(self)
        if not self.evaluate_protocols:
            first = select_protocols(self.task)[0].name
            object.__setattr__(self, "evaluate_protocols", first)
        check_whole(self.evaluate_episodes, "evaluate_episodes", MOST_EPISODES, least=0)


def train_and_evaluate(config: TrainAndEvaluate, *, progress: bool = False) -> Path:
    """Trains, writes `evaluation.parquet` and returns the folder of the exported policy.

    The file holds every checkpoint's scores with their training steps; a run that was killed and
    started again ends with the file of an unbroken one.
    """
    select_protocols(config.task, config.evaluate_protocols)  # a mistake shows before any work
    watcher = _CheckpointScorer(config) if config.evaluate_episodes else None
    folder = train(config, watcher=watcher, progress=progress)
    write_json(config.out / COMMAND_FILE, {"command": command()})
    return folder


@final
class _CheckpointScorer:
    """Scores the policy at every checkpoint; each one's scores are a file of their own."""

    def __init__(self, config: TrainAndEvaluate) -> None:
        self._config = config
        self._folder = config.out / _PARTS

    def started(self, steps: int) -> None:
        """Drops scores from beyond the checkpoint that the run goes on from."""
        for file in self._files():
            if int(file.stem.rpartition("-")[2]) > steps:
                file.unlink()

    def reached(self, policy: ExportedPolicy, steps: int) -> None:
        """Scores the policy and writes the table of all checkpoints so far."""
        config = self._config
        found = evaluate(
            policy,
            config.task,
            config.evaluate_protocols,
            episodes=config.evaluate_episodes,
            seed=config.seed,
            experiment=config.algorithm + ("+her" if config.her else ""),
            **{name: value for name, value in config.options.items() if name in _WHERE_IT_RUNS},
        )
        about = {k: v for k, v in found.provenance.items() if k not in ("command", "policy")}
        about["runs"] = [{**run, "policy": None} for run in about["runs"]]
        scored = replace(found.at_step(steps), provenance=about)
        scored.to_parquet(self._folder / f"step-{steps:012d}.parquet")
        parts = [Results.from_parquet(file) for file in self._files()]
        Results.concat(parts).to_parquet(config.out / EVALUATION_FILE)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("step-*.parquet"))
