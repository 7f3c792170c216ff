"""Pictures of every world of a MuJoCo Warp engine at once, by Warp's ray caster on its device.

Shapes, colours, textures, lights and cameras are those of each world; shading is Warp's own, so
pictures are like MuJoCo's and not the same to the pixel. Warp's tests of rays and meshes cost more
than all else and are replaced: a tube is met by formula, a closed mesh is searched once, and one
that casts no shadow, which Warp does not know of, is in no light's way.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from interverse.sim.elements import element_ids
from interverse.sim.engine import Names
from interverse.sim.warp_device import load_warp, quiet, wp_to_torch

_TILE = (8, 4)  # rows and columns: the 32 rays that a GPU casts in step
_RENDER = "mujoco_warp._src.render"
_TESTS = ("ray_mesh_with_bvh", "ray_mesh_with_bvh_anyhit")  # of rays to the eye and to a light
_BLOCK = 128  # rays of a block of threads; 64, Warp's own, take a tenth longer on an H200
_REGISTERS = 128  # of a thread; the compiler would take 212, and an SM hold half the rays
_ROUND = 1e-4  # by which the corners of a tube may lie off its edges, m
_MOST_MESHES = 31  # that a mask of 32 bits tells apart


@final
class WarpRenderer:
    """Some cameras of a model, each drawing pictures of one size."""

    def __init__(
        self,
        model: mujoco.MjModel,
        data: Any,
        cameras: Names,
        size: tuple[int, int],
        samples: int = 1,
    ) -> None:
        """Makes room for the pictures.

        Args:
            model: as the scene has it.
            data: Warp's, of every world.
            cameras: in the order of the pictures.
            size: rows and columns.
            samples: rays along both axes of a pixel, of which the mean is shown.
        """
        warp, mujoco_warp = load_warp()
        ids = element_ids(model, "camera", cameras).tolist()
        self._size, self._cameras, self._device = size, len(ids), data.qpos.device
        with quiet(), warp.ScopedDevice(self._device):
            self._context = mujoco_warp.create_render_context(
                model,
                nworld=data.nworld,
                cam_res=size[::-1],
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
                samples_per_pixel=samples,
            )
        self._tests: Any = _ray_tests(model)
        order = [sorted(ids).index(i) for i in ids]  # Warp draws them in the model's order
        self._pixels = self._cast_in_tiles(order)

    def _cast_in_tiles(self, order: list[int]) -> torch.Tensor:
        """Casts rays of one tile side by side, which meet the same shapes: a third less time.

        Args:
            order: of Warp's pictures in ours.

        Returns:
            Where each pixel of a world's pictures lies among its rays.
        """
        area, context = self._size[0] * self._size[1], self._context
        y, x = np.divmod(np.arange(area), self._size[1])
        pixels = np.lexsort((x % _TILE[1], y % _TILE[0], x // _TILE[1], y // _TILE[0]))
        cast = np.concatenate([pixels + i * area for i in range(self._cameras)])
        for rays in (context.ray, context.ray_offset):
            by_sample = rays.numpy().reshape(-1, len(cast), 3)
            rays.assign(by_sample[:, cast].reshape(-1, 3))
        drawn = np.argsort(cast).reshape(self._cameras, area)[order].reshape(-1)
        return torch.as_tensor(drawn.astype(np.int32), device=wp_to_torch(context.rgb_data).device)

    @contextlib.contextmanager
    def _own_kernel(self, model: Any) -> Iterator[None]:
        """Builds the kernel with our ray tests in it; Warp writes and compiles it as it draws."""
        if self._context._megakernel is not None:
            yield
            return
        module = importlib.import_module(_RENDER)
        theirs = {name: getattr(module, name) for name in _TESTS}
        try:
            for name, test in zip(_TESTS, self._tests, strict=True):
                setattr(module, name, test)
            kernel = module._build_megakernel(model, self._context)
            if kernel.options.get("cuda_max_registers") != _REGISTERS:  # Warp keeps equal ones
                kernel.options["cuda_max_registers"] = _REGISTERS
                kernel.module.mark_modified()
            self._context._megakernel = kernel
            yield
        finally:
            for name, test in theirs.items():
                setattr(module, name, test)

    @property
    def textures(self) -> list[Any]:
        """The textures of the model, by their number, to add others to."""
        return list(self._context.textures_registry)

    def set_textures(self, textures: Sequence[Any], skies: NDArray[np.int32]) -> None:
        """Draws with these textures, and each world with one of them for its sky."""
        warp, _ = load_warp()
        context, widths = self._context, [textures[sky].width for sky in skies.tolist()]
        with warp.ScopedDevice(self._device):
            context.textures_registry = list(textures)
            context.textures = warp.array(context.textures_registry, dtype=warp.Texture2D)
            context.skybox_tex_id = warp.array(skies, dtype=int)
            context.skybox_face_width = warp.array(widths, dtype=int)

    def draw(self, model: Any, data: Any) -> torch.Tensor:
        """Returns the pictures as they are now, uint8 (N, cameras, rows, columns, 3)."""
        warp, mujoco_warp = load_warp()
        with quiet(), warp.ScopedDevice(self._device):
            mujoco_warp.kinematics(model, data)
            mujoco_warp.com_pos(model, data)
            mujoco_warp.camlight(model, data)
        return self.cast(model, data)

    def cast(self, model: Any, data: Any) -> torch.Tensor:
        """Returns the pictures of shapes, cameras and lights where the data has them."""
        warp, mujoco_warp = load_warp()
        model.block_dim.render = _BLOCK
        shape = (data.nworld, self._cameras, *self._size, 3)
        drawn = torch.empty(shape, dtype=torch.uint8, device=self._pixels.device)
        with quiet(), warp.ScopedDevice(self._device):
            mujoco_warp.refit_bvh(model, data, self._context)
            with self._own_kernel(model):
                mujoco_warp.render(model, data, self._context)
            flat = drawn.view(data.nworld, -1)
            rays = [self._context.rgb_data, warp.from_torch(self._pixels)]
            size = (data.nworld, len(self._pixels))
            warp.launch(_unpacking(), dim=size, inputs=rays, outputs=[warp.from_torch(flat)])
        return drawn


def on_default_stream(device: Any) -> contextlib.AbstractContextManager[object]:
    """Returns the context in which Torch works in turn with Warp, on a device of Warp's.

    Warp's stream and Torch's default stream of a GPU wait for each other. Other streams of Torch
    wait for neither, so on them a picture could be read before it is drawn.
    """
    if not device.is_cuda:
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.default_stream(device.ordinal))


def send_rows(model: Any, data: Any, name: str, rows: NDArray[Any]) -> None:
    """Puts rows of all worlds, (N, ...), in the place of a field of Warp's data or model."""
    owner = data if hasattr(data, name) else model
    kind = np.int32 if rows.dtype.kind == "i" else np.float32
    held = getattr(owner, name)
    setattr(owner, name, load_warp()[0].array(rows.astype(kind), dtype=held.dtype))


@functools.cache
def _unpacking() -> Any:
    """Returns the kernel that puts the bytes of rays where their pixels are."""
    wp, _ = load_warp()

    def unpack(rays, places, drawn):  # type: ignore[no-untyped-def]
        world, pixel = wp.tid()
        colour = rays[world, places[pixel]]
        for byte in range(3):
            shift = wp.uint32(16 - 8 * byte)  # Warp packs alpha, red, green, blue
            drawn[world, 3 * pixel + byte] = wp.uint8((colour >> shift) & wp.uint32(255))

    pictures = wp.array2d(dtype=wp.uint8)
    rays = wp.array2d(dtype=wp.uint32)
    unpack.__annotations__ = {"rays": rays, "places": wp.array(dtype=int), "drawn": pictures}
    return wp.kernel(unpack, enable_backward=False, module="unique")


@final
@dataclass(frozen=True, slots=True)
class WarpTube:
    """A mesh that is a tube around an axis of its own: radii and half its length, m.

    Its faces look outwards (1) or, as those of TriFinger's wall, into the material (-1), and are
    seen from there.
    """

    mesh: int = -1
    axis: int = 0
    inner: float = 0.0
    outer: float = 0.0
    half: float = 0.0
    faces: int = 1


def _tube(model: mujoco.MjModel) -> WarpTube:
    """Returns the first mesh of which every corner lies on the edges of a tube, or number -1."""
    for mesh in range(model.nmesh):
        corners = _triangles(model, mesh)
        for axis in range(3):
            along = np.abs(corners[..., axis])
            around = np.linalg.norm(np.delete(corners, axis, axis=2), axis=2)
            inner, outer, half = float(around.min()), float(around.max()), float(along.max())
            off = np.minimum(around - inner, outer - around)
            if inner > 2 * (outer - inner) > 0 and max(off.max(), half - along.min()) < _ROUND:
                faces = 1 if _volume(corners) > 0 else -1
                return WarpTube(mesh, axis, inner, outer, half, faces)
    return WarpTube()


def _triangles(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Returns the corners of a mesh's triangles, (n, 3, 3)."""
    first, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
    return model.mesh_vert[first + model.mesh_face[face : face + model.mesh_facenum[mesh]]]


def _volume(corners: np.ndarray) -> float:
    """Returns the volume within triangles; negative where they look inwards."""
    a, b, c = np.moveaxis(corners.astype(np.float64), 1, 0)
    return float((a * np.cross(b, c)).sum() / 6.0)


def _are_closed(model: mujoco.MjModel) -> bool:
    """Returns whether meshes, but for the tube, are closed and look outwards.

    From outside, no back of such a mesh comes first.
    """
    tube = _tube(model).mesh
    return all(_is_closed(model, mesh) for mesh in range(model.nmesh) if mesh != tube)


def _is_closed(model: mujoco.MjModel, mesh: int) -> bool:
    face = model.mesh_faceadr[mesh]
    faces = model.mesh_face[face : face + model.mesh_facenum[mesh]].tolist()
    edges = {(f[i], f[(i + 1) % 3]) for f in faces for i in range(3)}
    return all((b, a) in edges for a, b in edges) and _volume(_triangles(model, mesh)) > 0


def _shadowless(model: mujoco.MjModel) -> int:
    """Returns a mask of the meshes of which no geom casts a shadow."""
    is_mesh = model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    casting = set(model.geom_dataid[is_mesh & model.geom_castshadow.astype(bool)].tolist())
    dark = set(model.geom_dataid[is_mesh].tolist()) - casting
    return sum(1 << mesh for mesh in dark if mesh < _MOST_MESHES)


def _ray_tests(model: mujoco.MjModel) -> tuple[Any, Any]:
    """Returns tests of a ray and a mesh, for rays to the eye and for those to a light.

    A tube is met by formula, and no ray to a light meets a mesh that casts no shadow. Warp looks
    for the first face eight times over, to pass the backs of faces, in code that is written out
    eight times; where all meshes are closed once is enough.
    """
    wp, _ = load_warp()
    theirs, first = (getattr(importlib.import_module(_RENDER), name) for name in _TESTS)
    tube, shadowless = _tube(model), _shadowless(model)
    meet, number = _meet_tube(wp, tube), tube.mesh
    ray = {"pos": wp.vec3, "mat": wp.mat33, "pnt": wp.vec3, "vec": wp.vec3}
    types = {"mesh_bvh_id": wp.array(dtype=wp.uint64), "mesh_id": int, **ray, "max_t": float}

    near = _near_box(wp, model)

    def once(mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t, cull_backfaces):  # type: ignore[no-untyped-def]
        start, way = wp.transpose(mat) @ (pnt - pos), wp.transpose(mat) @ vec
        hit = wp.mesh_query_ray(mesh_bvh_id[mesh_id], start, way, max_t)
        if not hit.result:
            return -1.0, wp.vec3(0.0, 0.0, 0.0), 0.0, 0.0, -1, -1
        return hit.t, wp.normalize(mat @ hit.normal), hit.u, hit.v, hit.face, mesh_id

    once.__annotations__ = {**types, "cull_backfaces": bool}
    nearest = wp.func(once) if _are_closed(model) else theirs

    def seen(mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t, cull_backfaces):  # type: ignore[no-untyped-def]
        if mesh_id == number:
            start = wp.transpose(mat) @ (pnt - pos)
            far, normal = meet(start, wp.transpose(mat) @ vec)
            if far < 0.0 or far > max_t:
                return -1.0, normal, 0.0, 0.0, -1, -1
            return far, mat @ normal, 0.0, 0.0, -1, mesh_id
        if not near(mesh_id, pos, mat, pnt, vec, max_t):
            return -1.0, wp.vec3(0.0, 0.0, 0.0), 0.0, 0.0, -1, -1
        t, n, u, v, f, found = nearest(
            mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t, cull_backfaces
        )
        return t, n, u, v, f, found

    def shaded(mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t):  # type: ignore[no-untyped-def]
        if (wp.int32(shadowless) >> mesh_id) & 1 == 1:
            return False
        if not near(mesh_id, pos, mat, pnt, vec, max_t):
            return False
        return first(mesh_bvh_id, mesh_id, pos, mat, pnt, vec, max_t)

    seen.__annotations__ = {**types, "cull_backfaces": bool}
    shaded.__annotations__ = {**types, "return": bool}
    return wp.func(seen), wp.func(shaded)


def _near_box(wp: Any, model: mujoco.MjModel) -> Any:
    """Returns the function that says whether a ray meets the box around a mesh.

    Most rays that meet the upright box around a slanted finger pass it by; to look into the mesh is
    a chain of slow reads of memory.
    """

    def nowhere(mesh_id):  # type: ignore[no-untyped-def]
        return wp.vec3(0.0, 0.0, 0.0), wp.vec3(0.0, 0.0, 0.0)

    nowhere.__annotations__ = {"mesh_id": int}
    bounds = wp.func(nowhere)
    for mesh in range(model.nmesh):
        corners = _triangles(model, mesh).reshape(-1, 3)
        low, high = corners.min(axis=0) - _ROUND, corners.max(axis=0) + _ROUND
        bounds = _one_more(wp, mesh, (wp.vec3(*low.tolist()), wp.vec3(*high.tolist())), bounds)

    def near(mesh_id, pos, mat, pnt, vec, max_t):  # type: ignore[no-untyped-def]
        low, high = bounds(mesh_id)
        start, way = wp.transpose(mat) @ (pnt - pos), wp.transpose(mat) @ vec
        first, last = float(0.0), float(max_t)  # noqa: UP018 - Warp's variables, not constants
        for axis in range(3):
            slope = way[axis]
            if wp.abs(slope) < 1.0e-9:
                slope = 1.0e-9
            one, other = (low[axis] - start[axis]) / slope, (high[axis] - start[axis]) / slope
            first, last = wp.max(first, wp.min(one, other)), wp.min(last, wp.max(one, other))
        return first <= last

    ray = {"pos": wp.vec3, "mat": wp.mat33, "pnt": wp.vec3, "vec": wp.vec3, "max_t": float}
    near.__annotations__ = {"mesh_id": int, **ray, "return": bool}
    return wp.func(near)


def _one_more(wp: Any, mesh: int, box: tuple[Any, Any], others: Any) -> Any:
    """Returns the function that says a mesh's box, and for other meshes what another one says."""
    lowest, highest = box

    def bounds(mesh_id):  # type: ignore[no-untyped-def]
        low, high = others(mesh_id)
        if mesh_id == mesh:
            low, high = lowest, highest
        return low, high

    bounds.__annotations__ = {"mesh_id": int}
    return wp.func(bounds)


def _meet_tube(wp: Any, tube: WarpTube) -> Any:
    """Returns the function that says how far along a ray a tube's face is, and its normal.

    A ray meets the outside where it enters the outer cylinder, the inside where it leaves the inner
    one, and an end where it enters the slab between both; the other way round where faces look into
    the material.
    """
    axis, half, faces = tube.axis, tube.half, float(tube.faces)
    one, other = (axis + 1) % 3, (axis + 2) % 3
    inner, outer = tube.inner**2, tube.outer**2

    def meet(start, way):  # type: ignore[no-untyped-def]
        far = 1.0e9
        normal = wp.vec3(0.0, 0.0, 0.0)
        a = way[one] * way[one] + way[other] * way[other]
        b = start[one] * way[one] + start[other] * way[other]
        c = start[one] * start[one] + start[other] * start[other]
        for side in range(2):
            square = outer
            sign = -faces
            if side == 1:
                square = inner
                sign = faces
            root = b * b - a * (c - square)
            if root > 0.0 and a > 1.0e-12:
                t = (sign * wp.sqrt(root) - b) / a
                there = start + way * t
                if t > 0.0 and t < far and wp.abs(there[axis]) <= half:
                    far = t
                    there[axis] = 0.0
                    normal = wp.normalize(there) * -sign
        if wp.abs(way[axis]) > 1.0e-9:
            t = (-faces * wp.sign(way[axis]) * half - start[axis]) / way[axis]
            there = start + way * t
            around = there[one] * there[one] + there[other] * there[other]
            if t > 0.0 and t < far and around >= inner and around <= outer:
                far = t
                normal = wp.vec3(0.0, 0.0, 0.0)
                normal[axis] = -wp.sign(way[axis])
        if far > 9.0e8:
            far = -1.0
        return far, normal

    meet.__annotations__ = {"start": wp.vec3, "way": wp.vec3}
    return wp.func(meet)
