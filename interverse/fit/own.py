"""Training of anyone's world model by its two methods: `interverse fit ID --model MODULE:BUILD`.

The module's own `loss(observations, actions)` is minimised, where it has one: windows (B, K + 1,
...) of what was seen and the actions (B, K, ...) between. Otherwise predictions are told from the
other frames of their batch (InfoNCE): each batch holds whole stretches of episodes, so that most of
what a prediction is told from is the same scene at another time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator, region_seed
from interverse.envs import make_vec
from interverse.fit.page import write_scores_page
from interverse.fit.settings import FitRequest, score_budget
from interverse.fit.work import Clock, Record, run_stamp
from interverse.models.checkpoint import read_tensors, write_tensors
from interverse.models.state_network import play, random_actions, state_worlds
from interverse.scoring.built import build_model
from interverse.scoring.grid import FAMILIES
from interverse.scoring.outside import OutsideModel
from interverse.scoring.world_model import score_world_model

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
class FitOwn(FitRequest):
    """Trains a Torch module with `encode` and `rollout` in a world, and scores it."""

    model: str
    """MODULE:BUILD."""
    device: str = "cpu"
    batch_size: int | None = None
    learning_rate: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check()

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.folder_named(self.model.replace(":", "."))

    def command(self) -> str:
        """Returns the command line that asks for this."""
        return f"interverse fit {self.id} --model {self.model} --budget {self.budget}"


def fit_own(settings: FitOwn) -> dict[str, Any]:
    """Returns all scores, after writing weights, scores and one page to `settings.folder`."""
    clock, records = Clock(settings.time_limit), []
    episodes, epochs = _SIZES[settings.budget]
    epochs = epochs if settings.epochs is None else settings.epochs
    sizes = {"episodes": episodes, "epochs": epochs}
    asked = {"world": settings.id, "options": dict(settings.options), "model": settings.model}

    def work() -> None:
        for seed in range(1, settings.seeds + 1):
            name = f"seed-{seed}.json"
            record = Record(settings.folder / name, {**asked, "sizes": sizes, "seed": seed})
            records.append(record)
            if record.has("model", "planning"):
                continue
            clock.check()
            record.made_by_run(run_stamp(settings.command(), settings.device))
            path = settings.folder / (
                "model.safetensors" if seed == 1 else f"seed-{seed}.safetensors"
            )
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = build_model(settings.model, settings.id, options=settings.options)
            _check_module(settings.model, model)
            if path.exists():
                model.load_state_dict(read_tensors(path))
            else:
                with clock.timed(f"seed {seed}: data and training"):
                    history = _trained(settings, model, clock, seed=seed, sizes=(episodes, epochs))
                record.note("history", history)
                write_tensors(path, model.state_dict())
            with clock.timed(f"seed {seed}: scores"):
                scores = score_world_model(
                    model,
                    settings.id,
                    budget=score_budget(settings.budget),
                    device=settings.device,
                    **settings.options,
                )
            for kind, score in scores.scores.items():
                record.put("model", kind, score)

    complete = clock.ends(work)
    seeds = [record.content for record in records]
    if complete:
        write_scores_page(settings.folder, f"{settings.model} in {settings.id}", seeds)
        clock.say(f"written: {settings.folder / 'index.html'}")
    first = seeds[0]["scores"].get("model", {}) if seeds else {}
    return {**first, "complete": complete, "folder": str(settings.folder), "seeds": seeds}


def _check_module(name: str, model: Any) -> None:
    OutsideModel(model)  # raises where a method is missing
    if not isinstance(model, nn.Module):
        raise InvalidValueError(
            explain(
                f"{name} is a {type(model).__name__}, which has nothing to train",
                allowed="a Torch module",
                fix=f"interverse score {name} scores it as it is",
            )
        )


def _trained(
    settings: FitOwn, model: nn.Module, clock: Clock, *, seed: int, sizes: tuple[int, int]
) -> list[dict[str, Any]]:
    """Trains a model in place; returns its loss by epoch."""
    episodes, epochs = sizes
    seen, actions = _episodes(settings, count=episodes, seed=seed)
    model.to(settings.device).train()
    rate = _RATE if settings.learning_rate is None else settings.learning_rate
    batch = _BATCH if settings.batch_size is None else settings.batch_size
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
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
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        if epoch % max(1, epochs // _LINES) == 0:
            clock.say(f"{settings.model}: {epoch}/{epochs} epochs, loss {total / len(groups):.4g}")
        row = {"stage": "training", "epoch": epoch, "train": total / len(groups)}
        history.append({**row, "valid": row["train"]})
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


def _episodes(settings: FitOwn, *, count: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns what is seen (E, T + 1, ...) and done (E, T, ...) in random play."""
    grid = settings.id.startswith(FAMILIES)
    if grid:
        env: Any = make_vec(settings.id, count, **{**settings.options, "max_steps": _STEPS + 1})
    else:
        env = state_worlds(settings.id, count, steps=_STEPS, options=settings.options)
    start = region_seed("training", seed)

    def shown(observation: Any) -> NDArray[Any]:
        return np.array(observation["image"] if grid else observation)

    try:
        first, _ = env.reset(seed=start)
        actions = random_actions(env, _STEPS, start)
        return play(env, actions, shown, first).states, actions.swapaxes(0, 1)
    finally:
        env.close()
