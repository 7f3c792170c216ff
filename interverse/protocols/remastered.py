"""DMC Remastered's protocols: one factor of the look at a time, and seeds that never meet.

A policy is trained on visual seed 0, the default look (zero-shot), or on looks drawn from
`TRAIN_SEEDS` (few-shot, the option `visual_seed=(1, 999999)`). It is tested on 100 looks from
`TEST_SEEDS`, each from three starting states. `E_G = (train - test) / train`, in
`results.tables.generalisation_errors`.
"""

from __future__ import annotations

from interverse.protocols.protocol import Protocol

DEFAULT_LOOK = 0
TRAIN_SEEDS = range(1, 1_000_000)
VALID_SEEDS = range(1_000_000, 2_000_000)
TEST_SEEDS = range(2_000_000, 100_000_000)

# 100 looks of each range, evenly spaced, and the starting states they are seen from.
_TRAIN_LOOKS = range(1, 1_000_000, 10_000)
_VALID_LOOKS = range(1_000_000, 2_000_000, 10_000)
_TEST_LOOKS = range(2_000_000, 100_000_000, 980_000)
_STARTS = range(3)

_TESTED = {"visual_seed": _TEST_LOOKS, "dynamics_seed": _STARTS}

REMASTERED = (
    Protocol(
        name="train",
        grid={"visual_seed": (DEFAULT_LOOK,), "dynamics_seed": range(100)},
        note="the default look, 100 starting states: the training score",
    ),
    Protocol(name="none", grid=_TESTED, options={"vary": ()}, note="no factor varies"),
    Protocol(name="light", grid=_TESTED, options={"vary": ("light",)}),
    Protocol(name="camera", grid=_TESTED, options={"vary": ("camera",)}),
    Protocol(name="body", grid=_TESTED, options={"vary": ("body",)}),
    Protocol(name="floor", grid=_TESTED, options={"vary": ("floor",)}),
    Protocol(name="background", grid=_TESTED, options={"vary": ("bg",)}),
    Protocol(name="all", grid=_TESTED, note="every factor: the zero-shot test"),
    Protocol(
        name="few_shot_train",
        grid={"visual_seed": _TRAIN_LOOKS, "dynamics_seed": _STARTS},
        note="looks that few-shot training may draw",
    ),
    Protocol(
        name="few_shot_valid",
        grid={"visual_seed": _VALID_LOOKS, "dynamics_seed": _STARTS},
        note="looks to choose a model by",
    ),
    Protocol(
        name="few_shot_test",
        grid={"visual_seed": _TEST_LOOKS, "dynamics_seed": _STARTS},
        note="the same looks as under all",
    ),
)
