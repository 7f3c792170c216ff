"""DMC Remastered's protocols: one factor of the look at a time, and seeds that never meet.

A policy is trained on visual seed 0, the default look (zero-shot), or on looks drawn from
`TRAIN_SEEDS` (few-shot, the option `visual_seed=(1, 999999)`). It is tested on 100 looks from
`TEST_SEEDS`, each from three starting states of its own, so every episode starts elsewhere.
`E_G = (train - test) / train`, in `results.tables.generalisation_errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interverse.protocols.protocol import Protocol

DEFAULT_LOOK = 0
TRAIN_SEEDS = range(1, 1_000_000)
VALID_SEEDS = range(1_000_000, 2_000_000)
TEST_SEEDS = range(2_000_000, 100_000_000)

# 100 looks of each range, evenly spaced. Look and starting state change together from episode to
# episode: with one start for all looks, fifty episodes of a policy that sees no look are one.
_TRAIN_LOOKS = range(1, 1_000_000, 10_000)
_VALID_LOOKS = range(1_000_000, 2_000_000, 10_000)
_TEST_LOOKS = range(2_000_000, 100_000_000, 980_000)
STARTS_PER_LOOK = 3


def _tested(
    name: str,
    looks: Sequence[int] = _TEST_LOOKS,
    vary: tuple[str, ...] | None = None,
    note: str = "",
) -> Protocol:
    """Returns a test in these looks with the named switches on; None: all of them."""
    return Protocol(
        name=name,
        grid={"visual_seed": looks, "dynamics_seed": range(STARTS_PER_LOOK * len(looks))},
        paired=True,
        options={} if vary is None else {"vary": vary},
        note=note,
    )


REMASTERED = (
    Protocol(
        name="train",
        grid={"visual_seed": (DEFAULT_LOOK,), "dynamics_seed": range(100)},
        paired=True,
        note="the default look, 100 starting states: the training score",
    ),
    _tested("none", vary=(), note="no factor varies"),
    _tested("light", vary=("light",)),
    _tested("camera", vary=("camera",)),
    _tested("body", vary=("body",)),
    _tested("floor", vary=("floor",)),
    _tested("background", vary=("bg",)),
    _tested("all", note="every factor: the zero-shot test"),
    _tested("few_shot_train", _TRAIN_LOOKS, note="looks that few-shot training may draw"),
    _tested("few_shot_valid", _VALID_LOOKS, note="looks to choose a model by"),
    _tested("few_shot_test", note="the same looks as under all"),
)


def _shifted(name: str, note: str, **more: Any) -> Protocol:
    """Returns a test in the default look but for one shift, 300 starting states, by name only."""
    grid = {"visual_seed": (DEFAULT_LOOK,), "dynamics_seed": range(300)}
    return Protocol(name=name, grid=grid, paired=True, by_name=True, note=note, **more)


def _distracted(name: str, level: str, note: str) -> Protocol:
    return _shifted(name, note, options={"distraction": level})


PICTURES = (
    _shifted("pictures_a", "floors and skies to train with", variables={"*/texture": "A"}),
    _shifted("pictures_b", "floors and skies held out", variables={"*/texture": "B"}),
)
DISTRACTIONS = (
    _distracted("color_easy", "color_easy", "DMC-GB: colours near the default ones"),
    _distracted("color_hard", "color_hard", "DMC-GB: colours farther from them"),
    _distracted("video_easy", "video_easy", "DMC-GB: ten videos behind the robot"),
    _distracted("video_hard", "video_hard", "DMC-GB: videos behind and below it"),
    _distracted("distracting_easy", "easy", "Distracting Control, scale 0.1"),
    _distracted("distracting_medium", "medium", "Distracting Control, scale 0.2"),
    _distracted("distracting_hard", "hard", "Distracting Control, scale 0.3"),
)
CONTROL = (*REMASTERED, *PICTURES, *DISTRACTIONS)
"""Every protocol of a control task; "all" means DMC Remastered's."""
