"""DMC Remastered's protocols: one factor of the look at a time, and seeds that never meet.

A policy is trained on visual seed 0, the default look (zero-shot), or on looks drawn from
`TRAIN_SEEDS` (few-shot, the option `visual_seed=(1, 999999)`). It is tested on 100 looks from
`TEST_SEEDS`, each from three starting states of its own, so every episode starts elsewhere. What
varies is said here and not taken from the training: a policy may have seen one factor alone.
`E_G = (train - test) / train`, in `results.tables.generalisation_errors`; for a policy of many
looks, `few_shot_train` is its training score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from interverse.envs.remastered import DEFAULT_LOOK, LOOKS
from interverse.protocols.protocol import Protocol

TRAIN_SEEDS, VALID_SEEDS, TEST_SEEDS = (LOOKS[split] for split in ("train", "valid", "test"))
# 100 looks of each range, evenly spaced. Look and starting state change together from episode to
# episode: with one start for all looks, fifty episodes of a policy that sees no look are one.
_TRAIN_LOOKS, _VALID_LOOKS, _TEST_LOOKS = (
    seeds[::step]
    for seeds, step in ((TRAIN_SEEDS, 10_000), (VALID_SEEDS, 10_000), (TEST_SEEDS, 980_000))
)
STARTS_PER_LOOK = 3


def _tested(
    name: str,
    looks: Sequence[int] = _TEST_LOOKS,
    vary: tuple[str, ...] | str = "all",
    note: str = "",
) -> Protocol:
    """Returns a test in these looks with the named switches on, from all pictures."""
    return Protocol(
        name=name,
        grid={"visual_seed": looks, "dynamics_seed": range(STARTS_PER_LOOK * len(looks))},
        paired=True,
        options={"vary": vary, "pictures": "A_B"},
        note=note,
    )


REMASTERED = (
    Protocol(
        name="train",
        grid={"visual_seed": (DEFAULT_LOOK,), "dynamics_seed": range(100)},
        paired=True,
        note="the default look, 100 starting states: the training score of that look",
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
# The protocol "all" under a name that no selection means something else by: the word "all" asks
# for every protocol of the table.
ZERO_SHOT = replace(
    _tested("zero_shot", note="every factor, 100 looks x 3 starts: the paper's test"), by_name=True
)


def _shifted(name: str, note: str, grid: Any = None, **more: Any) -> Protocol:
    """Returns a test in the default look but for one shift, 300 starting states, by name only."""
    same = {"visual_seed": (DEFAULT_LOOK,), "dynamics_seed": range(300)}
    grid = same if grid is None else same | grid
    return Protocol(name=name, grid=grid, paired=True, by_name=True, note=note, **more)


def _distracted(name: str, level: str, note: str, **more: Any) -> Protocol:
    return _shifted(name, note, options={"distraction": level, **more})


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
    *(
        _distracted(
            f"distracting_{level}_static", level, "the same, drawn once an episode", dynamic=False
        )
        for level in ("easy", "medium", "hard")
    ),
)
CONTROL = (*REMASTERED, ZERO_SHOT, *PICTURES, *DISTRACTIONS)
"""Every protocol of a control task; "all" means DMC Remastered's."""


# DMC-GB2's geometric tests: a hundred cameras, turned in their own frame. Degrees about the
# picture's vertical axis (both ways) and about its horizontal one (down, up), for the hard level.
_EDGES = {
    "ball_in_cup": (6.0, -6.0, 12.0),
    "cartpole": (8.0, -10.0, 10.0),
    "cheetah": (10.0, -10.0, 10.0),
    "finger": (6.0, -6.0, 12.0),
    "walker": (10.0, -10.0, 10.0),
}
_CAMERAS = 100
_EASY_SHIFT, _EASY_ROTATION = 1.5, 2.0  # the easy level's angles are smaller by these factors
# Cameras come in leaps, one for each motion, so that any few of them are spread over all.
_LEAPS = {"rotate": 37, "shift": 73}


def _rotations(domain: str, level: str) -> Any:
    """Returns angles about the line of sight: a whole turn, or half of it, in even steps."""
    most = 180.0 / (_EASY_ROTATION if level == "easy" else 1.0)
    return -most + 2.0 * most * np.arange(_CAMERAS)[:, None] / _CAMERAS


def _shifts(domain: str, level: str) -> Any:
    """Returns the two angles along the edges of the rectangle, a quarter of the cameras each."""
    side, low, high = _EDGES[domain]
    corners = np.array([(-side, low), (side, low), (side, high), (-side, high)])
    ahead = np.arange(_CAMERAS // 4)[:, None] / (_CAMERAS // 4)
    paths = [
        one + ahead * (other - one)
        for one, other in zip(corners, np.roll(corners, -1, 0), strict=True)
    ]
    return np.concatenate(paths) / (_EASY_SHIFT if level == "easy" else 1.0)


def _turned(domain: str, motion: str, level: str) -> Protocol:
    """Returns a test with the robot turned in the picture, moved to its edge, or both."""
    angles = np.zeros((_CAMERAS, 3))  # about the vertical, the horizontal, the line of sight
    for name, axes, found in (("shift", (0, 1), _shifts), ("rotate", (2,), _rotations)):
        if name in motion:
            order = np.arange(_CAMERAS) * _LEAPS[name] % _CAMERAS
            angles[:, axes] = found(domain, level)[order]
    turns = Rotation.from_euler("YXZ", angles, degrees=True).as_rotvec()
    grid = {"camera/rotation": tuple(map(tuple, turns.tolist()))}
    return _shifted(f"{motion}_{level}", f"DMC-GB2: {motion.replace('_', ' and ')}", grid)


def _geometric(domain: str) -> tuple[Protocol, ...]:
    motions = ("rotate", "shift", "rotate_shift")
    return tuple(_turned(domain, motion, level) for motion in motions for level in ("easy", "hard"))


BALL_IN_CUP = (*CONTROL, *_geometric("ball_in_cup"))
CARTPOLE = (*CONTROL, *_geometric("cartpole"))
CHEETAH = (*CONTROL, *_geometric("cheetah"))
FINGER = (*CONTROL, *_geometric("finger"))
WALKER = (*CONTROL, *_geometric("walker"))
"""Domains that DMC-GB2 tests: its six cameras beside the protocols of every control task."""
