"""Pairs from AI2-THOR and ProcTHOR, for those who have them, in the official layout.

Nothing else in the library imports this file. `collect_thor` needs the packages `ai2thor` and
`prior` and a machine that runs their simulator; `collect_house` is the procedure itself and takes
any controller that answers as AI2-THOR's does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from interverse.core.errors import InvalidValueError, MissingExtraError
from interverse.core.rng import check_seed
from interverse.data.pairs.official import OfficialPair, write_scene

BLACKLIST = frozenset({"CoffeeMachine", "Doorway", "Kettle", "StoveKnob", "Toaster"})
# property -> (state, what undoes it, what does it); an action is (verb, AI2-THOR's name for it).
# The published collector also cooks, slices and uses up; its loader drops what comes of it.
ACTIONS: Mapping[str, tuple[str, tuple[str, str] | None, tuple[str, str]]] = {
    "breakable": ("isBroken", None, ("break", "BreakObject")),
    "dirtyable": ("isDirty", ("clean", "CleanObject"), ("dirty", "DirtyObject")),
    "toggleable": ("isToggled", ("turnoff", "ToggleObjectOff"), ("turnon", "ToggleObjectOn")),
    "openable": ("isOpen", ("close", "CloseObject"), ("open", "OpenObject")),
}
_OPENNESS = 0.8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThorRules:
    """When a pair is accepted, and how many a house gives; lengths in pixels of a 672 picture."""

    size: int = 672
    least_edge: int = 60
    """Of an object's box, both ways."""
    border: int = 20
    """A box must stay so far from the border, or be large."""
    large_edge: int = 100
    least_objects: int = 2
    """That could be acted on, in view."""
    least_change: int = 1000
    """More pixels than this must differ in the intersection of the boxes."""
    most_outside: int = 20
    """Fewer pixels than this may differ outside of their union."""
    pairs_per_house: int = 20
    """No round is started when there are more."""
    pairs_per_round: int = 5

    @property
    def rounds(self) -> int:
        """How often a house is furnished anew at most."""
        return int(self.pairs_per_house / 3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectThor:
    """What to collect with AI2-THOR."""

    out: Path
    """Folder to write the official layout to; houses that are there are kept."""
    first: int = 0
    """Number of the first house of procthor-10k's training part."""
    last: int = 9999
    """Number of the last."""
    seed: int = 2022
    """House h draws from its own stream, (seed, h), so a restart changes nothing. The published
    collector has one stream for all houses."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if not 0 <= self.first <= self.last:
            raise InvalidValueError(
                f"houses {self.first} to {self.last}", allowed="0 <= first <= last"
            )


def collect_thor(config: CollectThor, rules: ThorRules | None = None) -> Path:
    """Returns the folder of the pairs, collected with a simulator started here."""
    rules = ThorRules() if rules is None else rules
    try:
        import prior
        from ai2thor.controller import Controller
    except ImportError as error:
        raise MissingExtraError(
            f"{error.name} is not installed",
            fix="Install AI2-THOR and its houses with: pip install ai2thor prior",
        ) from error
    controller = Controller(**controller_options(rules))
    try:
        collect_houses(config, rules, controller, prior.load_dataset("procthor-10k")["train"])
    finally:
        controller.stop()
    return config.out


def controller_options(rules: ThorRules) -> dict[str, Any]:
    """Returns what AI2-THOR's Controller is made with."""
    return {
        "scene": "Procedural",
        "width": rules.size,
        "height": rules.size,
        "fieldOfView": 90,
        "visibilityDistance": 5.0,
        "renderInstanceSegmentation": True,
        "renderDepthImage": False,
    }


def collect_houses(
    config: CollectThor, rules: ThorRules, controller: Any, houses: Sequence[Any]
) -> None:
    """Writes the scene of every house that is not there yet, each whole or not at all."""
    for number in range(config.first, config.last + 1):
        scene = f"proc_{number:05d}"
        if (config.out / scene).exists():
            continue
        draw = random.Random(f"{config.seed}/{number}")
        write_scene(config.out, scene, collect_house(controller, houses[number], rules, draw))


def collect_house(
    controller: Any, house: Any, rules: ThorRules, draw: random.Random
) -> Iterator[OfficialPair]:
    """Yields the pairs of one house; within a round the world is not reset between pairs."""
    count = 0
    for seed in range(rules.rounds):
        controller.reset()
        controller.step(action="CreateHouse", house=house)
        controller.step(
            action="InitialRandomSpawn",
            randomSeed=seed,
            forceVisible=True,
            numPlacementAttempts=5,
            placeStationary=True,
        )
        event = controller.step(action="GetReachablePositions")
        positions = list(event.metadata["actionReturn"] or ())  # where the camera can stand
        controller.step(action="RandomizeMaterials")
        controller.step(
            action="RandomizeLighting",
            brightness=(1.0, 1.5),
            randomizeColor=True,
            hue=(0, 1),
            saturation=(0.5, 1),
            synchronized=False,
        )
        draw.shuffle(positions)
        of_round = 0
        for position in positions:
            yaw = draw.randrange(360)
            event = controller.step(action="Teleport", position=position, rotation=yaw)
            found = candidates(event, rules)
            if len(found) < rules.least_objects:
                continue
            pair = _act(controller, event, draw.choice(found), rules, draw)
            if pair is not None:
                of_round += 1
                yield pair
            if of_round >= rules.pairs_per_round:
                break
        count += of_round
        if count > rules.pairs_per_house:
            return


def candidates(event: Any, rules: ThorRules) -> list[tuple[Any, list[str]]]:
    """Returns the objects that can be acted on in a picture, each with its properties."""
    found = []
    for thing in event.metadata["objects"]:
        properties = [name for name in ACTIONS if thing[name]]
        seen = thing["visible"] and thing["objectId"] in event.instance_masks
        if not (properties and seen) or thing["objectType"] in BLACKLIST:
            continue
        xmin, ymin, xmax, ymax = event.instance_detections2D[thing["objectId"]]
        edge, low, high = min(xmax - xmin, ymax - ymin), rules.border, rules.size - rules.border
        inside = xmin > low and ymin > low and xmax < high and ymax < high
        if edge >= rules.least_edge and (inside or edge > rules.large_edge):
            found.append((thing, properties))
    return found


def _act(
    controller: Any,
    event: Any,
    candidate: tuple[Any, list[str]],
    rules: ThorRules,
    draw: random.Random,
) -> OfficialPair | None:
    """Flips one state of the object; returns the pair if it passes the tests on pixels."""
    thing, properties = candidate
    state, undo, do = ACTIONS[draw.choice(properties)]
    action = undo if thing[state] else do
    if action is None:
        return None
    verb, call = action
    name = thing["objectId"]
    more = {"openness": _OPENNESS} if verb == "open" else {}
    after = controller.step(action=call, objectId=name, forceAction=False, **more)
    if name not in after.instance_masks:
        return None
    pair = OfficialPair(
        before=event.frame,
        after=after.frame,
        mask_before=event.instance_masks[name],
        mask_after=after.instance_masks[name],
        box_before=tuple(map(int, event.instance_detections2D[name])),
        box_after=tuple(map(int, after.instance_detections2D[name])),
        noun=thing["objectType"],
        verb=verb,
    )
    return pair if accepted(pair, rules) else None


def accepted(pair: OfficialPair, rules: ThorRules) -> bool:
    """Returns whether enough changes inside the boxes and next to nothing outside of them."""
    changed = np.any(pair.before != pair.after, axis=2)
    boxes = np.array([pair.box_before, pair.box_after])
    low, high = boxes[:, :2], boxes[:, 2:]
    counts = []
    for (xmin, ymin), (xmax, ymax) in ((low.max(0), high.min(0)), (low.min(0), high.max(0))):
        # AI2-THOR's boxes name the last pixel, hence the one that is added.
        counts.append(int(changed[ymin : ymax + 1, xmin : xmax + 1].sum()))
    inside, outside = counts[0], int(changed.sum()) - counts[1]
    return inside > rules.least_change and outside < rules.most_outside
