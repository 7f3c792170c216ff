"""`interverse score`: any model with `encode` and `rollout`, scored in any world."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from interverse.cli.evaluate import parse_pairs
from interverse.cli.json_output import print_json
from interverse.scoring.built import build_model
from interverse.scoring.world_model import ScoreBudget, WorldModelScores, score_world_model


@dataclass(frozen=True, kw_only=True)
class Score:
    """Scores a world model of your own: prediction, causes, planning, beside their yardsticks.

    A model has two methods, encode(observations) and rollout(latents, actions):

      interverse new model my_model

      interverse fit blocks/observed-3-v1 --model my_model:Own --out runs/own

      interverse score my_model:Own blocks/observed-3-v1 --weights runs/own/model.safetensors
    """

    model: Annotated[str, tyro.conf.Positional]
    """MODULE:BUILD: a model, or what builds one; it is given those of id, observation_shape,
    actions and objects that it asks for by name."""
    id: Annotated[str, tyro.conf.Positional]
    """A world's id."""
    weights: Path | None = None
    """A safetensors file of a Torch module's weights."""
    seed: int = 0
    """Of the test's episodes, and of what is trained on the model's latents."""
    budget: ScoreBudget = "small"
    """small: about a minute of one core. full: intervals a third as wide."""
    device: str = "cpu"
    """cpu or cuda."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values)."""
    json: bool = False
    """Write all scores as one JSON document to standard output."""


def score(config: Score) -> WorldModelScores:
    """Scores; progress goes to standard error, the table to standard output."""
    options = parse_pairs(config.option)
    with redirect_stdout(sys.stderr):  # a model may print
        model = build_model(config.model, config.id, options=options, weights=config.weights)
        found = score_world_model(
            model,
            config.id,
            seed=config.seed,
            budget=config.budget,
            device=config.device,
            **options,
        )
    if config.json:
        print_json(found.to_dict())
    else:
        sys.stdout.write(found.table() + "\n")
    return found
