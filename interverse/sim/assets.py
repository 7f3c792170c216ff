"""Meshes, textures and materials of our own making, added to an MjSpec from memory."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco import MjsBody, MjSpec
from numpy.typing import NDArray

from interverse.art.meshes import Mesh

__all__ = [
    "MjSpec",
    "MjsBody",
    "add_body",
    "add_joint",
    "add_material",
    "add_mesh",
    "add_sight",
    "add_texture",
]

_JOINTS = {"hinge": mujoco.mjtJoint.mjJNT_HINGE, "slide": mujoco.mjtJoint.mjJNT_SLIDE}


def add_mesh(spec: MjSpec, name: str, mesh: Mesh) -> None:
    """Adds a mesh with its own normals and texture coordinates.

    Its inertia is that of a shell, for a mesh that is only seen need not be closed.
    """
    asset = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    asset.uservert = mesh.vertices.ravel()
    asset.userface = mesh.faces.ravel()
    asset.usernormal = mesh.normals.ravel()
    texcoords = mesh.texcoords.copy()
    texcoords[:, 1] = 1 - texcoords[:, 1]  # row 0 of a picture is its top
    asset.usertexcoord = texcoords.ravel()


def add_texture(spec: MjSpec, name: str, pixels: NDArray[np.uint8]) -> None:
    """Adds a picture (row, column, 3) as a texture for meshes."""
    height, width = pixels.shape[:2]
    texture = spec.add_texture(
        name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=width, height=height, nchannel=3
    )
    texture.data = pixels.tobytes()


def add_material(spec: MjSpec, name: str, texture: str | None, **values: object) -> None:
    """Adds a material; values are those of MuJoCo: rgba, specular, emission, ..."""
    material = spec.add_material(name=name, **values)
    if texture is not None:
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture


def add_sight(body: MjsBody, name: str, mesh: str, material: str) -> None:
    """Adds a geom that is seen and touches nothing."""
    body.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=mesh,
        material=material,
        contype=0,
        conaffinity=0,
        mass=0.0,
    )


def add_body(parent: MjsBody, name: str, pos: Sequence[float], quat: Sequence[float]) -> MjsBody:
    """Returns a new body of token mass, for what is only posed and never simulated."""
    body = parent.add_body(name=name, pos=pos, quat=quat)
    body.explicitinertial = True
    body.mass, body.inertia = 1.0, (1.0, 1.0, 1.0)
    return body


def add_joint(
    body: MjsBody, name: str, kind: str, origin: Sequence[float], axis: Sequence[float]
) -> None:
    """Adds a hinge or a slide through a point of the body's frame."""
    body.add_joint(name=name, type=_JOINTS[kind], pos=origin, axis=axis)
