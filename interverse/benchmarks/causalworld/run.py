"""CausalWorld's figures: train, test, draw and write; what is done is not done again.

Or the policies that the original released, played here beside its own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from interverse.agents.batch.ppo import PpoSettings
from interverse.agents.batch.starts import make_arena
from interverse.agents.batch.train import DeviceTrain, train_on_device, trained_steps
from interverse.benchmarks.causalworld.pages import write_pages
from interverse.benchmarks.causalworld.scores import (
    RELEASED_EPISODES,
    SCORE,
    released_scores,
    stored_records,
)
from interverse.benchmarks.causalworld.settings import CausalWorldSettings
from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import plain, read_json
from interverse.fit.work import Clock, Record, run_stamp
from interverse.protocols.evaluate import evaluate
from interverse.protocols.on_device import DIVERGED, episode_rows, play, starts_of
from interverse.protocols.protocol import select_protocols
from interverse.reports.sections import markdown
from interverse.results.provenance import command
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.saved import Released, released
from interverse.sim.warp_device import find_device

_DRAWS = 0  # the seed of the tests' draws, for runs of all seeds, and for the original's own
_PROTOCOLS = "P0-P12"  # reaching has P0, P5 and P12, the others P0 to P11
_REACHING = {"P0": 0.47, "P5": 0.49, "P12": 0.32}  # of the original, which no figure of ours shows
_ABOUT = (
    "Last fractional success, {episodes} episodes of each protocol: the original's by its own code "
    "in its own simulator, and those here at the rate its policies were trained at, `skip_frame` "
    "3. A cell of 20 episodes has a standard error of up to 0.11, and all episodes of P0 are one "
    "path. The original ran its protocols in order, with defects that move blocks and goals after "
    "P3."
)


def reproduce(settings: CausalWorldSettings) -> dict[str, Any]:
    """Returns our scores beside those of the released policies, and writes them to `out`.

    Returns:
        {"complete": whether all is done, "runs": one record per run}, or with
        `released` the "policies" and their scores.
    """
    if settings.released:
        return {"complete": True, "policies": play_released(settings.released, settings.out)}
    clock = Clock(settings.time_limit)
    records: list[dict[str, Any]] = stored_records(settings.stored)
    if not settings.stored and settings.on_gpu:
        find_device(settings.device)

    def run_all() -> None:
        for seed in range(settings.seeds):
            for task in settings.task:
                for curriculum in settings.curriculum:
                    clock.check()
                    records.append(
                        _one(training(settings, task, curriculum, seed), settings, clock)
                    )

    complete = True if settings.stored else clock.ends(run_all)
    write_pages(settings.out, records)
    told = [{k: v for k, v in record.items() if k != "rows"} for record in records]
    return {"complete": complete, "runs": told}


def training(settings: CausalWorldSettings, task: str, curriculum: int, seed: int) -> DeviceTrain:
    """Returns one run of PPO."""
    sizes = settings.sizes()
    return DeviceTrain(
        task=f"trifinger/{task}-v1",
        out=settings.out / "runs" / f"{task}_c{curriculum}_s{seed}",
        device=settings.engine_device,
        curriculum=curriculum,
        steps=sizes.steps,
        num_envs=sizes.num_worlds,
        starts=sizes.starts,
        seed=seed,
        options=sizes.options,
        settings=sizes.ppo,
        brief=sizes.brief,
        plain=sizes.plain,
        shown=0.0,
    )


def _one(config: DeviceTrain, settings: CausalWorldSettings, clock: Clock) -> dict[str, Any]:
    """Returns the record of a run, made now or found in the folder; another run's is refused."""
    name, sizes = config.out.name, settings.sizes()
    about = {"task": name.rpartition("_c")[0], "curriculum": config.curriculum, "seed": config.seed}
    tests = {"protocols": "P0-P11", "episodes": sizes.episodes, "seed": _DRAWS}
    asked = {**about, **_made_with(config), "tests": tests}
    record = Record(config.out / "scores.json", asked)
    if not record.path.exists():
        clock.say(f"training {name}")
        policy = train_on_device(config)
        clock.say(f"testing {name}")
        record.made_by_run(run_stamp(command(), settings.device if settings.on_gpu else "cpu"))
        record.content |= {
            "engine": "mujoco" if settings.engine_device == "torch" else "mujoco_warp",
            "steps": trained_steps(config.out),
            "curve": read_json(config.out / "curve.json"),
            **({"caution": sizes.caution} if sizes.caution else {}),
            **_tested(config, sizes.episodes, policy),
        }
        record.write()  # whole or not at all: it stands for a finished run
    made: dict[str, Any] = record.content["runs"][-1]
    return {**record.content, **made}


def _made_with(config: DeviceTrain) -> dict[str, Any]:
    """Returns what decides a training's numbers; of PPO's settings those that are not usual."""
    named = ("brief", "plain", "placed", "shown", "initial", "shaping")
    usual = asdict(PpoSettings())
    ppo = {n: value for n, value in asdict(config.settings).items() if value != usual[n]}
    found = {
        "worlds": config.num_envs,
        "planned_steps": config.steps,
        "trained_on": config.device,
        "starts": config.starts if config.drawn().stages or config.placed else 1,
        **{name: getattr(config, name) for name in named},
        **config.options,
        "ppo": ppo,
    }
    return dict(plain(found))


def _tested(config: DeviceTrain, episodes: int, policy: Path) -> dict[str, Any]:
    """Returns the contacts, and one row per episode of the twelve protocols, played together."""
    world, given = config.task, {"options": config.options}
    protocols = select_protocols(world, "P0-P11")
    starts = starts_of(world, protocols, episodes=episodes, seed=_DRAWS, **given)
    arena = make_arena(
        world, starts, num_worlds=len(starts), device=config.device, groups=1, **given
    )
    try:
        scores = play(ExportedPolicy.load(policy).on(arena.device), arena)
    finally:
        arena.close()
    rows = episode_rows(scores, protocols, starts, task=world, seed=_DRAWS)
    rows = [{"experiment": config.out.name, **row} for row in rows]
    diverged = sum(row.get("reason") == DIVERGED for row in rows)
    return {"contact": arena.options.contact, "diverged": diverged, "rows": rows}


def find_released(given: Sequence[Path]) -> list[tuple[Released, Path]]:
    """Returns the released policies among zips and in folders, told by their content.

    Raises if there is none.
    """
    folders = [sorted(path.rglob("*.zip")) if path.is_dir() else [path] for path in given]
    files = [file for folder in folders for file in folder]
    found = sorted((known, file) for file in files if (known := released(file)) is not None)
    if not found:
        raise InvalidValueError(
            f"no policy that CausalWorld released is in {', '.join(map(str, given))}",
            fix="Give the folder causal_world/assets/baseline_actors of its release 1.2",
        )
    return found


def play_released(
    given: Sequence[Path], out: Path, *, episodes: int = RELEASED_EPISODES
) -> list[dict[str, Any]]:
    """Plays released policies (zips, folders of them), writes summary.md and released.json.

    Returns the scores. What `out` holds of the same tests is not played again.
    """
    theirs, kept = {("reaching", 1): _REACHING, **released_scores()}, []
    for policy, file in find_released(given):
        results = evaluate(
            file,
            f"trifinger/{policy.task}-v1",
            _PROTOCOLS,
            episodes=episodes,
            seed=_DRAWS,
            out=out / file.stem,
            progress=True,
        )
        played = {
            protocol: [None if np.isnan(score) else round(float(score), 4) for score in rows[SCORE]]
            for protocol, rows in results.to_pandas().groupby("protocol", sort=False)
        }
        about = {"policy": file.stem, **policy._asdict(), "original": theirs.get(policy, {})}
        kept.append({**about, "engine": results.provenance.get("engine", {}), "scores": played})
    about = {"command": command(), "seed": _DRAWS, "episodes": episodes}
    write_json(out / "released.json", {**about, "policies": kept}, sort_keys=False)
    (out / "summary.md").write_text(released_page(kept, episodes))
    return kept


def released_page(kept: Sequence[Mapping[str, Any]], episodes: int) -> str:
    """Returns the table: two rows a policy, the original's numbers and those played here."""
    names = sorted({n for row in kept for n in row["scores"]}, key=lambda n: int(n[1:]))
    grid = [["policy", "", *names]]
    for row in kept:
        shown = {n: [s for s in scores if s is not None] for n, scores in row["scores"].items()}
        here = {n: np.mean(scores) for n, scores in shown.items() if scores}
        titles = ((row["policy"], "original", row["original"]), ("", "here", here))
        for title, where, cells in titles:
            told = [f"{cells[n]:.2f}" if n in cells else "" for n in names]
            grid.append([title, where, *told])
    head = ["# CausalWorld's released policies", "", _ABOUT.format(episodes=episodes), ""]
    return "\n".join([*head, markdown(grid)]) + "\n"
