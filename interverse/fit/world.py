"""From a world's id to a fitted world model, its scores and one page: `interverse fit ID`.

Data are collected, a model is trained, and its predictions, plans, graph and counterfactuals are
scored beside their baselines and ceilings. Everything is kept in one folder; the same call goes on
where it stopped.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from json import dumps
from pathlib import Path
from typing import Any, final

from interverse.core.errors import InvalidValueError, check_whole, explain
from interverse.envs.build import build_world
from interverse.fit.materials import Materials
from interverse.fit.page import write_fit_page
from interverse.fit.scores import KINDS, baselines
from interverse.fit.settings import MOST_EPOCHS, Budget, FitRequest, budget
from interverse.fit.training import fitted_models, model_config, training_record
from interverse.fit.work import Clock, Record, other_code, run_stamp
from interverse.models.stages import STAGES
from interverse.models.steps import check_device
from interverse.models.world_fit import Fitted
from interverse.models.world_model import Loss, WorldModelConfig
from interverse.worlds import WORLDS

FAMILIES = ("blocks/", "chemistry/")
_KINDS = ("ranking", "planning", "search", "recovery")

_HIDDEN, _SMOKE_HIDDEN = 512, 256  # width of the networks, as published and in small

_SMOKE = Budget(
    train=60,
    valid=10,
    test=1000,
    encoder="small",
    embedding=16,
    epochs=20,
    batch_size=128,
    reward_epochs=20,
    probe_epochs=20,
    episodes=200,
    trials=1500,
)
"""Enough for a page with numbers that mean something, in a minute or two on two cores."""


@dataclass(frozen=True, kw_only=True)
class FitWorld(FitRequest):
    """Fits a world model to a world and scores it, from the id to one page.

    Two minutes on two cores:

      interverse fit blocks/observed-3-v1 --budget smoke

    Another model on one draw of chemistry's mechanisms, three seeds:

      interverse fit chemistry/full-v1 --model action_gnn --seeds 3 --option cpt_seed=2

    A network on the states of a world with continuous actions, about a minute:

      interverse fit tutorial/slider-v1
    """

    model: str = "modular"
    """A name of `interverse.models.MODELS`: ae, vae, gnn, action_gnn, modular, transformer, ..."""
    loss: Loss = "contrastive"
    """contrastive, jepa or nll."""
    pretrain_epochs: int | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    finetune: bool = True
    """nll: whether encoder, decoder and transition train on together at the end."""
    device: str = "cpu"
    """cpu or cuda."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the world, as for `make`."""

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
        WorldModelConfig(model=self.model, loss=self.loss, objects=1)  # raises for unknown ones
        if self.pretrain_epochs is not None:
            check_whole(self.pretrain_epochs, "pretrain_epochs", MOST_EPOCHS)
        if self.loss != "nll" and (self.pretrain_epochs is not None or not self.finetune):
            raise InvalidValueError(
                explain(
                    f"{self.loss} trains in one stage: pretrain_epochs and finetune have no use",
                    allowed="loss nll",
                    fix="Leave them out, or pass --loss nll",
                )
            )
        check_device(self.device)

    @property
    def sizes(self) -> Budget:
        """The sizes in force."""
        if self.budget == "smoke":
            made = _SMOKE if self.epochs is None else replace(_SMOKE, epochs=self.epochs)
        else:
            loss: Loss = "nll" if self.loss == "nll" else "contrastive"
            made = budget(self.budget, loss, epochs=self.epochs)
        return replace(made, pretrain_epochs=self.pretrain_epochs)

    @property
    def stage(self) -> str:
        """The stage of training whose weights are scored."""
        return STAGES[self.loss][-1 if self.finetune else -2]

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.folder_named(self.model, self.loss)

    def command(self) -> str:
        """Returns the command line that asks for this, but for where it writes and its clock."""
        words = ["interverse", "fit", self.id, "--model", self.model, "--loss", self.loss]
        words += ["--budget", self.budget, "--seeds", str(self.seeds), "--device", self.device]
        if self.epochs is not None:
            words += ["--epochs", str(self.epochs)]
        if self.pretrain_epochs is not None:
            words += ["--pretrain-epochs", str(self.pretrain_epochs)]
        if not self.finetune:
            words.append("--no-finetune")
        for name, value in self.options.items():
            words += ["--option", f"{name}={value if isinstance(value, str) else dumps(value)}"]
        return shlex.join(words)


def fit_world(settings: FitWorld) -> dict[str, Any]:
    """Returns all scores, after writing them and one page to `settings.folder`.

    Returns:
        {"complete": whether all is done, "folder": where the page is, "seeds": one record each}.
    """
    _check_world(settings)
    clock = Clock(settings.time_limit)
    work = _FitWork(settings, clock)
    complete = clock.ends(work.run_all)
    found = {
        "complete": complete,
        "folder": str(settings.folder),
        "seeds": [record.content for record in work.records.values()],
        "baselines": work.baselines.content["scores"],
    }
    for line in other_code({one.path.name: one.content for one in work.records.values()}):
        clock.say(line)
    if complete:
        write_fit_page(settings.folder, found, work.materials, work.model)
        clock.say(f"written: {settings.folder / 'index.html'}")
    return found


def _check_world(settings: FitWorld) -> None:
    """Raises where a score cannot be made of the world, before anything is trained."""
    world: Any = build_world(settings.id, 1, settings.options)
    options = world.options
    wrong = ""
    if "target" not in world.observation_space.spaces:
        wrong = "there is no target to plan for"
    elif options.objects == 1:
        wrong = "one object acts on no other: there is no graph"
    elif settings.id.startswith("chemistry/"):
        if options.mode == "delayed":
            wrong = "effects fade in, and scores are of effects after one step"
        elif len(options.seen) < options.objects:
            wrong = "some objects are not seen, and the graph is scored over all of them"
        elif options.meta and options.graph_is_random:
            wrong = "every episode has another graph, and scores are of one"
    if wrong:
        raise InvalidValueError(
            explain(
                f"{settings.id} {dict(settings.options)} cannot be scored: {wrong}",
                fix="Leave the option out, or train with interverse.models.fit_world_model",
            )
        )


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
        made_with: dict[str, Any] = {
            "world": settings.id,
            "options": dict(settings.options),
            "model": settings.model,
            "loss": settings.loss,
            "sizes": settings.sizes.record(),
        }
        if not settings.finetune:
            made_with["finetune"] = False
        self.records = {
            seed: Record(settings.folder / f"seed-{seed}.json", {**made_with, "seed": seed})
            for seed in range(1, settings.seeds + 1)
        }
        episodes = {k: made_with[k] for k in ("world", "options", "sizes")}
        self.baselines = Record(settings.folder / "baselines.json", episodes)
        self.fitted: dict[int, Fitted] = {}

    @property
    def model(self) -> Any:
        """The first seed's model, for pictures of what it predicts."""
        return self.fitted[1].model(self.settings.stage, device=self.settings.device)

    def run_all(self) -> None:
        """Does all that is not done yet."""
        settings = self.settings
        hidden = _SMOKE_HIDDEN if settings.budget == "smoke" else _HIDDEN
        self.fitted = fitted_models(
            model_config(self.materials, settings.model, settings.loss, hidden=hidden),
            self.materials,
            settings.folder / "training",
            self.records,
            self.clock,
            name=settings.id,
            precision="float32" if settings.device == "cpu" else "bf16",
            finetune=settings.finetune,
        )
        for seed, record in self.records.items():
            record.trained_as(training_record(self.fitted[seed]))
            record.note("history", [dict(row) for row in self.fitted[seed].history])
            model = self.fitted[seed].model(self.settings.stage, device=self.settings.device)
            for kind in _KINDS:
                if not record.has("model", kind):
                    self.clock.check()
                    record.made_by_run(self._stamp())
                    with self.clock.timed(f"seed {seed}: {kind}"):
                        record.put("model", kind, KINDS[kind](model, self.materials, seed))
        if not self.baselines.content["scores"]:
            with self.clock.timed("baselines of planning"):
                self.baselines.made_by_run(self._stamp())
                self.baselines.note("scores", baselines(self.materials, 1))

    def _stamp(self) -> dict[str, str]:
        return run_stamp(self.settings.command(), self.settings.device)
