"""From a world's id to a fitted world model, its scores and one page: `interverse fit ID`.

Data are collected, a model is trained, and its predictions, plans, graph and counterfactuals are
scored beside their baselines and ceilings. Everything is kept in one folder; the same call goes on
where it stopped.

Anyone's model is trained by its two methods (`--model MODULE:BUILD`): the module's own
`loss(observations, actions)` is minimised, where it has one: windows (B, K + 1, ...) of what was
seen and the actions (B, K, ...) between. Otherwise predictions are told from the other frames of
their batch (InfoNCE): each batch holds whole stretches of episodes, so that most of what a
prediction is told from is the same scene at another time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.core.rng import generator, region_seed
from interverse.core.type_checks import validated
from interverse.envs import make_vec
from interverse.fit.materials import Materials, fitted_models, training_record
from interverse.fit.page import write_fit_page, write_scores_page
from interverse.fit.settings import Budget, FitRequest, ModelRequest, budget, score_budget
from interverse.fit.work import Clock, Record, fit_seeds, run_stamp
from interverse.models.states import play, random_actions, state_worlds
from interverse.models.steps import check_device
from interverse.models.table import entry
from interverse.models.world_fit import STAGES, Fitted
from interverse.models.world_model import Loss, WorldModelConfig
from interverse.scoring.grid import FAMILIES, SIZES, GridBench
from interverse.scoring.outside import OutsideModel, build_model
from interverse.scoring.world_model import score_world_model
from interverse.worlds import WORLDS

_SMOKE = Budget(train=100, valid=16, test=1000, encoder="small", epochs=10)
_SMOKE_NLL = replace(_SMOKE, train=60, valid=10, epochs=10, pretrain_epochs=4, batch_size=256)
"""Enough for a model that plans better than doing nothing, in minutes of one core."""
_SHAPE = ("encoder", "embedding", "hidden", "width", "sigma", "hinge")
_TRAINING = ("encoder", "embedding", "batch_size", "learning_rate", "epochs", "pretrain_epochs")


@dataclass(frozen=True, kw_only=True)
@validated
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

    model: str = "modular"
    loss: Loss | None = None

    def __post_init__(self) -> None:
        if not self.id.startswith(FAMILIES):
            raise InvalidValueError(
                f"{self.id} has no model of pictures here",
                allowed=", ".join(sorted(n for n in WORLDS if n.startswith(FAMILIES))),
                fix="FitStates fits a model of states to worlds with continuous actions",
            )
        self.model_config(1, 5)  # raises for unknown names, and for what the model would ignore
        if self.chosen_loss != "nll" and (self.pretrain_epochs is not None or not self.finetune):
            raise InvalidValueError(
                f"{self.chosen_loss} trains in one stage: pretrain_epochs and finetune have no use",
                allowed="loss nll",
                fix="Leave them out, or pass --loss nll",
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

    def flags(self) -> dict[str, Any]:
        """Returns what else is asked for, by flag."""
        told: dict[str, Any] = {"model": self.model, "loss": self.chosen_loss}
        told |= {"budget": self.budget, "seeds": self.seeds, "device": self.device}
        told |= self.chosen(*_TRAINING, *_SHAPE)
        return told if self.finetune else {**told, "no_finetune": True}


def fit_world(settings: FitWorld) -> dict[str, Any]:
    """Returns all scores, after writing them and one page to `settings.folder`.

    Returns:
        What `WorldModelScores.to_dict` gives for the first seed, and {"complete": whether all is
        done, "folder": where the page is, "seeds": one record each}.
    """
    # What the scores will leave out is said before anything is trained.
    bench = GridBench(settings.id, sizes=SIZES["small"], seed=0, options=settings.options)
    for reason in filter(None, (bench.no_graph, bench.no_plans)):
        sys.stderr.write(f"{settings.id} {dict(settings.options)}: {reason}\n")
    clock, folder = Clock(settings.time_limit), settings.folder
    materials = Materials(
        settings.id,
        settings.sizes,
        device=settings.device,
        folder=folder / "data",
        options=settings.options,
    )
    asked: dict[str, Any] = {
        "model": settings.model,
        "loss": settings.chosen_loss,
        "sizes": settings.sizes.record(),
    }
    chosen = settings.chosen("learning_rate", *_SHAPE[2:])
    if chosen:
        asked["chosen"] = chosen
    if not settings.finetune:
        asked["finetune"] = False
    fitted: dict[int, Fitted] = {}

    def model(seed: int) -> Any:
        return fitted[seed].model(settings.stage, device=settings.device)

    def work(records: Mapping[int, Record]) -> None:
        config = settings.model_config(materials.objects, materials.actions_per_object)
        fitted.update(
            fitted_models(
                config,
                materials,
                folder / "training",
                records,
                clock,
                name=settings.id,
                precision="float32" if settings.device == "cpu" else "bf16",
                finetune=settings.finetune,
                learning_rate=settings.learning_rate,
            )
        )
        for seed, record in records.items():
            record.trained_as(training_record(fitted[seed]))
            record.note("history", [dict(row) for row in fitted[seed].history])
            if not record.has("model", "planning"):
                clock.check()
                _score(settings, record, model(seed), clock)

    def page(seeds: list[dict[str, Any]]) -> None:
        write_fit_page(folder, seeds, materials, model(1))

    return fit_seeds(settings, asked, clock, work=work, page=page)


def _score(settings: FitWorld | FitOwn, record: Record, model: Any, clock: Clock) -> None:
    """Puts what `score_world_model` says of a seed's model into its record."""
    record.made_by_run(run_stamp(settings.command(), settings.device))
    with clock.timed(f"seed {record.content['seed']}: scores"):
        scores = score_world_model(
            model,
            settings.id,
            budget=score_budget(settings.budget),
            device=settings.device,
            **settings.options,
        )
    for kind, score in scores.scores.items():
        record.put("model", kind, score)


# ------------------------------------------------------------------------------- anyone's model

_SIZES: Mapping[str, tuple[int, int]] = {
    "smoke": (400, 20),
    "reduced": (2000, 40),
    "full": (5000, 100),
}
_STEPS = 20  # of an episode
_WINDOW = 5  # actions between the first and the last frame of a window
_SCENES = 16  # episodes that a batch of windows comes from
_RATE, _BATCH = 5e-4, 128
_TEMPERATURE = 0.1
_LINES = 10  # of the log of a training


@final
@dataclass(frozen=True, kw_only=True)
@validated
class FitOwn(FitRequest):
    """Trains a Torch module with `encode` and `rollout` in a world, and scores it."""

    model: str
    """MODULE:BUILD."""
    device: str = "cpu"
    batch_size: int | None = None
    learning_rate: float | None = None

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.folder_named(self.model.replace(":", "."))

    def flags(self) -> dict[str, Any]:
        """Returns what else is asked for, by flag."""
        return {"model": self.model, **super().flags()}


def fit_own(settings: FitOwn) -> dict[str, Any]:
    """Returns all scores, after writing weights, scores and one page to `settings.folder`."""
    clock, folder = Clock(settings.time_limit), settings.folder
    episodes, epochs = _SIZES[settings.budget]
    sizes = {"episodes": episodes, "epochs": epochs if settings.epochs is None else settings.epochs}

    def work(records: Mapping[int, Record]) -> None:
        for seed, record in records.items():
            if record.has("model", "planning"):
                continue
            clock.check()
            path = folder / ("model.safetensors" if seed == 1 else f"seed-{seed}.safetensors")
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = build_model(settings.model, settings.id, options=settings.options)
            OutsideModel(model)  # raises where a method is missing
            if not isinstance(model, nn.Module):
                raise InvalidValueError(
                    f"{settings.model} is a {type(model).__name__}, which has nothing to train",
                    allowed="a Torch module",
                    fix=f"interverse score {settings.model} scores it as it is",
                )
            if path.exists():
                model.load_state_dict(read_safetensors(path))
            else:
                with clock.timed(f"seed {seed}: data and training"):
                    history = _trained(settings, model, clock, seed=seed, **sizes)
                record.note("history", history)
                write_safetensors(path, model.state_dict())
            _score(settings, record, model, clock)

    def page(seeds: list[dict[str, Any]]) -> None:
        write_scores_page(folder, f"{settings.model} in {settings.id}", seeds)

    asked = {"model": settings.model, "sizes": sizes}
    return fit_seeds(settings, asked, clock, work=work, page=page)


def _trained(
    settings: FitOwn, model: nn.Module, clock: Clock, *, seed: int, episodes: int, epochs: int
) -> list[dict[str, Any]]:
    """Trains a model in place on random play; returns its loss by epoch."""
    grid, start = settings.id.startswith(FAMILIES), region_seed("training", seed)
    if grid:
        options = {**settings.options, "max_steps": _STEPS + 1}
        env: Any = make_vec(settings.id, episodes, **options)
    else:
        env = state_worlds(settings.id, episodes, steps=_STEPS, options=settings.options)
    try:
        first, _ = env.reset(seed=start)
        drawn = random_actions(env, _STEPS, start)
        played = play(env, drawn, lambda o: np.array(o["image"] if grid else o), first)
    finally:
        env.close()
    seen, actions = played.states, drawn.swapaxes(0, 1)
    model.to(settings.device).train()
    rate = _RATE if settings.learning_rate is None else settings.learning_rate
    batch = _BATCH if settings.batch_size is None else settings.batch_size
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    rng, history = generator(seed=seed, name="fit/own"), list[dict[str, Any]]()
    loss_of: Any = getattr(model, "loss", None)
    windows = _STEPS + 1 - _WINDOW
    scenes = min(_SCENES, batch, episodes)
    places = np.arange(_WINDOW + 1)
    for epoch in range(1, epochs + 1):
        total, order = 0.0, rng.permutation(episodes)
        groups = [order[i : i + scenes] for i in range(0, episodes, scenes)]
        for group in groups:
            e = rng.choice(group, size=batch)
            t = rng.integers(windows, size=batch)[:, None] + places
            frames = torch.as_tensor(seen[e[:, None], t], device=settings.device)
            acts = torch.as_tensor(actions[e[:, None], t[:, :-1]], device=settings.device)
            loss = loss_of(frames, acts) if callable(loss_of) else _info_nce(model, frames, acts)
            if not loss.requires_grad:
                raise InvalidValueError(
                    f"the loss of {settings.model} follows from no weight",
                    fix="Leave no_grad, detach and NumPy out of loss, encode and rollout",
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        if epoch % max(1, epochs // _LINES) == 0:
            clock.say(f"{settings.model}: {epoch}/{epochs} epochs, loss {total / len(groups):.4g}")
        row = {"stage": "training", "epoch": epoch, "train": total / len(groups)}
        history.append({**row, "valid": row["train"]})
    still = [n for n, p in model.named_parameters() if n in before and torch.equal(p, before[n])]
    if still and epochs:
        clock.say(f"training left weights as they were: {', '.join(still)}")
    model.eval()
    return history


def _info_nce(model: Any, frames: Tensor, actions: Tensor) -> Tensor:
    """Returns how badly predictions are told from the other frames of a batch of windows."""
    latents = model.encode(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
    predicted = model.rollout(latents[:, 0], actions).flatten(2)
    targets = latents[:, 1:].flatten(2)
    size, total = len(frames), frames.new_zeros((), dtype=torch.float32)
    keys = torch.cat([latents.flatten(2)[:, 0], targets.flatten(0, 1)])
    for k in range(targets.shape[1]):
        near = -torch.cdist(predicted[:, k], keys).square() / _TEMPERATURE
        own = torch.arange(size, device=frames.device) * targets.shape[1] + k + size
        # The same picture at another time is no mistake.
        same = torch.cdist(targets[:, k], keys) < 1e-6
        same[torch.arange(size), own] = False
        total = total + functional.cross_entropy(near.masked_fill(same, -1e9), own)
    return total / targets.shape[1]
