"""Training a world model: its stages, their samples and losses, its seeds, and what comes back.

| stage | trains | loss |
|---|---|---|
| contrastive | encoder, transition | contrastive |
| jepa | encoder, transition | squared error of the next encoding, variance and covariance terms |
| pretrain | encoder, decoder | image x_t (+ KL) |
| transition | transition | squared error of the next state, on encodings made once |
| finetune | all | image x_t and the predicted x_t+1, squared error (+ 2 KL) |

Recurrent models train the last two on whole episodes: at every step the true frame is encoded
again and the memory is carried on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import plain, read_json_object
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.models.fit import Draw, Feed, Fit, Listener, ModelStage, Needs, train_stages
from interverse.models.layers import (
    Energy,
    contrastive_loss,
    full_precision,
    image_loss,
    jepa_loss,
    kl_loss,
    transition_loss,
)
from interverse.models.learner import Learner, member
from interverse.models.patches import Seen, viewer
from interverse.models.source import (
    DataWorld,
    ModelBatch,
    TransitionSource,
    check_same_world,
    num_frames,
    num_transitions,
    places,
    source_record,
)
from interverse.models.table import MODELS
from interverse.models.transitions import LearnedGraphTransition, structural_loss
from interverse.models.world_model import WorldModel, WorldModelConfig

STAGES = {
    "contrastive": ("contrastive",),
    "jepa": ("jepa",),
    "nll": ("pretrain", "transition", "finetune"),
}

TRAINED = {
    "contrastive": ("encoder", "transition"),
    "jepa": ("encoder", "transition"),
    "pretrain": ("encoder", "decoder"),
    "transition": ("transition",),
    "finetune": ("encoder", "decoder", "transition"),
}
"""The parts of a world model that a stage changes; the others keep weights and statistics."""


class Latents(NamedTuple):
    """Encoded transitions, or with a time axis after the batch, encoded episodes."""

    state: Tensor  # (B, slots, width) or (B, T, slots, width)
    action: Tensor  # (B,) or (B, T)
    next_state: Tensor
    spread: Tensor | None = None  # standard deviations, where a VAE's states are to be sampled
    next_spread: Tensor | None = None


class Episodes(NamedTuple):
    """Whole episodes as images."""

    frames: Tensor  # (B, T + 1, 3, H, W) float32
    action: Tensor  # (B, T) int64


@final
class Objective(nn.Module):
    """A world model in one stage: batch and random numbers to a loss."""

    def __init__(self, model: WorldModel, stage: str) -> None:
        super().__init__()
        self.model = model
        self.stage = stage

    def train(self, mode: bool = True) -> Objective:
        """Switches batch norm and dropout on in the parts this stage trains, off elsewhere."""
        super().train(mode)
        for name in {"encoder", "decoder", "transition"} - set(TRAINED[self.stage]):
            part = getattr(self.model, name)
            if part is not None:
                part.eval()
        return self

    def forward(self, batch: Any, draw: Draw) -> Tensor:
        """Returns the scalar loss of a batch, in the form that the stage's feed gives."""
        if draw.structural:
            return self._structural(batch, draw)
        if isinstance(batch, Episodes):
            return self._finetune_episodes(batch)
        loss: Tensor = getattr(self, f"_{self.stage}")(batch, draw)
        return loss

    def _pretrain(self, images: Tensor, draw: Draw) -> Tensor:
        state, divergence = self._sampled(images, draw.normal, 0)
        return image_loss(self.model.decode(state), images) + divergence

    def _transition(self, latents: Latents, draw: Draw) -> Tensor:
        state, action, following = latents.state, latents.action, latents.next_state
        if action.ndim == 2:
            predicted, surplus = _along(self.model, state, action, following)
            return transition_loss(predicted.flatten(0, 1), following.flatten(0, 1)) + surplus
        if self.training and latents.spread is not None and latents.next_spread is not None:
            state = state + latents.spread * draw.normal[0]
            following = following + latents.next_spread * draw.normal[1]
        return transition_loss(self._predict(state, action, draw), following)

    def _contrastive(self, batch: ModelBatch, draw: Draw) -> Tensor:
        config = self.model.config
        state = self.model.encode(batch.obs)
        following = self.model.encode(batch.next_obs)
        predicted = self._predict(state, batch.action, draw)
        apart = state if config.negatives == "current" else following
        pull, push = contrastive_loss(
            apart,
            apart[draw.order],
            predicted,
            following,
            hinge=config.hinge,
            energy=Energy(sigma=config.sigma, reduce=config.energy),
        )
        return pull + push

    def _jepa(self, batch: ModelBatch, draw: Draw) -> Tensor:
        state, following = self.model.encode(batch.obs), self.model.encode(batch.next_obs)
        predicted = self._predict(state, batch.action, draw)
        return jepa_loss(predicted, following, state)

    def _finetune(self, batch: ModelBatch, draw: Draw) -> Tensor:
        state, divergence = self._sampled(batch.obs, draw.normal, 0)
        following, more = self._sampled(batch.next_obs, draw.normal, 1)
        predicted = self._predict(state, batch.action, draw)
        return (
            image_loss(self.model.decode(state), batch.obs)
            + image_loss(self.model.decode(predicted), batch.next_obs)
            + transition_loss(predicted, following)
            + divergence
            + more
        )

    def _finetune_episodes(self, batch: Episodes) -> Tensor:
        images = batch.frames.flatten(0, 1)
        states = self.model.encode(images).unflatten(0, batch.frames.shape[:2])
        now, following = states[:, :-1].flatten(0, 1), states[:, 1:].flatten(0, 1)
        along, surplus = _along(self.model, states[:, :-1], batch.action, states[:, 1:])
        predicted = along.flatten(0, 1)
        return (
            image_loss(self.model.decode(now), batch.frames[:, :-1].flatten(0, 1))
            + image_loss(self.model.decode(predicted), batch.frames[:, 1:].flatten(0, 1))
            + transition_loss(predicted, following)
            + surplus
        )

    def _sampled(self, images: Seen, normal: Tensor, which: int) -> tuple[Tensor, Tensor]:
        """Returns states and their divergence: a VAE's sample in training, its mean otherwise."""
        if not self.model.config.entry.samples:
            state = self.model.encode(images)
            return state, state.new_zeros(())
        mean, log_variance = self.model.posterior(images)
        state = mean
        if self.training:
            state = mean + torch.exp(0.5 * log_variance) * normal[which]
        return state, kl_loss(mean, log_variance)

    def _predict(self, state: Tensor, action: Tensor, draw: Draw) -> Tensor:
        transition = self.model.transition
        if self.training and isinstance(transition, LearnedGraphTransition):
            return transition.under(transition.sample(draw.uniform)[0], state, action)
        return self.model.step(state, action, self.model.start(len(state)))[0]

    def _structural(self, batch: ModelBatch | Latents, draw: Draw) -> Tensor:
        """Returns a loss that moves the graph alone."""
        transition, config = self.model.transition, self.model.config
        graphs = transition.sample(draw.uniform)
        energy = Energy(sigma=config.sigma)
        with torch.no_grad():  # (graphs, objects): how badly each object is predicted under each
            if isinstance(batch, Latents):
                state, following = batch.state, batch.next_state
            else:
                state, following = self.model.encode(batch.obs), self.model.encode(batch.next_obs)
            under = [transition.under(graph, state, batch.action) for graph in graphs]
            losses = torch.stack([energy(one, following).mean(0) for one in under])
        return structural_loss(transition, graphs, losses, sparsity=config.sparsity)


def _along(
    model: WorldModel, states: Tensor, actions: Tensor, following: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns one-step predictions (B, T, slots, width) along true states, memory carried on.

    And the mean over steps of what the transition's own divergence from the true next states adds.
    """
    along = getattr(model.transition, "along", None)
    if along is not None:
        with full_precision(states):
            return along(states, actions, following)
    memory, predicted = model.start(len(states)), []
    for t in range(actions.shape[1]):
        step, memory = model.step(states[:, t], actions[:, t], memory)
        predicted.append(step)
    return torch.stack(predicted, dim=1), states.new_zeros(())


# ----------------------------------------------------------------------------------------- samples


def feed(stage: str, source: TransitionSource, learner: Learner, how: Fit) -> Feed:
    """Returns the samples that a stage of a model trains on, loading only what it will use.

    The encoder rests in the transition stage, so every frame is encoded once, here.
    """
    model = cast("WorldModel", learner.module)
    whole = model.config.recurrent
    if stage == "finetune" and whole:
        length = source.num_steps + 1

        def load_frames(chosen: Tensor) -> Episodes:
            numbers = chosen[:, None] * length + torch.arange(length, device=source.device)
            frames = source.frames(numbers.flatten()).unflatten(0, numbers.shape)
            return Episodes(frames, _actions(source, chosen))

        return Feed(source.num_episodes, load_frames)
    if stage == "transition":
        return _latent_feed(learner, source, how, whole=whole)
    # A decoder, which needs whole frames, costs many times the encoder: windows would gain little.
    suits = model.encoder.patchable and model.decoder is None
    see, check = viewer(source, model.encoder.maps, suits=suits, batch=how.batch_size)

    def load(chosen: Tensor) -> Any:
        where = places(source, chosen)
        if stage == "pretrain":
            return see(where.frame)
        return ModelBatch(see(where.frame), where.action, see(where.next_frame))

    own_orders = how.order_seed is None and learner.members > 1  # numbers are (members, B)
    return Feed(num_transitions(source), load, 0 if own_orders else None, check)


@final
class _Encode(nn.Module):
    """A world model seen as images to (mean, standard deviation); AE deviations are zero-sized."""

    def __init__(self, model: WorldModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        if not self.model.config.entry.samples:
            state = self.model.encode(images)
            return state, state[..., :0]
        mean, log_variance = self.model.posterior(images)
        return mean, torch.exp(0.5 * log_variance)


def _latent_feed(learner: Learner, source: TransitionSource, how: Fit, *, whole: bool) -> Feed:
    """Returns encoded transitions, or episodes where they are wanted whole."""
    model = cast("WorldModel", learner.module)
    encode = _Encode(model).eval()
    numbers = torch.arange(num_frames(source), device=source.device)
    with torch.no_grad():
        parts = [
            learner.call(encode, (source.frames(chosen),), (None,))
            for chosen in numbers.split(how.batch_size)
        ]
    states, spreads = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    sampled = how.sample_latents and model.config.entry.samples

    def load_transitions(chosen: Tensor) -> Latents:
        where = places(source, chosen)
        own = torch.arange(len(states), device=states.device)[:, None]  # beside (B,), (members, B)
        return Latents(
            states[own, where.frame],
            where.action.expand(len(states), -1),
            states[own, where.next_frame],
            spreads[own, where.frame] if sampled else None,
            spreads[own, where.next_frame] if sampled else None,
        )

    def load_episodes(chosen: Tensor) -> Latents:
        episodes = states.unflatten(1, (-1, source.num_steps + 1))[:, chosen]
        return Latents(episodes[:, :, :-1], _actions(source, chosen), episodes[:, :, 1:])

    spread = 0 if sampled else None
    axes = Latents(0, None if whole else 0, 0, spread, spread)  # type: ignore[arg-type]
    if whole:
        return Feed(source.num_episodes, load_episodes, axes)
    return Feed(num_transitions(source), load_transitions, axes)


def _actions(source: TransitionSource, chosen: Tensor) -> Tensor:
    steps = torch.arange(source.num_steps, device=source.device)
    numbers = chosen[:, None] * source.num_steps + steps
    return source.actions(numbers.flatten()).unflatten(0, numbers.shape)


# ---------------------------------------------------------------------------------------- training


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

    learns = config.model == "learned_graph" and config.graph is None
    graphs = (config.num_graphs, config.objects, config.objects)

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
            needs=Needs(
                negatives=name == "contrastive",
                normal=(config.slots, config.slot_width) if config.entry.samples else None,
                graphs=graphs if learns and name != "pretrain" else None,
            ),
        )

    stages = [stage(name) for name in STAGES[config.loss] if how.finetune or name != "finetune"]
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
    results: list[Fitted] = []
    for seeds in [how.seeds] if together else [(seed,) for seed in how.seeds]:
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
