"""Options of the rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import validated, whole
from interverse.worlds.world import WorldOptions

Nuisance = Literal["none", "camera", "light", "both"]
Quality = Literal["fast", "high"]
View = Literal["multi", "single"]
Lamps = Literal["soft", "original"]
States = Literal["whole", "graded"]
Instances = Literal["sealed", "open"]
MOST_OBJECTS = 8
MOST_ACTIONS = 1000


@dataclass(frozen=True, kw_only=True)
@validated
class RoomsOptions(WorldOptions):
    """What a world of rooms is made with."""

    view: View = "multi"
    """multi: the whole scene from a place in the room. single: the object fills the picture."""
    pair_nuisance: Nuisance = "none"
    """What besides the object changes in a step: nothing, the camera, the light, or both."""
    quality: Quality = "fast"
    """fast: MuJoCo's own renderer, the same pixels each time. high: Filament, where it runs."""
    image_size: Annotated[int, whole(2048, least=16)] = 224
    """Pixels a side of the picture and the mask. The published pictures have 672."""
    objects: Annotated[int, whole(MOST_OBJECTS)] = MOST_OBJECTS
    """How many objects a room has at most; each room draws its number from 4 up to this."""
    lamps: Lamps = "soft"
    """soft: lamp colours of saturation 0.02 to 0.24, as lamps have. original: 0.5 to 1, as in the
    published set."""
    states: States = "whole"
    """whole: objects are open or closed, on or off, and so on, as in the published set. graded:
    first states and the targets of actions are any value from 0 to 1, such as open to 0.37; then
    there is a variable action/target."""
    instances: Instances = "sealed"
    """sealed: one number, object/instance, stands for all that an object looks like. open: width,
    depth, height, hue, saturation, lightness, gloss and wear of every object are variables; the
    instance gives those that are not set."""
    confounder: bool = False
    """Whether a hidden coin feeds object, size, distance, lamp and, in collected pairs, the action;
    how strongly, the variable confounding says, 0 to 1."""
    actions: Annotated[int, whole(MOST_ACTIONS)] = 1
    """How many actions an episode has; more than one make a sequence in one room."""
    light_spill: bool = False
    """Whether lamps that are on light up the room, and moving parts cast shadows: truer pictures,
    in which an action changes pixels far from its object."""

    def __post_init__(self) -> None:
        if self.device != "cpu":
            raise InvalidValueError(
                f"device is {self.device!r}", allowed="cpu", fix="Rooms draw on the CPU"
            )

    @property
    def shakes_camera(self) -> bool:
        """Whether the camera moves in a step."""
        return self.pair_nuisance in ("camera", "both")

    @property
    def shifts_light(self) -> bool:
        """Whether the light changes in a step."""
        return self.pair_nuisance in ("light", "both")
