"""Local causal graph of a TriFinger step: which contacts acted in it, from the contact sensors.

The declared graph says what may push what. In one step few of these edges act: a finger moves a
block only while it touches it. An edge is active in a step if its two ends touch at the start of at
least one of the step's substeps, for these contacts make the forces of the substep.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.sim import Engine
from interverse.worlds.trifinger.contacts import FINGERS, touch_sensors, touching
from interverse.worlds.trifinger.scene import ArenaScene
from interverse.worlds.world import Index

Array = Any  # a NumPy array or a Torch tensor
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
