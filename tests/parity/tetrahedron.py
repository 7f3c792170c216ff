"""A task of one's own with a mesh, as the page for CausalWorld's users has it."""

from __future__ import annotations

import numpy as np

import interverse as iv
from interverse.worlds.trifinger import ArenaScene, Block, BlockMesh, Goal, Task

CORNERS = np.array([(0, 0, 0), (4, 0, 0), (0, 4, 0), (0, 0, 4)], dtype=float)
MESH = BlockMesh.from_points(CORNERS, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
SIZE = tuple((0.015 * np.ptp(CORNERS, axis=0)).tolist())


class Tetrahedron(Task):
    """One mesh to move."""

    name = "tetrahedron"

    def scene(self) -> ArenaScene:
        """Returns the mesh and its goal."""
        return ArenaScene(
            blocks=(Block(position=(0.0, 0.0, 0.03), size=SIZE, mesh=MESH),),
            goals=(Goal(position=(0.0, 0.1, 0.03), size=SIZE, mesh=MESH),),
        )


iv.register(
    "lab/tetrahedron-v1",
    "interverse.worlds.trifinger.world:TriFinger",
    task="tests.parity.tetrahedron:Tetrahedron",
)
