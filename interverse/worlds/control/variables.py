"""Every variable of a control world and its causal graph.

`visual_seed` causes every factor of the look that it draws at once; no look causes anything of the
state. The dynamics act on the next state. `dynamics_seed` acts where an episode starts, so in the
middle of one it has no effect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from interverse.art.pictures import Shelf
from interverse.scm import Binding, Box, CausalGraph, Integers, Variable, table
from interverse.scm.space import Choice, Space
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.dynamics import dynamics_variables
from interverse.worlds.control.gallery import NO_PICTURE, Gallery
from interverse.worlds.control.looks import (
    ALPHA,
    BACKGROUND,
    FLOOR,
    HEADLIGHT,
    LAMP,
    REFLECTANCE,
    CameraPose,
    Factor,
    camera_range,
    factors,
    other_than,
)
from interverse.worlds.control.paint import PIXELS, SHOWN
from interverse.worlds.control.scene import FLOOR as FLOOR_MATERIAL
from interverse.worlds.control.scene import FLOOR_PICTURE, SKY_PICTURE
from interverse.worlds.control.suite import domain_model

LARGEST_VISUAL_SEED = 10**9
LARGEST_DYNAMICS_SEED = 2**32 - 1
STATE = ("qpos", "qvel")
KIND_OF = {"floor/kind": "floor/texture", "background/kind": "background/texture"}
LARGEST_STATE = 1e6  # beyond, MuJoCo gives up on a state and starts over
_FAR = 100.0  # metres; nothing is placed beyond
_TURNS = {"euler": (0.1, 0.1, 0.1), "tilt": (0.1, 0.0, 0.0)}  # rad, around all that is drawn
_DOCS = {
    "background/texture": "Number of the sky's picture; -1: two colours. B: pictures held out.",
    "background/color_1": "The sky at its top, where there is no picture.",
    "background/color_2": "The sky at its bottom, where there is no picture.",
    "floor/texture": "Number of the floor's picture; -1 is the checker. B: pictures held out.",
    "floor/color_1": "First colour of the checker, where there is no picture.",
    "floor/color_2": "Second colour of the checker, where there is no picture.",
    "reflectance": "How much the floor mirrors.",
    "body/color": "Red, green, blue, opacity of the body.",
    "effector/color": "Red, green, blue, opacity of the body's second part.",
    "target/color": "Red, green, blue, opacity of the target.",
    "camera/position": "Place of the camera in the frame of its owner.",
    "camera/rotation": "Rotation vector, in the camera's frame, from its default orientation.",
    "light/position": "Place of the lamp in the frame of its owner.",
    "light/ambient": "Light from everywhere.",
    "light/diffuse": "Diffuse part of the light beside the camera.",
    "light/specular": "Shining part of the light beside the camera.",
    "light/lamp_diffuse": "Diffuse part of the lamp.",
    "light/lamp_specular": "Shining part of the lamp.",
}


SHARED = (
    Variable(
        name="visual_seed",
        kind="appearance",
        default=np.array(0),
        domain=Integers(-LARGEST_VISUAL_SEED, LARGEST_VISUAL_SEED),
        doc="The look: 0 default, positive with pictures, negative in other colours.",
    ),
    Variable(
        name="dynamics_seed",
        kind="latent",
        default=np.array(0),
        domain=Integers(0, LARGEST_DYNAMICS_SEED),
        doc="Where the episode starts: the random seed of the suite's task.",
    ),
)
"""Variables of every domain; one with a binding is written with the looks."""


@functools.cache
def control_variables(domain: str, poles: int, gallery: Gallery) -> Mapping[str, Variable]:
    """Returns the variables of a domain.

    Args:
        domain: its name.
        poles: of cartpole; one elsewhere.
        gallery: the floors and the backgrounds there are.
    """
    model = domain_model(domain, poles)
    bindings = _look_bindings(
        domain, CameraPose(model.camera(DOMAINS[domain].camera).quat), gallery
    )
    looks = []
    for factor in factors(domain, poles):
        held_out: Space | None = None
        if factor.name.endswith("/texture"):
            shelf = gallery.shelves[factor.name.partition("/")[0]]
            allowed: Space = Integers(NO_PICTURE, shelf.count - 1)
            drawn: Space | None = Choice((NO_PICTURE, *shelf.a))
            held_out = Choice(shelf.b) if shelf.b else None
        else:
            allowed, drawn = _spaces(factor, domain, poles)
        look = Variable(
            name=factor.name,
            kind="appearance",
            default=factor.default,
            domain=allowed,
            space_a=drawn,
            space_b=held_out,
            unit={"position": "m", "rotation": "rad"}.get(factor.name.rpartition("/")[2], ""),
            doc=_DOCS[factor.name],
            bindings=bindings[factor.name],
        )
        looks.append(look)
    numbers = ((STATE[0], model.nq, "positions"), (STATE[1], model.nv, "velocities"))
    state = [
        Variable(
            name=name,
            kind="state",
            default=np.zeros(size),
            domain=Box(-LARGEST_STATE, LARGEST_STATE, (size,)),
            doc=f"Generalised {what} of MuJoCo, in its own order.",
        )
        for name, size, what in numbers
    ]
    kinds = [
        _kind_variable(name, gallery.shelves[name.partition("/")[0]])
        for name in KIND_OF
        if DOMAINS[domain].background or name != "background/kind"
    ]
    return table(*SHARED, *looks, *kinds, *dynamics_variables(domain), *state)


def _look_bindings(
    domain: str, pose: CameraPose, gallery: Gallery
) -> dict[str, tuple[Binding, ...]]:
    """Returns where each factor of a look lives in the model and its renderer."""
    has = DOMAINS[domain]
    return {
        "body/color": (Binding("mat_rgba", "self"),),
        "effector/color": (Binding("mat_rgba", "effector"),),
        "target/color": (Binding("mat_rgba", "target"),),
        "reflectance": (Binding("mat_reflectance", FLOOR_MATERIAL),),
        "camera/position": (Binding("cam_pos", has.camera),),
        "camera/rotation": (Binding("cam_quat", has.camera, function=pose.turned),),
        "light/position": (Binding("light_pos", has.lamp),),
        "light/ambient": (Binding("vis.headlight.ambient"),),
        "light/diffuse": (Binding("vis.headlight.diffuse"),),
        "light/specular": (Binding("vis.headlight.specular"),),
        "light/lamp_diffuse": (Binding("light_diffuse", has.lamp),),
        "light/lamp_specular": (Binding("light_specular", has.lamp),),
        **_surface_bindings(FLOOR, FLOOR_PICTURE, gallery.floors),
        **_surface_bindings(BACKGROUND, SKY_PICTURE, gallery.skies),
    }


def _surface_bindings(
    decided: tuple[Factor, ...], texture: str, pixels: Callable[..., NDArray[np.uint8]]
) -> dict[str, tuple[Binding, ...]]:
    """Returns the bindings of a surface's picture; the first of its factors declares them."""
    names = tuple(factor.name for factor in decided)
    shown = other_than(*(factor.default for factor in decided))
    made = (
        Binding(PIXELS, texture, function=pixels, of=names),
        Binding(SHOWN, texture, function=shown, of=names),
    )
    return {names[0]: made, **dict.fromkeys(names[1:], ())}


def _kind_variable(name: str, shelf: Shelf) -> Variable:
    names = ", ".join(f"{i} {kind}" for i, kind in enumerate(shelf.kind_names))
    return Variable(
        name=name,
        kind="appearance",
        default=np.array(NO_PICTURE),
        domain=Integers(NO_PICTURE, len(shelf.kind_names) - 1),
        read_only=True,
        doc=f"What the picture shows, as its number says: -1 no picture, {names}.",
    )


def control_graph(
    domain: str,
    variables: Mapping[str, Variable],
    drawn: Mapping[str, Iterable[str]],
    more: Iterable[tuple[str, str]] = (),
) -> CausalGraph:
    """Returns the causal graph over the variables of a domain.

    Args:
        domain: its name.
        variables: every variable.
        drawn: the variables that each seed draws.
        more: edges of distractions.
    """
    kinds = [(texture, kind) for kind, texture in KIND_OF.items() if kind in variables]
    causes = [variable.name for variable in dynamics_variables(domain)]
    return CausalGraph.build(
        variables,
        [
            *((seed, name) for seed, names in drawn.items() for name in names),
            *kinds,
            *((cause, f"{effect}'") for cause in (*causes, *STATE) for effect in STATE),
            *more,
        ],
    )


def _spaces(factor: Factor, domain: str, poles: int) -> tuple[Space, Space | None]:
    """Returns what a factor may be and, where it is less, the range that seeds draw from."""
    name, has = factor.name, DOMAINS[domain]
    if name == "reflectance":
        return Box(0.0, 1.0), Box(*REFLECTANCE)
    if name == "camera/position":
        return Box(-_FAR, _FAR, (3,)), Box(*camera_range(domain, poles), (3,))
    if name == "camera/rotation":
        half = np.array(_TURNS.get(has.turn, (np.pi, np.pi, np.pi)))
        return Box(-np.pi, np.pi, (3,)), Box(-half, half, (3,)) if has.turn != "none" else None
    if name == "light/position":
        drawn = None if has.lamp_range is None else Box(*has.lamp_range, (3,))
        return Box(-_FAR, _FAR, (3,)), drawn
    if name in HEADLIGHT or name in LAMP:
        (low, high), spread = HEADLIGHT[name] if name in HEADLIGHT else LAMP[name]
        return Box(-spread, 2.0, (3,)), Box(low - spread, high + spread, (3,))
    if name.endswith("/color"):
        solid = Box((0.0, 0.0, 0.0, ALPHA[0]), (1.0, 1.0, 1.0, ALPHA[1]), (4,))
        return Box(0.0, 1.0, (4,)), solid
    return Box(0.0, 1.0, (3,)), None  # the two colours of a surface
