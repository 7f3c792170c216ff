"""`interverse.score_world_model`: any model with `encode` and `rollout`, scored in any world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from interverse.core.errors import check_name, missing_extra
from interverse.core.rng import check_seed
from interverse.models.ranking import HORIZONS
from interverse.models.steps import check_device
from interverse.models.world_model import WorldModel
from interverse.scoring.grid import FAMILIES, SIZES, GridBench
from interverse.scoring.outside import OutsideModel, OwnModel
from interverse.scoring.planning import COLUMNS
from interverse.scoring.shares import Score
from interverse.scoring.states import StateBench
from interverse.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

ScoreBudget = Literal["small", "full"]
KINDS = ("ranking", "in_scene", "effects", "graph", "counterfactual", "planning")
YARDSTICKS = ("nothing_predicted", "do_nothing", "chance", "untrained", "true_world")


@final
@dataclass(frozen=True, slots=True)
class WorldModelScores:
    """Scores of one model in one world, each beside its yardsticks.

    Attributes:
        model, world: the names of both.
        settings: seed and budget, and options of the world.
        scores: by kind, as `to_dict` has them.
    """

    model: str
    world: str
    settings: Mapping[str, Any]
    scores: Mapping[str, Score]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON values.

        A kind has `value`, `interval` (95%) and the yardsticks; `ranking` and every column of
        `planning` have them by horizon, too. What is absent has the value None and says why.
        Ranking, in_scene, effects, graph and counterfactual are in percent, planning in shares.
        """
        about = {"model": self.model, "world": self.world, **self.settings}
        return {**{kind: dict(self.scores[kind]) for kind in KINDS}, "about": about}

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per figure: score, steps, value, interval, yardsticks."""
        return score_rows(self.scores)

    def table(self) -> str:
        """Returns the rows as text."""
        head, *lines = score_grid([self.scores])
        full = [line for line in (head, *lines) if line[3:]]
        widths = [max(map(len, column)) for column in zip(*full, strict=True)]
        widths[0] = max(len(line[0]) for line in lines)
        lines = [line if line[3:] else [*line[:2], f"absent: {line[2]}"] for line in lines]
        text = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=False)).rstrip()
            for line in (head, *lines)
        ]
        told = [f"{name} {self.settings[name]}" for name in ("seed", "budget")]
        told += [f"{name}={value}" for name, value in self.settings["options"].items()]
        return "\n".join([f"{self.model} in {self.world} ({', '.join(told)})", "", *text])

    def to_pandas(self) -> pd.DataFrame:
        """Returns the rows as a pandas DataFrame."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise missing_extra("pandas", "report") from None
        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.table()


def score_world_model(
    model: Any,
    id: str,
    *,
    seed: int = 0,
    budget: ScoreBudget = "small",
    device: str = "cpu",
    **options: Any,
) -> WorldModelScores:
    """Returns what a world model predicts, plans, and knows of causes, beside its yardsticks.

    Args:
        model: anything with `encode(observations) -> latents` (leading axis N) and
            `rollout(latents, actions) -> latents` (actions (N, K), result (N, K, ...)), Torch or
            NumPy. Pictures of blocks and chemistry are uint8 (N, 50, 50, 3). A Torch module is
            given tensors and moved to `device`. Where it has `abduct(fact)`, which returns
            something with a `rollout` that knows what the fact tells, counterfactuals use it.
        id: a world's id.
        seed: of all that is played and trained; test episodes have seeds of their own region.
        budget: small: about two minutes of one core. full: intervals a third as wide.
        device: where the model runs.
        **options: of the world, as for `make`.
    """
    WORLDS[id]
    check_seed(seed)
    check_name("budget", budget, SIZES)
    check_device(device)
    own = isinstance(model, WorldModel)
    outside = OutsideModel(OwnModel(model) if own else model, seed=seed, device=device)
    bench: GridBench | StateBench
    if id.startswith(FAMILIES):
        bench = GridBench(id, sizes=SIZES[budget], seed=seed, options=options)
    else:
        bench = StateBench(id, budget=budget, seed=seed, options=options)
    scores = bench.scores(outside)
    name = model.config.model if isinstance(model, WorldModel) else type(model).__name__
    settings = {"seed": seed, "budget": budget, "options": dict(options)}
    return WorldModelScores(name, id, settings, scores)


def score_rows(scores: Mapping[str, Score]) -> list[dict[str, Any]]:
    """Returns one row per figure of the scores by kind, planning with latent distance first."""
    out = []
    for kind in KINDS:
        for name, steps, entry in _entries(kind, scores[kind]):
            low, high = entry.get("interval") or (None, None)
            row = {"score": name, "steps": steps, "value": entry["value"]}
            row |= {"low": low, "high": high}
            row |= {yardstick: entry.get(yardstick) for yardstick in YARDSTICKS}
            out.append({**row, "absent": entry.get("absent", "")})
    return out


def _entries(kind: str, score: Score) -> list[tuple[str, str, Score]]:
    """Returns the figures of one kind: name, steps and entry."""
    if "absent" in score:
        return [(kind, "", score)]
    if kind == "planning":
        found = []
        for name in COLUMNS:
            by = {"": score[name]} if "absent" in score[name] else score[name]
            found += [(f"planning {name}", steps, entry) for steps, entry in by.items()]
        return found
    if kind == "ranking":
        return [(kind, str(steps), score[str(steps)]) for steps in HORIZONS if str(steps) in score]
    beside = {**score.get("strata", {})}
    if "with_residual" in score:
        beside["with the fact's residual"] = {**score["with_residual"], "chance": score["chance"]}
    if score.get("mode") is not None:
        beside["mode without the fact"] = {"value": score["mode"]}
        beside["exact posterior"] = {"value": score["exact_posterior"]}
    strata = [(f"{kind}, {name}", "", one) for name, one in beside.items()]
    return [(kind, "", score), *strata]


def score_grid(each: Sequence[Mapping[str, Score]]) -> list[list[str]]:
    """Returns every score as text beside its yardsticks, under a head: the mean over seeds.

    A row of what is absent ends with the reason.
    """
    head = ["score", "steps", "model", "95%", *(name.replace("_", " ") for name in YARDSTICKS)]
    grid = [head]
    for rows in zip(*map(score_rows, each), strict=True):
        first, digits = rows[0], 2 if rows[0]["score"].startswith("planning") else 1
        if first["absent"]:
            grid.append([first["score"], "", first["absent"]])
            continue
        values = [row["value"] for row in rows if row["value"] is not None]
        ends = [f"{first[end]:.{digits}f}" for end in ("low", "high") if first[end] is not None]
        beside = ["" if first[n] is None else f"{first[n]:.{digits}f}" for n in YARDSTICKS]
        own = spread(values, digits) if values else ""
        grid.append([first["score"], first["steps"], own, " to ".join(ends), *beside])
    return grid


def spread(values: Sequence[float], digits: int) -> str:
    """Returns the mean of some seeds' values, and where there are several their deviation."""
    mean = f"{float(np.mean(values)):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} +- {float(np.std(values)):.{digits}f}"
