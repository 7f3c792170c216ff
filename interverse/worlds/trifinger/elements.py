"""The MuJoCo elements that every part of the model is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

ARENA, SOLIDS, GOALS, HIDDEN = 0, 1, 2, 3  # geom groups


def add_geom(
    body: mujoco.MjsBody, name: str, kind: mujoco.mjtGeom, size: Sequence[float], **more: Any
) -> mujoco.MjsGeom:
    """Adds a geom that touches only what a pair names, and returns it."""
    if size:
        more["size"] = [*size] + [0.0] * (3 - len(size))
    return body.add_geom(name=name, type=kind, contype=0, conaffinity=0, **more)


def add_mesh(spec: mujoco.MjSpec, name: str, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Adds a triangle mesh: vertices (n, 3), triangles (m, 3)."""
    spec.add_mesh(
        name=name,
        uservert=vertices.astype(np.float32).ravel(),
        userface=faces.astype(np.int32).ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
    )


def add_material(
    spec: mujoco.MjSpec,
    name: str,
    color: Sequence[float],
    *,
    specular: float,
    alpha: float = 1.0,
) -> None:
    """Adds a material; an object's colour is that of the material of its name."""
    spec.add_material(
        name=name, rgba=(*color, alpha), specular=specular, shininess=0.4, reflectance=0.0
    )
