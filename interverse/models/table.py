"""The table of world models: one row per name, and what the trainer must know of it.

A model of one's own is one file with a function from a `WorldModelConfig` to a transition module,
and one row: `MODELS["mine"] = ModelEntry("my_package.my_file:build")`. A transition maps states
(B, slots, width) and actions (B,) to next states of the same shape.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from interverse.core.errors import check_name


@final
@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One world model.

    Attributes:
        build: "module:function", from a config to the transition; loaded when first used.
        slots: one state per object; else one flat state for the whole scene.
        memory: the transition carries a memory: `start(batch)` gives an empty one, a call takes
            and returns it. Such models train on whole episodes.
        samples: the encoder gives a mean and a log-variance, and training samples states.
        stacks: several seeds can train at once as stacked weights.
        losses: the losses it can train with.
        vision: "module:function", from a config to an encoder (a `PictureEncoder`) and a decoder of
            its own; None for those of `interverse.models.encoders`.
    """

    build: str
    slots: bool = True
    memory: bool = False
    samples: bool = False
    stacks: bool = False
    losses: tuple[str, ...] = ("contrastive", "jepa", "nll")
    vision: str | None = None

    def builder(self) -> Callable[[Any], Any]:
        """Returns the function that makes the transition."""
        return _loaded(self.build)

    def vision_builder(self) -> Callable[[Any], tuple[Any, Any]] | None:
        """Returns the function that makes the encoder and the decoder; None for the usual ones."""
        return None if self.vision is None else _loaded(self.vision)


def _loaded(place: str) -> Callable[[Any], Any]:
    module, _, name = place.partition(":")
    found: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return found


_HERE = "interverse.models."
MODELS: dict[str, ModelEntry] = {
    "action_gnn": ModelEntry(f"{_HERE}action_gnn:build", stacks=True),
    "ae": ModelEntry(f"{_HERE}autoencoder:build", slots=False, stacks=True),
    "gnn": ModelEntry(f"{_HERE}gnn:build", stacks=True),
    "learned_graph": ModelEntry(f"{_HERE}learned_graph:build", losses=("contrastive", "nll")),
    "lstm": ModelEntry(f"{_HERE}recurrent:build", slots=False, memory=True, losses=("nll",)),
    "modular": ModelEntry(f"{_HERE}modular:build", stacks=True),
    "rim": ModelEntry(f"{_HERE}rim:build", slots=False, memory=True, losses=("nll",)),
    "rssm": ModelEntry(f"{_HERE}rssm:build", slots=False, memory=True, losses=("nll",)),
    "scoff": ModelEntry(f"{_HERE}scoff:build", slots=False, memory=True, losses=("nll",)),
    "slot_transformer": ModelEntry(
        f"{_HERE}slot_attention:build", vision=f"{_HERE}slot_attention:build_vision"
    ),
    "transformer": ModelEntry(f"{_HERE}transformer:build"),
    "vae": ModelEntry(
        f"{_HERE}autoencoder:build", slots=False, samples=True, stacks=True, losses=("nll",)
    ),
}
"""By name; `WorldModelConfig(model=...)` takes these, and every model runs through its row."""


def entry(name: str) -> ModelEntry:
    """Returns a model's row."""
    check_name("model", name, MODELS)
    return MODELS[name]
