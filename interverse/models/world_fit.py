"""Training a world model: its stages, its seeds, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import plain, read_json_object
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.models.fit import Feed, Fit, Listener, ModelStage, train_stages
from interverse.models.learner import Learner, member
from interverse.models.source import (
    DataWorld,
    TransitionSource,
    check_same_world,
    num_transitions,
    source_record,
)
from interverse.models.stages import STAGES, TRAINED, Objective, feed, needs_of
from interverse.models.table import MODELS
from interverse.models.world_model import WorldModel, WorldModelConfig


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One seed's result.

    Attributes:
        config: the model.
        seed: its seed.
        weights: the best weights of each stage by validation loss. For nll, "transition" is the
            plain model and "finetune" the fine-tuned one.
        history: one row per epoch: stage, epoch, train, valid.
        world: that the training data came from, where they told.
    """

    config: WorldModelConfig
    seed: int
    weights: Mapping[str, Mapping[str, Tensor]]
    history: tuple[Mapping[str, Any], ...]
    world: DataWorld | None = None

    def model(self, stage: str | None = None, *, device: str = "cpu") -> WorldModel:
        """Returns the model of a stage (the last one by default), ready for evaluation."""
        stage = list(self.weights)[-1] if stage is None else stage
        check_name("stage", stage, self.weights)
        model = WorldModel(self.config)
        model.load_state_dict(dict(self.weights[stage]))
        model.trained_in = self.world
        return model.to(device).eval()

    def save(self, folder: Path) -> None:
        """Writes a safetensors file per stage and a JSON record."""
        for stage, weights in self.weights.items():
            write_safetensors(Path(folder) / f"{stage}.safetensors", weights)
        record = {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "stages": list(self.weights),
            "history": [dict(row) for row in self.history],
            "world": None if self.world is None else plain(asdict(self.world)),
        }
        write_json(Path(folder) / "model.json", record, sort_keys=False)

    @classmethod
    def load(cls, folder: Path) -> Fitted:
        """Returns what `save` wrote."""
        folder = Path(folder)
        record = read_json_object(folder / "model.json")
        world = record.get("world")
        return cls(
            config=WorldModelConfig.from_dict(record["config"]),
            seed=record["seed"],
            weights={s: read_safetensors(folder / f"{s}.safetensors") for s in record["stages"]},
            history=tuple(record["history"]),
            world=None if world is None else DataWorld(**world),
        )


def fit_world_model(
    config: WorldModelConfig,
    how: Fit,
    train: TransitionSource,
    valid: TransitionSource,
    *,
    listeners: Sequence[Listener] = (),
) -> tuple[Fitted, ...]:
    """Returns one trained model per seed.

    A folder `how.out` that holds progress is gone on with: the same model, settings and data.

    Args:
        config: the model and its loss, which decides the stages.
        how: epochs, seeds, device, and where to write.
        train: training transitions, on `how.device`.
        valid: validation transitions, likewise.
        listeners: called after every epoch.
    """
    for source in (train, valid):
        if source.device.type != torch.device(how.device).type:
            raise InvalidValueError(
                f"the data are on {source.device}, training is on {how.device!r}",
                fix="Pass the same device to both",
            )
    check_same_world(
        "validation data", valid.world, "training data", train.world, fix="Pass one world's"
    )
    for source in (train, valid):
        config.check_actions(
            source.actions(torch.arange(num_transitions(source)).to(source.device))
        )
    data = {"train": train, "validation": valid} if how.out is not None else {}
    identity = {name: source_record(source) for name, source in data.items()}

    def stage(name: str) -> ModelStage:
        def feeds(learner: Learner) -> tuple[Feed, Feed]:
            return feed(name, train, learner, how), feed(name, valid, learner, how)

        whole = config.recurrent and name != "pretrain"
        return ModelStage(
            name=name,
            objective=partial(Objective, stage=name),
            parts=TRAINED[name],
            feeds=feeds,
            batch_size=how.episodes_per_batch if whole else how.batch_size,
            needs=needs_of(config, name),
        )

    stages = [stage(name) for name in STAGES[config.loss] if how.finetune or name != "finetune"]
    results: list[Fitted] = []
    for seeds in _groups(config, how):
        folder = "training-" + "-".join(str(seed) for seed in seeds)
        best, history = train_stages(
            Learner([WorldModel.seeded(config, seed) for seed in seeds], torch.device(how.device)),
            stages,
            how,
            seeds=seeds,
            folder=None if how.out is None else Path(how.out) / folder,
            identity={"model": config.to_dict(), "fit": how.decides(), "seeds": seeds, **identity},
            listeners=listeners,
        )
        for index, seed in enumerate(seeds):
            own = [{**row, **{n: row[n][index] for n in ("train", "valid")}} for row in history]
            weights = {name: member(state, index) for name, state in best.items()}
            made = Fitted(
                config=config, seed=seed, weights=weights, history=tuple(own), world=train.world
            )
            results.append(made)
            if how.out is not None:
                made.save(Path(how.out) / f"seed-{seed}")
    return tuple(results)


def _groups(config: WorldModelConfig, how: Fit) -> list[tuple[int, ...]]:
    """Returns which seeds train at once."""
    able = config.entry.stacks
    if how.at_once == "always" and not able:
        raise InvalidValueError(
            f"seeds of model {config.model!r} cannot train at once",
            allowed=", ".join(name for name, row in MODELS.items() if row.stacks),
            fix="Pass at_once='auto'",
        )
    # In bf16 a decoder fills a GPU alone, as a medium encoder does; smaller seeds cost little more
    # at once than one.
    fills = how.precision == "bf16" and (config.loss == "nll" or config.encoder == "medium")
    pays = torch.device(how.device).type == "cuda" and able and not fills
    together = how.at_once == "always" or (how.at_once == "auto" and pays)
    return [how.seeds] if together else [(seed,) for seed in how.seeds]
