"""CausalWorld's figures: train, test, draw and write; what is done is not done again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from interverse.benchmarks.causalworld.pages import stored_records, write_pages
from interverse.benchmarks.causalworld.settings import CausalWorldSettings
from interverse.benchmarks.driver import Clock
from interverse.core.files.atomic import write_text
from interverse.core.files.json_text import read_json, read_json_object
from interverse.learning.evaluation import episode_rows, play, starts_of
from interverse.learning.starts import make_arena
from interverse.learning.train import DeviceTrain, train_on_device, trained_steps
from interverse.protocols.select import select_protocols
from interverse.rollouts.exported import ExportedPolicy
from interverse.sim.warp_device import find_device


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CausalWorldRun:
    """One training and its evaluation."""

    task: str
    curriculum: int
    seed: int

    @property
    def name(self) -> str:
        """A folder's name."""
        return f"{self.task}_c{self.curriculum}_s{self.seed}"

    @property
    def world(self) -> str:
        """The world's id."""
        return f"trifinger/{self.task}-v1"


def reproduce(settings: CausalWorldSettings) -> dict[str, Any]:
    """Returns our scores beside those of the released policies, and writes them to `out`.

    Returns:
        {"complete": whether all is done, "runs": one record per run}.
    """
    clock = Clock(settings.time_limit)
    records: list[dict[str, Any]] = stored_records(settings.stored)
    if not settings.stored and settings.device.startswith("cuda"):
        find_device(settings.device)

    def run_all() -> None:
        for seed in range(settings.seeds):
            for task in settings.task:
                for curriculum in settings.curriculum:
                    clock.check()
                    run = CausalWorldRun(task=task, curriculum=curriculum, seed=seed)
                    records.append(_one(run, settings, clock))

    complete = True if settings.stored else clock.ends(run_all)
    write_pages(settings.out, records)
    plain = [{k: v for k, v in record.items() if k != "rows"} for record in records]
    return {"complete": complete, "runs": plain}


def _one(run: CausalWorldRun, settings: CausalWorldSettings, clock: Clock) -> dict[str, Any]:
    """Returns the record of a run, made now or found in the folder."""
    folder, sizes = settings.out / "runs" / run.name, settings.sizes()
    file = folder / "scores.json"
    if file.exists():
        held: dict[str, Any] = read_json_object(file)
        return held
    clock.say(f"training {run.name}")
    policy = train_on_device(
        DeviceTrain(
            task=run.world,
            out=folder,
            device=settings.device,
            curriculum=run.curriculum,
            steps=sizes.steps,
            num_worlds=sizes.num_worlds,
            starts=sizes.starts,
            seed=run.seed,
            options=sizes.options,
            settings=sizes.ppo,
            **(sizes.more.get(run.task, {}) if run.curriculum else {}),  # type: ignore[arg-type]
        )
    )
    clock.say(f"testing {run.name}")
    record = {
        "task": run.task,
        "curriculum": run.curriculum,
        "seed": run.seed,
        "engine": "mujoco" if settings.device in ("cpu", "torch") else "mujoco_warp",
        "steps": trained_steps(folder),
        "curve": read_json(folder / "curve.json"),
        **_tested(run, settings, policy),
    }
    write_text(file, json.dumps(record))  # whole or not at all: it stands for a finished run
    return record


def _tested(run: CausalWorldRun, settings: CausalWorldSettings, policy: Path) -> dict[str, Any]:
    """Returns the contacts, and one row per episode of the twelve protocols, played together."""
    sizes = settings.sizes()
    protocols = select_protocols(run.world, "P0-P11")
    starts = starts_of(run.world, protocols, episodes=sizes.episodes, options=sizes.options)
    arena = make_arena(
        run.world,
        starts,
        num_worlds=len(starts),
        device=settings.device,
        groups=1,
        options=sizes.options,
    )
    try:
        scores = play(ExportedPolicy.load(policy).on(arena.device), arena)
    finally:
        arena.close()
    rows = episode_rows(scores, protocols, starts, task=run.world, seed=run.seed)
    return {"contact": arena.options.contact, "rows": rows}
