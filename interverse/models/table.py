"""The table of world models: one row per name, and what the trainer must know of it.

A model of one's own is one file with a function from a `WorldModelConfig` to a transition module,
and one row: `MODELS["mine"] = ModelEntry("my_package.my_file:build")`. A transition maps states
(B, slots, width) and actions (B,) to next states of the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

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


_STEP = "interverse.models.transitions:"


def _memory(name: str = "RecurrentTransition") -> ModelEntry:
    build = f"interverse.models.recurrent:{name}"
    return ModelEntry(build, slots=False, memory=True, losses=("nll",))


MODELS: dict[str, ModelEntry] = {
    "action_gnn": ModelEntry(f"{_STEP}ActionGraphTransition", stacks=True),
    "ae": ModelEntry(f"{_STEP}FlatTransition", slots=False, stacks=True),
    "gnn": ModelEntry(f"{_STEP}GraphTransition", stacks=True),
    "learned_graph": ModelEntry(f"{_STEP}LearnedGraphTransition", losses=("contrastive", "nll")),
    "lstm": _memory(),
    "modular": ModelEntry(f"{_STEP}ModularTransition", stacks=True),
    "rim": _memory(),
    "rssm": _memory("RecurrentStateTransition"),
    "scoff": _memory(),
    "slot_transformer": ModelEntry(
        f"{_STEP}TransformerTransition", vision="interverse.models.encoders:vision"
    ),
    "transformer": ModelEntry(f"{_STEP}TransformerTransition"),
    "vae": ModelEntry(
        f"{_STEP}FlatTransition", slots=False, samples=True, stacks=True, losses=("nll",)
    ),
}
"""By name; `WorldModelConfig(model=...)` takes these, and every model runs through its row."""


def entry(name: str) -> ModelEntry:
    """Returns a model's row."""
    check_name("model", name, MODELS)
    return MODELS[name]
