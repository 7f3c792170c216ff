"""One world model: encode an image, predict under an action, decode back to an image."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, final

import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.registry import Entry
from interverse.core.type_checks import blames_fields, named, one_of, validated
from interverse.models.encoders import MAP_EDGE, Decoder, Encoder, PictureEncoder, Size
from interverse.models.layers import Reduce, full_precision
from interverse.models.patches import Seen
from interverse.models.recurrent import Memory
from interverse.models.source import DataWorld, check_same_world
from interverse.models.table import ModelEntry, entry
from interverse.models.transitions import ActionInput

Loss = Literal["nll", "contrastive", "jepa"]

SETTINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # The published code's networks with the embedding its tables were made with.
        "reference": {},
        # The same as its command lines show it.
        "readme": {"embedding": 128},
        # The networks and the contrastive loss as the paper prints them. Its table gives the
        # decoder's last layer 50 channels, which is no image; ours has 3.
        "paper": {
            "encoder_channels": 512,
            "decoder_width": 512,
            "layer_norm": False,
            "norm_first": False,
            "negatives": "next",
            "energy": "mean",
        },
    }
)


@blames_fields
@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class WorldModelConfig:
    """Everything that decides a world model's shape and loss.

    >>> WorldModelConfig.named("reference", model="modular", objects=3).actions
    15
    """

    model: str
    """A name of `interverse.models.MODELS`: ae, vae, gnn, action_gnn, modular, ..."""
    objects: int
    actions_per_object: int = 5
    """5 moves in blocks; the number of colours in chemistry."""
    loss: Loss = "contrastive"
    """contrastive and jepa need no decoder; nll trains in three stages and can draw what it
    predicts. jepa predicts the next encoding while variance and covariance terms keep encodings
    from collapsing (VICReg), so it needs no negatives."""
    encoder: Annotated[Size, named("encoder size", one_of(MAP_EDGE))] = "medium"
    embedding: int = 32
    """Numbers per object."""
    hidden: int = 512
    encoder_channels: int = 32
    decoder_width: int = 256
    """nll only."""
    layer_norm: bool = True
    norm_first: bool = True
    """Batch norm before the activation."""
    action_input: ActionInput = "own"
    """gnn only: which slots see the action."""
    width: int = 1
    """modular, learned_graph: multiplies the hidden width of each object's network."""
    graph: tuple[tuple[int, ...], ...] | None = None
    """learned_graph only: a known graph to use instead of learning one; [i][j] is j -> i."""
    num_graphs: int = 10
    """learned_graph only: samples per structural batch; more gives steadier logits."""
    sparsity: float = 0.01
    """learned_graph only: weight of the expected number of edges; raise it if all edges stay."""
    hinge: float = 1.0
    """Contrastive loss only, as `negatives` and `energy`; `sigma` serves a learned graph too."""
    sigma: float = 0.5
    negatives: Literal["current", "next"] = "current"
    """Which states the contrastive loss keeps apart."""
    energy: Reduce = "sum"

    def __post_init__(self) -> None:
        entry(self.model)  # raises for an unknown one
        sizes = ("objects", "actions_per_object", "embedding", "hidden", "encoder_channels")
        for name in (*sizes, "decoder_width", "width", "num_graphs"):
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.loss not in self.entry.losses:
            allowed = ", ".join(self.entry.losses)
            raise InvalidValueError(
                f"model {self.model!r} has no {self.loss} loss", allowed=allowed
            )
        usual = {field.name: field.default for field in dataclasses.fields(self)}
        for name, owner in _unused(self.model, self.loss, self.graph is not None).items():
            if getattr(self, name) != usual[name]:
                raise InvalidValueError(
                    f"{name} belongs to {owner}, not to {self.model!r} with loss {self.loss!r}",
                    fix=f"Leave it out (it is {usual[name]!r} then)",
                )

    @classmethod
    def named(cls, setting: str, **choices: Any) -> WorldModelConfig:
        """Returns a named setting (reference, readme, paper) with some fields chosen.

        What the setting says of other models and losses is left out.
        """
        check_name("setting", setting, SETTINGS)
        loss, known = choices.get("loss", "contrastive"), choices.get("graph") is not None
        unused = _unused(choices.get("model", ""), loss, known)
        used = {name: value for name, value in SETTINGS[setting].items() if name not in unused}
        return cls(**{**used, **choices})

    @property
    def actions(self) -> int:
        """How many actions there are in all."""
        return self.objects * self.actions_per_object

    def check_actions(self, actions: Tensor) -> None:
        """Raises unless the model tells all of these actions apart; others would look like none."""
        least, most = (int(end) for end in actions.aminmax()) if actions.numel() else (0, 0)
        if least < 0 or most >= self.actions:
            raise InvalidValueError(
                f"there are actions from {least} to {most}, and the model knows"
                f" {self.actions}: {self.objects} objects x {self.actions_per_object}",
                allowed=f"actions from 0 to {self.actions - 1}",
                fix="Set objects and actions_per_object (5 in blocks, the number of colours in"
                " chemistry) as in the world of the data",
            )

    @property
    def entry(self) -> ModelEntry:
        """The model's row of the table of models."""
        return entry(self.model)

    @property
    def recurrent(self) -> bool:
        """Whether prediction needs a memory."""
        return self.entry.memory

    @property
    def slots(self) -> int:
        """How many vectors a state has: one per object, or one for the whole scene."""
        return self.objects if self.entry.slots else 1

    @property
    def slot_width(self) -> int:
        """The length of one of them."""
        return self.embedding * self.objects // self.slots

    @property
    def pixels_per_slot(self) -> int:
        """Values of the encoder's maps that belong to one slot."""
        return MAP_EDGE[self.encoder] ** 2 * self.objects // self.slots

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> WorldModelConfig:
        """Returns the config that `to_dict` gave, also after a trip through JSON.

        Older files may hold choices that their model ignored: these are left out.
        """
        fields = dict(fields)
        if fields.get("graph") is not None:
            fields["graph"] = tuple(tuple(row) for row in fields["graph"])
        loss, known = fields.get("loss", "contrastive"), fields.get("graph") is not None
        unused = _unused(fields["model"], loss, known)
        return cls(**{name: value for name, value in fields.items() if name not in unused})


def _unused(model: str, loss: str, graph_known: bool) -> dict[str, str]:
    """Returns the fields that a model with a loss ignores, and what each belongs to."""
    learns = model == "learned_graph" and not graph_known
    contrast = loss == "contrastive"
    owners = {
        "action_input": ("the gnn", model == "gnn"),
        "graph": ("the learned_graph model", model == "learned_graph"),
        "width": ("modular and learned_graph", model in ("modular", "learned_graph")),
        "num_graphs": ("a learned_graph without a known graph", learns),
        "sparsity": ("a learned_graph without a known graph", learns),
        "sigma": ("the contrastive loss and a graph that is learned", contrast or learns),
        "hinge": ("the contrastive loss", contrast),
        "negatives": ("the contrastive loss", contrast),
        "energy": ("the contrastive loss", contrast),
        "decoder_width": ("the nll loss, which has a decoder", loss == "nll"),
    }
    return {name: owner for name, (owner, used) in owners.items() if not used}


@final
class WorldModel(nn.Module):
    """Encoder, transition and (for nll) decoder.

    A state is (B, slots, slot_width); flat models have one slot.
    """

    encoder: PictureEncoder
    decoder: nn.Module | None
    trained_in: DataWorld | None = None
    """The world of its training data; rewards, probes and plans of another one are refused. None
    where that is not known, or where another world is meant: `model.trained_in = None`."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.config = config
        if config.entry.vision is None:
            self.encoder = Encoder(config)
            decoder = Decoder(config) if config.loss == "nll" else None
        else:
            self.encoder, decoder = Entry(config.entry.vision).load()(config)
        self.decoder = decoder if config.loss == "nll" else None
        self.transition = Entry(config.entry.build).load()(config)

    @classmethod
    def seeded(cls, config: WorldModelConfig, seed: int) -> WorldModel:
        """Returns a model whose weights are a function of the seed alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config)

    def check_world(self, what: str, world: DataWorld | None) -> None:
        """Raises for what is of another world than the model's training data."""
        fix = "Train a model there; to carry this one over on purpose, set model.trained_in = None"
        check_same_world(what, world, "a model", self.trained_in, fix=fix)

    def encode(self, images: Seen) -> Tensor:
        """Returns the states (B, slots, slot_width) of images (B, 3, 50, 50); a VAE's means."""
        return self.posterior(images)[0] if self.config.entry.samples else self.encoder(images)

    def posterior(self, images: Seen) -> tuple[Tensor, Tensor]:
        """Returns mean and log-variance of a VAE's states."""
        mean, log_variance = self.encoder(images).chunk(2, dim=-1)
        return mean, log_variance

    def start(self, batch: int) -> Memory:
        """Returns the empty memory of fresh episodes; models without one have no tensors in it."""
        return self.transition.start(batch) if self.config.recurrent else ()

    def step(self, state: Tensor, action: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the predicted next states and the memory after actions (B,)."""
        with full_precision(state):
            if self.config.recurrent:
                return self.transition(state, action, memory)
            return self.transition(state, action), ()

    def predict(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the predicted next states, from an empty memory."""
        self.config.check_actions(action)
        return self.step(state, action, self.start(len(state)))[0]

    def rollout(self, state: Tensor, actions: Tensor) -> Tensor:
        """Returns (K, B, slots, slot_width): the states after 1..K of the actions (B, K)."""
        self.config.check_actions(actions)
        memory, states = self.start(len(state)), []
        for k in range(actions.shape[1]):
            state, memory = self.step(state, actions[:, k], memory)
            states.append(state)
        return torch.stack(states)

    def decode(self, state: Tensor) -> Tensor:
        """Returns image logits (B, 3, 50, 50)."""
        if self.decoder is None:
            raise InvalidValueError(
                "a contrastive model has no decoder", fix="Train it with loss='nll'"
            )
        return self.decoder(state)
