"""Training a world model: its stages, its seeds, its progress, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from interverse.core.errors import InvalidValueError, check_name, explain, missing_extra
from interverse.core.files.json_text import plain
from interverse.models import checkpoint
from interverse.models.draws import Needs
from interverse.models.feeds import Feed, FeedSettings, feed
from interverse.models.fit import Epoch, Fit, Listener, ModelStage
from interverse.models.learner import Learner, member
from interverse.models.run import ProgressFolder, Run
from interverse.models.source import (
    DataWorld,
    TransitionSource,
    check_same_world,
    num_transitions,
    source_record,
    world_of,
)
from interverse.models.stages import STAGES, TRAINED, Objective
from interverse.models.table import MODELS
from interverse.models.world_model import WorldModel, WorldModelConfig


@contextmanager
def bar(*, epochs: int, stages: Sequence[str]) -> Iterator[Listener]:
    """Yields a listener that advances one bar per stage, on standard error."""
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[losses]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        tasks = {
            name: shown.add_task(name, total=epochs, losses="", start=False) for name in stages
        }

        def listener(epoch: Epoch) -> None:
            task = tasks[epoch.stage]
            shown.start_task(task)
            valid = " ".join(f"{value:.4g}" for value in epoch.valid)
            shown.update(task, completed=epoch.epoch, losses=f"valid {valid}")

        yield listener


@contextmanager
def curves(folder: Path, seeds: Sequence[int]) -> Iterator[Listener]:
    """Yields a listener that writes one scalar per seed and loss for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise missing_extra("tensorboard", "torch") from error
    with SummaryWriter(str(folder)) as writer:

        def listener(epoch: Epoch) -> None:
            for index, seed in enumerate(seeds):
                writer.add_scalar(
                    f"{epoch.stage}/train/seed-{seed}", epoch.train[index], epoch.epoch
                )
                writer.add_scalar(
                    f"{epoch.stage}/valid/seed-{seed}", epoch.valid[index], epoch.epoch
                )

        yield listener


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
            checkpoint.write_tensors(Path(folder) / f"{stage}.safetensors", weights)
        record = {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "stages": list(self.weights),
            "history": [dict(row) for row in self.history],
            "world": None if self.world is None else plain(asdict(self.world)),
        }
        checkpoint.write_json(Path(folder) / "model.json", record)

    @classmethod
    def load(cls, folder: Path) -> Fitted:
        """Returns what `save` wrote."""
        record = checkpoint.read_json(Path(folder) / "model.json")
        world = record.get("world")
        return cls(
            config=WorldModelConfig.from_dict(record["config"]),
            seed=record["seed"],
            weights={
                stage: checkpoint.read_tensors(Path(folder) / f"{stage}.safetensors")
                for stage in record["stages"]
            },
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
    _check_device(how, train, valid)
    check_same_world(
        "validation data", world_of(valid), "training data", world_of(train), fix="Pass one world's"
    )
    for source in (train, valid):
        config.check_actions(
            source.actions(torch.arange(num_transitions(source)).to(source.device))
        )
    data = (
        {}
        if how.out is None
        else {"train": source_record(train), "validation": source_record(valid)}
    )
    results: list[Fitted] = []
    for seeds in _groups(config, how):
        results += _fit_together(config, how, seeds, (train, valid), data, listeners)
    if how.out is not None:
        for result in results:
            result.save(Path(how.out) / f"seed-{result.seed}")
    return tuple(results)


def _fit_together(
    config: WorldModelConfig,
    how: Fit,
    seeds: tuple[int, ...],
    sources: tuple[TransitionSource, TransitionSource],
    data: Mapping[str, Any],
    listeners: Sequence[Listener],
) -> Iterator[Fitted]:
    """Yields the results of seeds trained at once."""
    models = [WorldModel.seeded(config, seed) for seed in seeds]
    names = [name for name in STAGES[config.loss] if how.finetune or name != "finetune"]
    stages = [_stage(name, config, how, sources) for name in names]
    name = "training-" + "-".join(str(seed) for seed in seeds)
    record = {"model": config.to_dict(), "fit": how.decides(), "seeds": list(seeds), **data}
    with ExitStack() as open_listeners:
        run = Run(
            Learner(models, torch.device(how.device)),
            stages,
            how,
            seeds=seeds,
            progress_folder=None
            if how.out is None
            else ProgressFolder(folder=Path(how.out) / name, record=record),
            listeners=(*listeners, *_own_listeners(how, seeds, stages, open_listeners)),
        )
        best = run()
    for index, seed in enumerate(seeds):
        yield Fitted(
            config=config,
            seed=seed,
            weights={stage: member(state, index) for stage, state in best.items()},
            history=tuple(_row_of(row, index) for row in run.history),
            world=world_of(sources[0]),
        )


def _stage(
    name: str,
    config: WorldModelConfig,
    how: Fit,
    sources: tuple[TransitionSource, TransitionSource],
) -> ModelStage:
    whole = config.recurrent and name != "pretrain"

    def feeds(learner: Learner) -> tuple[Feed, Feed]:
        asked = FeedSettings(
            batch_size=how.batch_size,
            sample_latents=how.sample_latents,
            own_orders=how.order_seed is None and learner.members > 1,
        )
        return feed(name, sources[0], learner, asked), feed(name, sources[1], learner, asked)

    return ModelStage(
        name=name,
        objective=partial(Objective, stage=name),
        parts=TRAINED[name],
        feeds=feeds,
        needs=Needs.of(config, name),
        batch_size=how.episodes_per_batch if whole else how.batch_size,
    )


def _groups(config: WorldModelConfig, how: Fit) -> list[tuple[int, ...]]:
    """Returns which seeds train at once."""
    able = config.entry.stacks
    if how.at_once == "always" and not able:
        raise InvalidValueError(
            explain(
                f"seeds of model {config.model!r} cannot train at once",
                allowed=", ".join(name for name, row in MODELS.items() if row.stacks),
                fix="Pass at_once='auto'",
            )
        )
    # A decoder in bf16 fills a GPU alone; without one, seeds at once cost little more than one.
    fills = config.loss == "nll" and how.precision == "bf16"
    pays = torch.device(how.device).type == "cuda" and able and not fills
    together = how.at_once == "always" or (how.at_once == "auto" and pays)
    return [how.seeds] if together else [(seed,) for seed in how.seeds]


def _own_listeners(
    how: Fit, seeds: tuple[int, ...], stages: Sequence[ModelStage], stack: ExitStack
) -> Iterator[Listener]:
    """Yields what `how` asks for: a bar, curves. Their packages load only then."""
    if how.progress:
        from interverse.models.world_fit import bar

        yield stack.enter_context(bar(epochs=how.epochs, stages=[s.name for s in stages]))
    if how.tensorboard and how.out is not None:
        from interverse.models.world_fit import curves

        yield stack.enter_context(curves(Path(how.out) / "tensorboard", seeds))


def _row_of(row: Mapping[str, Any], index: int) -> dict[str, Any]:
    return {**row, "train": row["train"][index], "valid": row["valid"][index]}


def _check_device(how: Fit, *sources: TransitionSource) -> None:
    for source in sources:
        if source.device.type != torch.device(how.device).type:
            raise InvalidValueError(
                explain(
                    f"the data are on {source.device}, training is on {how.device!r}",
                    fix="Pass the same device to both",
                )
            )
