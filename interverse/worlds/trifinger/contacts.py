"""Contact settings of the TriFinger scene: what may touch, with what friction, how it is solved.

The original multiplies the frictions of the two surfaces, MuJoCo takes the larger: so every pair
that may touch is written out, with its product. The one exception is finger against wall, found by
the simulator itself (one body of many boxes, which its bounding-volume tree prunes): there the
finger's geom carries the product, see `WALL_GEOMS`.

`ActiveEdges` is the local causal graph of a step. The declared graph says what may push what; in
one step few of these edges act: a finger moves a block only while it touches it. An edge is active
in a step if its two ends touch at the start of at least one of the step's substeps, for these
contacts make the forces of the substep.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError, UnknownNameError, unknown
from interverse.scm import Binding
from interverse.sim import Engine, coulomb
from interverse.worlds.trifinger.scene import FINGER_FRICTION, ArenaScene, ContactMode
from interverse.worlds.world import Index

_LEAST_FRICTION = 1e-5  # MuJoCo's least

# As in the original, a contact takes away the approaching speed within one 4 ms substep (250/s) and
# then 8% of the depth a substep (5000/s2): read off the recorded drops.
SOLREF = (-5000.0, -250.0)
SOLIMP = (0.99, 0.99, 0.001)
# A block struck from rest leaves the original's floor with 0.04 m/s: there it stands on three
# points and digs a corner in. A stiff floor makes it tip over its edge, with 0.08. So ours yields
# to a touch and is stiff from a depth of 1 mm on; were it soft at any depth, drops would rebound.
YIELDING_FLOOR = (0.82, 0.99, 0.001)
# Against spinning on a fingertip, m; faces and edges resist by themselves. The original takes a
# block's 0.001 times the finger's friction; convex contacts keep what they were judged with.
TORSION = {"exact": 0.0005, "convex": 0.001}
WALL_SIDES = 24

FINGERS = ("finger_0", "finger_1", "finger_2")
TOUCHING_LINKS = ("upper", "middle", "lower", "tip")
WALL_GEOMS = tuple(f"{f}_{part}" for f in FINGERS for part in ("lower", "tip"))
"""Geoms whose `geom_friction[0]` is the friction of finger against wall."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """How exactly contacts are solved.

    Attributes:
        impratio: how much stiffer friction is than the normal force.
        grip: impedance of fingers against blocks.
        iterations: most steps of the solver in a substep; it starts from the last one's solution.
        tolerance: improvement below which it stops.
    """

    impratio: float
    grip: float
    iterations: int
    tolerance: float


FEW_BLOCKS = Solving(impratio=10.0, grip=SOLIMP[0], iterations=100, tolerance=1e-6)
# What costs in a pile is stiff friction: a third of the time goes without it. Blocks rest in the
# same places (0.03 mm) and fingers grip as firmly; a block at the edge of slipping creeps by 0.06
# mm a second.
PILE = Solving(impratio=1.0, grip=0.999, iterations=6, tolerance=1e-3)
_PILE = 10  # blocks; more of them are a pile


def solving(scene: ArenaScene) -> Solving:
    """Returns how the contacts of a scene are solved."""
    return PILE if scene.block_count > _PILE else FEW_BLOCKS


def impedance(scene: ArenaScene, contact: Contact) -> tuple[float, float, float]:
    """Returns how firmly two surfaces meet: MuJoCo's `solimp` at a touch, and at a depth."""
    if contact.grips:
        grip = solving(scene).grip
        return grip, grip, SOLIMP[2]
    rests = contact.geoms[0] == "floor" and contact.geoms[1].startswith("block")
    return YIELDING_FLOOR if rests and scene.contact == "exact" else SOLIMP


def contact_mode(asked: ContactMode | None, device: str, blocks: int) -> ContactMode:
    """Returns how sliding contacts of a world are solved.

    Args:
        asked: the option; None takes `exact` where that can be had and is not slow.
        device: where the world runs; a GPU has `convex` only.
        blocks: how many blocks the scene has; `exact` costs the cube of it where all touch.
    """
    if asked == "convex":
        return asked
    warp = device.partition(":")[0] in ("cuda", "warp")
    cannot = "MuJoCo Warp has no such solver" if warp else coulomb.missing()
    if asked is None:
        if cannot and not warp and blocks <= _PILE:
            warnings.warn(f"contact is convex, not exact: {cannot}", stacklevel=2)
        return "convex" if cannot or blocks > _PILE else "exact"
    if cannot:
        raise InvalidValueError(
            f'contact is "exact", which cannot be had on {device}: {cannot}',
            allowed='"convex", or None for the best there is',
        )
    return asked


@dataclass(frozen=True, slots=True)
class Contact:
    """Two geoms that may touch, and the two surfaces whose frictions multiply."""

    geoms: tuple[str, str]
    surfaces: tuple[str, str]
    grips: bool = False  # a finger on a block, which resists spinning too

    @property
    def condim(self) -> int:
        """How many directions the contact acts in."""
        return 4 if self.grips else 3

    @property
    def name(self) -> str:
        """The pair's name in the model."""
        return f"{self.geoms[0]}:{self.geoms[1]}"


def contacts(scene: ArenaScene) -> tuple[Contact, ...]:
    """Returns every pair that may touch, in the model's order."""
    links = [f"{f}_{part}" for f in FINGERS for part in TOUCHING_LINKS]
    low_links = [link for link in links if not link.endswith("upper")]
    blocks = [f"block_{i}" for i in range(scene.block_count)]
    found = []
    for block in blocks:
        found.append(Contact(("floor", block), ("floor", block)))
        found += [Contact((f"stage_{k}", block), ("stage", block)) for k in range(WALL_SIDES)]
        found += [Contact((link, block), ("finger", block), grips=True) for link in links]
        found += [Contact((o.name, block), (o.name, block)) for o in scene.obstacles]
    found += [Contact(two, two) for two in combinations(blocks, 2)]
    found += [Contact(("floor", link), ("floor", "finger")) for link in low_links]
    found += [
        Contact((o.name, link), (o.name, "finger")) for o in scene.obstacles for link in low_links
    ]
    for one, other in combinations(low_links, 2):
        if one[:8] != other[:8]:
            found.append(Contact((one, other), ("finger", "finger")))
    number = _body_numbers(scene)
    # MuJoCo's compiler sorts pairs by their bodies
    return tuple(sorted(found, key=lambda c: sorted(number[geom] for geom in c.geoms)))


def _body_numbers(scene: ArenaScene) -> dict[str, tuple[int, int]]:
    """Returns a number for the body of every geom, in the order of the model's bodies."""
    number = {"floor": (0, 0)} | {f"stage_{k}": (1, 0) for k in range(WALL_SIDES)}
    for i, finger in enumerate(FINGERS):
        for j, part in enumerate(TOUCHING_LINKS):
            number[f"{finger}_{part}"] = (2 + i, min(j, 2))  # the tip is part of the lower link
    number |= {f"block_{i}": (5, i) for i in range(scene.block_count)}
    return number | {o.name: (6, i) for i, o in enumerate(scene.obstacles)}


def surface_frictions(scene: ArenaScene) -> dict[str, float]:
    """Returns the friction of every surface of a scene; spare blocks have that of a new one."""
    frictions = {
        "floor": scene.floor_friction,
        "stage": scene.stage_friction,
        "finger": FINGER_FRICTION,
    }
    for i in range(scene.block_count):
        frictions[f"block_{i}"] = scene.blocks[i].friction if i < len(scene.blocks) else 1.0
    return frictions | {o.name: o.friction for o in scene.obstacles}


def _slide(factor: float, *frictions: Array) -> Array:
    """Returns the sliding friction of pairs of surfaces, (n,); MuJoCo has a least one."""
    out: Array = factor
    for friction in frictions:
        out = out * friction
    return out.clip(_LEAST_FRICTION, None)


@functools.lru_cache(maxsize=16)  # of thousands of pairs, and asked for by every block
def friction_bindings(scene: ArenaScene) -> Mapping[str, tuple[Binding, ...]]:
    """Returns, for each friction variable, the pairs whose friction follows from it.

    A pair of two variables is listed once, with the later of them.
    """
    constant = {"finger": FINGER_FRICTION} | {o.name: o.friction for o in scene.obstacles}
    alike: dict[tuple[str, str], list[str]] = {}
    for contact in contacts(scene):
        alike.setdefault(contact.surfaces, []).append(contact.name)
    found: dict[str, list[Binding]] = {}
    for surfaces, pairs in alike.items():
        factor = 1.0
        for surface in surfaces:
            factor *= constant.get(surface, 1.0)
        of = tuple(f"{surface}/friction" for surface in surfaces if surface not in constant)
        if of:
            function = functools.partial(_slide, factor)
            bound = Binding("pair_friction", tuple(pairs), (0, 1), function=function, of=of)
            found.setdefault(of[-1], []).append(bound)
    wall = functools.partial(_slide, FINGER_FRICTION)
    bound = Binding("geom_friction", WALL_GEOMS, 0, function=wall, of=("stage/friction",))
    found.setdefault("stage/friction", []).append(bound)
    return {name: tuple(bindings) for name, bindings in found.items()}


def touch_sensors(scene: ArenaScene) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of objects that a scene with sensors senses.

    For the pair (a, b) the model has a sensor `touch:a:b` (number of contact points, distance of
    the deepest one, negative inside) and a sensor `force:a:b` (net force on b, world frame, N).
    Objects are the floor, the stage, the obstacles, the three fingers and the blocks.
    """
    blocks = [f"block_{i}" for i in range(scene.block_count)]
    fixed = ["floor", "stage", *(o.name for o in scene.obstacles)]
    pairs = [(a, b) for b in blocks for a in (*fixed, *FINGERS)]
    pairs += combinations(blocks, 2)
    pairs += [(a, b) for b in FINGERS for a in fixed]
    pairs += combinations(FINGERS, 2)
    return tuple(pairs)


def touching(engine: Engine, scene: ArenaScene, a: str, b: str) -> Array:
    """Returns whether two things touch, (N,)."""
    return engine.sensor(_sensor(scene, "touch", a, b))[:, 0] > 0


def force_between(engine: Engine, scene: ArenaScene, a: str, b: str) -> Array:
    """Returns the force of `a` on `b`, (N, 3), world frame, N."""
    name = _sensor(scene, "force", a, b)
    sign = 1.0 if name == f"force:{a}:{b}" else -1.0
    return sign * engine.sensor(name)


def _sensor(scene: ArenaScene, kind: str, a: str, b: str) -> str:
    if not scene.sensors:
        raise InvalidValueError(
            "this world has no contact sensors", fix="Make it with contact_sensors=True"
        )
    pairs = touch_sensors(scene)
    for one, other in ((a, b), (b, a)):
        if (one, other) in pairs:
            return f"{kind}:{one}:{other}"
    known = (f"{one}, {other}" for one, other in pairs)
    raise UnknownNameError(unknown("pair of objects", f"{a}, {b}", known))


Edge = tuple[str, str]  # cause, effect


def contact_edges(scene: ArenaScene) -> tuple[Edge, ...]:
    """Returns every edge that a contact can make active, (cause, effect).

    Fingers and blocks act on each other; the floor, the stage and the obstacles act on both and
    are moved by neither.
    """
    moving = {*FINGERS, *(f"block_{i}" for i in range(scene.block_count))}
    pairs = touch_sensors(scene)
    back = [(b, a) for a, b in pairs if a in moving]
    return (*pairs, *back)


@final
class ActiveEdges:
    """Which edges were active in the last step of each of N worlds.

    Attributes:
        edges: the edges, in the order of the columns.
        active: (N, edges).
    """

    def __init__(self, engine: Engine, scene: ArenaScene) -> None:
        self.edges = contact_edges(scene)
        self.active: NDArray[np.bool_] = np.zeros((engine.num_worlds, len(self.edges)), dtype=bool)
        self._engine, self._scene = engine, scene
        pairs = touch_sensors(scene)
        column = {pair: k for k, pair in enumerate(pairs)}
        self._pairs = pairs
        self._columns = [column.get(e, column.get((e[1], e[0]), 0)) for e in self.edges]

    def clear(self, worlds: Index) -> None:
        """Forgets the last step of some worlds, before the next or after a change of state."""
        self.active[worlds] = False

    def sample(self, worlds: Index) -> None:
        """Adds the present contacts of the worlds that are in a step."""
        now = [np.asarray(touching(self._engine, self._scene, a, b)) for a, b in self._pairs]
        self.active[worlds] |= np.stack(now, axis=1)[worlds][:, self._columns]
