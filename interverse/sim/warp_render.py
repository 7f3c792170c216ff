"""Pictures of every world of a MuJoCo Warp engine at once, by Warp's ray caster on its device.

Shapes, colours, textures, lights and cameras are those of each world; shading is Warp's own, so
pictures are like MuJoCo's and not the same to the pixel. Two of Warp's ray tests are replaced: it
does not know of geoms that cast no shadow, and a ray through a wide hole need not search the mesh
around it.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, final

import mujoco
import numpy as np
import torch

from interverse.sim.elements import element_ids
from interverse.sim.engine import Names
from interverse.sim.warp_device import load_warp, quiet
from interverse.sim.warp_fields import wp_to_torch

_TILE = (8, 4)  # rows and columns: the 32 rays that a GPU casts in step
_RENDER = "mujoco_warp._src.render"
_TESTS = ("ray_mesh_with_bvh", "ray_mesh_with_bvh_anyhit")  # of rays to the eye and to a light
_WIDE = 0.5  # least radius of a hole worth a test, as a share of the mesh's
_MARGIN = 1e-4  # by which holes are made narrower and longer, m
_MOST_MESHES = 31  # that a mask of 32 bits tells apart


@final
class WarpRenderer:
    """Some cameras of a model, each drawing square pictures of one size."""

    def __init__(self, model: mujoco.MjModel, data: Any, cameras: Names, size: int) -> None:
        """Makes room for the pictures.

        Args:
            model: as the scene has it.
            data: Warp's, of every world.
            cameras: in the order of the pictures.
            size: pixels a side.
        """
        warp, mujoco_warp = load_warp()
        ids = element_ids(model, "camera", cameras).tolist()
        self._size, self._cameras, self._device = size, len(ids), data.qpos.device
        with quiet(), warp.ScopedDevice(self._device):
            self._context = mujoco_warp.create_render_context(
                model,
                nworld=data.nworld,
                cam_res=(size, size),
                render_rgb=True,
                render_depth=False,
                render_seg=False,
                cam_active=sorted(ids),
                use_shadows=bool(model.light_castshadow.any()),
                shadow_light_fraction=0.0,  # as MuJoCo draws them
                use_precomputed_rays=True,
                render_skybox=bool((model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any()),
                enable_emission=bool(model.mat_emission.any()),
                enable_per_light_ambient=bool(model.light_ambient.any()),
            )
        self._tests: Any = _ray_tests(_widest_hole(model), _shadowless(model))
        order = [sorted(ids).index(i) for i in ids]  # Warp draws them in the model's order
        self._pixels = self._cast_in_tiles(order)

    def _cast_in_tiles(self, order: list[int]) -> torch.Tensor:
        """Casts rays of one tile side by side, which meet the same shapes: a third less time.

        Args:
            order: of Warp's pictures in ours.

        Returns:
            Where each pixel of a world's pictures lies among its rays.
        """
        square, context = self._size**2, self._context
        y, x = np.divmod(np.arange(square), self._size)
        pixels = np.lexsort((x % _TILE[1], y % _TILE[0], x // _TILE[1], y // _TILE[0]))
        cast = np.concatenate([pixels + i * square for i in range(self._cameras)])
        for rays in (context.ray, context.ray_offset):
            rays.assign(rays.numpy()[cast])
        drawn = np.argsort(cast).reshape(self._cameras, square)[order].reshape(-1)
        return torch.as_tensor(drawn, device=wp_to_torch(context.rgb_data).device)

    @contextlib.contextmanager
    def _own_tests(self) -> Iterator[None]:
        """Puts our ray tests into the kernel, which Warp writes when it first draws."""
        if self._context._megakernel is not None:
            yield
            return
        module = importlib.import_module(_RENDER)
        theirs = {name: getattr(module, name) for name in _TESTS}
        try:
            for name, test in zip(_TESTS, self._tests, strict=True):
                setattr(module, name, test)
            yield
        finally:
            for name, test in theirs.items():
                setattr(module, name, test)

    def draw(self, model: Any, data: Any) -> torch.Tensor:
        """Returns the pictures as they are now, uint8 (N, cameras, size, size, 3)."""
        warp, mujoco_warp = load_warp()
        with quiet(), warp.ScopedDevice(self._device):
            mujoco_warp.kinematics(model, data)
            mujoco_warp.com_pos(model, data)
            mujoco_warp.camlight(model, data)
            mujoco_warp.refit_bvh(model, data, self._context)
            with self._own_tests():
                mujoco_warp.render(model, data, self._context)
        rays = wp_to_torch(self._context.rgb_data).view(torch.int32)
        packed = rays.index_select(1, self._pixels).view(torch.uint8)  # b, g, r, alpha
        shape = (data.nworld, self._cameras, self._size, self._size, 4)
        return packed.reshape(shape)[..., [2, 1, 0]]


Hole = tuple[int, int, float, float]
"""A mesh, the axis of the hole through its middle, the hole's radius and half its length, m."""


def _widest_hole(model: mujoco.MjModel) -> Hole:
    """Returns the widest hole through a mesh along an axis of it; mesh -1 where there is none."""
    found: Hole = (-1, 0, 0.0, 0.0)
    for mesh in range(model.nmesh):
        first, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
        points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
        triangles = points[model.mesh_face[face : face + model.mesh_facenum[mesh]]]
        for axis in range(3):
            flat = np.delete(triangles, axis, axis=2).astype(np.float64)
            radius = _distance(flat) - _MARGIN
            if radius > max(found[2], _WIDE * np.linalg.norm(flat, axis=2).max()):
                found = mesh, axis, radius, float(abs(points[:, axis]).max()) + _MARGIN
    return found


def _distance(triangles: np.ndarray) -> float:
    """Returns the distance of the origin from triangles in a plane, (n, 3, 2); 0 inside of one."""
    a, along = triangles, np.roll(triangles, -1, axis=1) - triangles
    turn = a[..., 0] * along[..., 1] - a[..., 1] * along[..., 0]
    inside = (turn > 0).all(axis=1) | (turn < 0).all(axis=1)
    if inside.any():
        return 0.0
    square = np.maximum((along**2).sum(-1), 1e-18)
    share = np.clip(-(a * along).sum(-1) / square, 0.0, 1.0)
    return float(np.linalg.norm(a + share[..., None] * along, axis=-1).min())


def _shadowless(model: mujoco.MjModel) -> int:
    """Returns a mask of the meshes of which no geom casts a shadow."""
    is_mesh = model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    casting = set(model.geom_dataid[is_mesh & model.geom_castshadow.astype(bool)].tolist())
    dark = set(model.geom_dataid[is_mesh].tolist()) - casting
    return sum(1 << mesh for mesh in dark if mesh < _MOST_MESHES)


def _ray_tests(hole: Hole, shadowless: int) -> tuple[Any, Any]:
    """Returns tests of a ray and a mesh, for rays to the eye and for those to a light.

    Args:
        hole: a ray that is inside of it at both ends of its length misses the mesh.
        shadowless: a mask of meshes that no ray to a light meets.
    """
    wp, _ = load_warp()
    nearest, first = (getattr(importlib.import_module(_RENDER), name) for name in _TESTS)
    mesh, axis, radius, half = hole
    one, other = (axis + 1) % 3, (axis + 2) % 3

    @wp.func  # type: ignore[untyped-decorator]
    def passes(pos: wp.vec3, mat: wp.mat33, pnt: wp.vec3, vec: wp.vec3, max_t: float) -> bool:
        start = wp.transpose(mat) @ (pnt - pos)
        way = wp.transpose(mat) @ vec
        speed = way[axis]
        if wp.abs(speed) < 1.0e-9:
            speed = 1.0e-9
        below = (-half - start[axis]) / speed
        above = (half - start[axis]) / speed
        begin = start + way * wp.max(wp.min(below, above), 0.0)
        end = start + way * wp.min(wp.max(below, above), max_t)
        near = begin[one] * begin[one] + begin[other] * begin[other]
        far = end[one] * end[one] + end[other] * end[other]
        return wp.max(near, far) < radius * radius

    @wp.func  # type: ignore[untyped-decorator]
    def seen(  # noqa: PLR0913 - as Warp calls it
        mesh_bvh_id: wp.array(dtype=wp.uint64),
        mesh_id: int,
        pos: wp.vec3,
        mat: wp.mat33,
        pnt: wp.vec3,
        vec: wp.vec3,
        max_t: float,
        cull_backfaces: bool,
    ) -> tuple[float, wp.vec3, float, float, int, int]:
        if mesh_id == mesh and passes(pos, mat, pnt, vec, max_t):
            return -1.0, wp.vec3(0.0, 0.0, 0.0), 0.0, 0.0, -1, -1
        t, n, u, v, f, found = nearest(
            mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t, cull_backfaces
        )
        return t, n, u, v, f, found

    @wp.func  # type: ignore[untyped-decorator]
    def shaded(  # noqa: PLR0913 - as Warp calls it
        mesh_bvh_id: wp.array(dtype=wp.uint64),
        mesh_id: int,
        pos: wp.vec3,
        mat: wp.mat33,
        pnt: wp.vec3,
        vec: wp.vec3,
        max_t: float,
    ) -> bool:
        if (wp.int32(shadowless) >> mesh_id) & 1 == 1:
            return False
        return first(mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t)

    return seen, shaded
