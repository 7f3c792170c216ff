"""From a world's id to a fitted world model, its scores and one page: `interverse fit ID`.

Data are collected, a model is trained, and its predictions, plans, graph and counterfactuals are
scored beside their baselines and ceilings. Everything is kept in one folder; the same call goes on
where it stopped.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from json import dumps
from pathlib import Path
from typing import Any, cast, final

from interverse.core.errors import InvalidValueError, check_whole, explain
from interverse.fit.materials import Materials
from interverse.fit.page import write_fit_page
from interverse.fit.settings import MOST_EPOCHS, Budget, ModelRequest, budget, score_budget
from interverse.fit.training import fitted_models, training_record
from interverse.fit.work import Clock, Record, other_code, run_stamp
from interverse.models.stages import STAGES
from interverse.models.steps import check_device
from interverse.models.table import entry
from interverse.models.world_fit import Fitted
from interverse.models.world_model import Loss, WorldModelConfig
from interverse.scoring.grid import FAMILIES, SIZES, GridBench
from interverse.scoring.world_model import score_world_model
from interverse.worlds import WORLDS

_SMOKE = Budget(
    train=100,
    valid=16,
    test=1000,
    encoder="small",
    epochs=10,
    batch_size=512,
)
_SMOKE_NLL = replace(_SMOKE, train=60, valid=10, epochs=10, pretrain_epochs=4, batch_size=256)
"""Enough for a model that plans better than doing nothing, in minutes of one core."""
_SHAPE = ("encoder", "embedding", "hidden", "width", "sigma", "hinge")
_TRAINING = ("encoder", "embedding", "batch_size", "learning_rate", "epochs", "pretrain_epochs")


@dataclass(frozen=True, kw_only=True)
class FitWorld(ModelRequest):
    """Fits a world model to a world and scores it, from the id to one page.

    A few minutes on one core:

      interverse fit blocks/observed-3-v1

    Another model on one draw of chemistry's mechanisms, three seeds:

      interverse fit chemistry/full-v1 --model action_gnn --seeds 3 --option cpt_seed=2

    A network on the states of a world with continuous actions, about a minute:

      interverse fit tutorial/slider-v1

    A Torch module of your own, with encode and rollout:

      interverse fit blocks/observed-3-v1 --model my_model:Own
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the world, as for `make`."""

    model: str = "modular"
    loss: Loss | None = None

    def __post_init__(self) -> None:
        if not self.id.startswith(FAMILIES):
            raise InvalidValueError(
                explain(
                    f"{self.id} has no model of pictures here",
                    allowed=", ".join(sorted(n for n in WORLDS if n.startswith(FAMILIES))),
                    fix="FitStates fits a model of states to worlds with continuous actions",
                )
            )
        self.check()
        self.model_config(1, 5)  # raises for unknown names, and for what the model would ignore
        if self.pretrain_epochs is not None:
            check_whole(self.pretrain_epochs, "pretrain_epochs", MOST_EPOCHS)
        if self.batch_size is not None:
            check_whole(self.batch_size, "batch_size", MOST_EPOCHS)
        if self.chosen_loss != "nll" and (self.pretrain_epochs is not None or not self.finetune):
            raise InvalidValueError(
                explain(
                    f"{self.chosen_loss} trains in one stage: pretrain_epochs and finetune have no"
                    " use",
                    allowed="loss nll",
                    fix="Leave them out, or pass --loss nll",
                )
            )
        check_device(self.device)

    @property
    def chosen_loss(self) -> Loss:
        """The loss in force."""
        if self.loss is not None:
            return self.loss
        allowed = entry(self.model).losses
        usual = "nll" if self.id.startswith("chemistry/") else "contrastive"
        return cast("Loss", usual if usual in allowed else allowed[0])

    @property
    def sizes(self) -> Budget:
        """The sizes in force."""
        if self.budget == "smoke":
            made = _SMOKE_NLL if self.chosen_loss == "nll" else _SMOKE
        else:
            loss: Loss = "nll" if self.chosen_loss == "nll" else "contrastive"
            made = budget(self.budget, loss)
        given = self.chosen(*_TRAINING)
        given.pop("learning_rate", None)
        return replace(made, **given)

    def model_config(self, objects: int, actions_per_object: int) -> WorldModelConfig:
        """Returns the model for a world of so many objects."""
        sizes = self.sizes
        shape: dict[str, Any] = {"encoder": sizes.encoder, "embedding": sizes.embedding}
        if self.budget == "smoke" and self.chosen_loss == "nll":
            shape |= {"encoder_channels": 8, "decoder_width": 64}
        return WorldModelConfig.named(
            "reference",
            model=self.model,
            loss=self.chosen_loss,
            objects=objects,
            actions_per_object=actions_per_object,
            **{**shape, **self.chosen(*_SHAPE)},
        )

    @property
    def stage(self) -> str:
        """The stage of training whose weights are scored."""
        return STAGES[self.chosen_loss][-1 if self.finetune else -2]

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.folder_named(self.model, self.chosen_loss)

    def command(self) -> str:
        """Returns the command line that asks for this, but for where it writes and its clock."""
        words = ["interverse", "fit", self.id, "--model", self.model, "--loss", self.chosen_loss]
        words += ["--budget", self.budget, "--seeds", str(self.seeds), "--device", self.device]
        for name, value in self.chosen(*_TRAINING, *_SHAPE).items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        if not self.finetune:
            words.append("--no-finetune")
        for name, value in self.options.items():
            words += ["--option", f"{name}={value if isinstance(value, str) else dumps(value)}"]
        return shlex.join(words)


def fit_world(settings: FitWorld) -> dict[str, Any]:
    """Returns all scores, after writing them and one page to `settings.folder`.

    Returns:
        What `WorldModelScores.to_dict` gives for the first seed, and {"complete": whether all is
        done, "folder": where the page is, "seeds": one record each}.
    """
    _check_world(settings)
    clock = Clock(settings.time_limit)
    work = _FitWork(settings, clock)
    complete = clock.ends(work.run_all)
    seeds = [record.content for record in work.records.values()]
    for line in other_code({one.path.name: one.content for one in work.records.values()}):
        clock.say(line)
    if complete:
        write_fit_page(settings.folder, seeds, work.materials, work.model)
        clock.say(f"written: {settings.folder / 'index.html'}")
    found = {"complete": complete, "folder": str(settings.folder), "seeds": seeds}
    return {**seeds[0]["scores"].get("model", {}), **found}


def _check_world(settings: FitWorld) -> None:
    """Says what a world's scores will leave out, before anything is trained."""
    bench = GridBench(settings.id, sizes=SIZES["small"], seed=0, options=settings.options)
    for reason in filter(None, (bench.no_graph, bench.no_plans)):
        sys.stderr.write(f"{settings.id} {dict(settings.options)}: {reason}\n")


@final
class _FitWork:
    """One fit: data, training, scores; what is done is not done again."""

    def __init__(self, settings: FitWorld, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.materials = Materials(
            settings.id,
            settings.sizes,
            device=settings.device,
            folder=settings.folder / "data",
            options=settings.options,
        )
        self.config = settings.model_config(
            self.materials.objects, self.materials.actions_per_object
        )
        made_with: dict[str, Any] = {
            "world": settings.id,
            "options": dict(settings.options),
            "model": settings.model,
            "loss": settings.chosen_loss,
            "sizes": settings.sizes.record(),
        }
        chosen = settings.chosen("learning_rate", *_SHAPE[2:])
        if chosen:
            made_with["chosen"] = chosen
        if not settings.finetune:
            made_with["finetune"] = False
        self.records = {
            seed: Record(settings.folder / f"seed-{seed}.json", {**made_with, "seed": seed})
            for seed in range(1, settings.seeds + 1)
        }
        self.fitted: dict[int, Fitted] = {}

    @property
    def model(self) -> Any:
        """The first seed's model, for pictures of what it predicts."""
        return self._model(1)

    def _model(self, seed: int) -> Any:
        return self.fitted[seed].model(self.settings.stage, device=self.settings.device)

    def run_all(self) -> None:
        """Does all that is not done yet."""
        settings = self.settings
        self.fitted = fitted_models(
            self.config,
            self.materials,
            settings.folder / "training",
            self.records,
            self.clock,
            name=settings.id,
            precision="float32" if settings.device == "cpu" else "bf16",
            finetune=settings.finetune,
            learning_rate=settings.learning_rate,
        )
        for seed, record in self.records.items():
            record.trained_as(training_record(self.fitted[seed]))
            record.note("history", [dict(row) for row in self.fitted[seed].history])
            if record.has("model", "planning"):
                continue
            self.clock.check()
            record.made_by_run(run_stamp(settings.command(), settings.device))
            with self.clock.timed(f"seed {seed}: scores"):
                scores = score_world_model(
                    self._model(seed),
                    settings.id,
                    budget=score_budget(settings.budget),
                    device=settings.device,
                    **settings.options,
                )
            for kind, score in scores.scores.items():
                record.put("model", kind, score)
