"""The variables of the slider's world, each declared once, and the causal graph."""

from __future__ import annotations

import numpy as np

from interverse.scm import Binding, Box, CausalGraph, Variable, table
from interverse.scm.variable import Values

TABLE = 0.6  # half an edge of the table, m
JOINTS = ("x", "y", "z")  # of the box, which slides without turning
FARTHEST, FASTEST = 1.0, 10.0  # of the box, along each axis, m and m/s
START_SPREAD = 0.2  # the box starts this far from its default place at most, m


def near(values: Values) -> Box:
    """Returns space A of the box's place: the middle of the table. Depends on the box's size."""
    return _strip(values, -0.2, 0.2)


def far(values: Values) -> Box:
    """Returns space B of the box's place: to the right of A. Depends on the box's size."""
    return _strip(values, 0.2, 0.54, open_low=True)


def _strip(values: Values, left: float, right: float, *, open_low: bool = False) -> Box:
    height = values["box/size"][..., 2] / 2  # of the centre of a box on the table
    same = np.ones_like(height)
    low = np.stack([left * same, -0.2 * same, height], axis=-1)
    high = np.stack([right * same, 0.2 * same, height], axis=-1)
    return Box(low, high, (3,), open_low=open_low)


VARIABLES = table(
    Variable(
        name="gravity",
        kind="latent",
        unit="m/s2",
        default=np.array(-9.81),
        domain=Box(-20.0, 0.0),
        space_a=Box(-10.0, -7.0),
        space_b=Box(-7.0, -4.0, open_low=True),
        bindings=(Binding("opt.gravity", index=2),),
        doc="Acceleration of free fall, upwards.",
        drawn=False,
    ),
    Variable(
        name="push",
        kind="robot",
        unit="N",
        default=np.array(4.0),
        domain=Box(0.0, 20.0),
        space_a=Box(3.0, 5.0),
        space_b=Box(5.0, 8.0, open_low=True),
        doc="Force of an action of length one.",
    ),
    Variable(
        name="box/mass",
        kind="latent",
        unit="kg",
        default=np.array(0.5),
        domain=Box(0.01, 10.0),
        space_a=Box(0.3, 0.6),
        space_b=Box(0.6, 0.9, open_low=True),
        bindings=(Binding("body_mass", "box"),),
        doc="Mass of the box; its inertia follows.",
    ),
    Variable(
        name="box/friction",
        kind="latent",
        default=np.array(0.3),
        domain=Box(0.0, 2.0),
        space_a=Box(0.2, 0.4),
        space_b=Box(0.4, 0.6, open_low=True),
        bindings=(Binding("pair_friction", "box_table", (0, 1)),),
        doc="Sliding friction between box and table.",
    ),
    Variable(
        name="box/size",
        kind="latent",
        unit="m",
        default=np.array([0.1, 0.1, 0.1]),
        domain=Box(0.02, 0.4, (3,)),
        space_a=Box(0.08, 0.12, (3,)),
        space_b=Box(0.12, 0.16, (3,), open_low=True),
        bindings=(Binding("geom_size", "box", (0, 1, 2), scale=0.5),),
        cube=True,
        doc="Full edges of the box; a new size puts it back on the table.",
    ),
    Variable(
        name="box/color",
        kind="appearance",
        default=np.array([0.85, 0.55, 0.5]),
        domain=Box(0.0, 1.0, (3,)),
        space_a=Box(0.5, 1.0, (3,)),
        space_b=Box(0.0, 0.5, (3,), open_high=True),
        bindings=(Binding("geom_rgba", "box", (0, 1, 2)),),
        doc="Red, green and blue of the box.",
    ),
    Variable(
        name="box/position",
        kind="state",
        unit="m",
        default=np.array([0.0, 0.0, 0.05]),
        domain=Box(-FARTHEST, FARTHEST, (3,)),
        space_a=near,
        space_b=far,
        bindings=(Binding("qpos", JOINTS),),
        doc="Centre of the box; it must be over the table and not in it.",
    ),
    Variable(
        name="box/velocity",
        kind="state",
        unit="m/s",
        default=np.zeros(3),
        domain=Box(-FASTEST, FASTEST, (3,)),
        space_a=Box(-0.5, 0.5, (3,)),
        bindings=(Binding("qvel", JOINTS),),
        doc="Velocity of the box.",
    ),
    Variable(
        name="goal/position",
        kind="goal",
        unit="m",
        default=np.array([0.3, 0.2]),
        domain=Box(-TABLE, TABLE, (2,)),
        space_a=Box(-0.4, 0.4, (2,)),
        space_b=Box(0.4, 0.5, (2,), open_low=True),
        bindings=(Binding("site_pos", "goal", (0, 1)),),
        doc="Where the box should go, on the table.",
    ),
)

_CAUSES = ("gravity", "push", "box/mass", "box/friction", "box/size")
_STATE = ("box/position", "box/velocity")

GRAPH = CausalGraph.build(
    VARIABLES,
    [
        ("box/size", "box/position"),  # at once: the box stands on the table
        *((cause, f"{effect}'") for cause in (*_CAUSES, *_STATE) for effect in _STATE),
    ],
)
