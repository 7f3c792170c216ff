"""Triangle meshes with normals and texture coordinates, made from a few numbers."""

from interverse.art.meshes.mesh import (
    Mesh,
    lifted,
    merge,
    moved,
    painted,
    rotated,
    rotation,
    scaled,
    tiled,
)
from interverse.art.meshes.shards import parted, shards
from interverse.art.meshes.solids import (
    bevelled_box,
    extrude,
    frame,
    rounded_rectangle,
    soft_box,
    superellipse,
)
from interverse.art.meshes.sweeps import grid, lathe, sheet, tube

__all__ = [
    "Mesh",
    "bevelled_box",
    "extrude",
    "frame",
    "grid",
    "lathe",
    "lifted",
    "merge",
    "moved",
    "painted",
    "parted",
    "rotated",
    "rotation",
    "rounded_rectangle",
    "scaled",
    "shards",
    "sheet",
    "soft_box",
    "superellipse",
    "tiled",
    "tube",
]
