"""Array functions for NumPy and Torch on any device: kinds and copies, then rotations.

Rotations are unit quaternions x, y, z, w, turned elementwise over leading axes. MuJoCo stores w
first: `to_mujoco` and `from_mujoco` reorder.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, missing_extra

Array = Any  # a NumPy array or a Torch tensor
_NEAR = 1e-12  # a squared length this near to one is left as it is


def namespace(*arrays: Array) -> Any:
    """Returns the functions for these arrays: NumPy itself, at once, or what the standard finds.

    >>> namespace(np.zeros(3)) is np
    True
    """
    on_host = isinstance(arrays[0], np.ndarray)
    return np if on_host else array_api_compat.array_namespace(*arrays)


def device(array: Array) -> Any:
    """Returns where an array lies, as its functions take it."""
    return "cpu" if isinstance(array, np.ndarray) else array_api_compat.device(array)


def like(values: Any, array: Array) -> Array:
    """Returns constants in the kind and precision of another array, on its device.

    Tuples are turned into arrays once and shared: nobody may write to them.
    """
    if isinstance(values, tuple):
        return _constant(values, namespace(array), array.dtype, device(array))
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=array.dtype)
    return namespace(array).asarray(values, dtype=array.dtype, device=device(array))


def clipped(actions: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """Returns finite actions within their bounds; one far outside is told."""
    inside: NDArray[Any] = np.clip(actions, low, high)
    if (2 * np.abs(actions - inside) > high - low).any():
        warnings.warn(
            f"actions reach from {actions.min():.3g} to {actions.max():.3g}, beyond twice their"
            f" range: they are clipped to {low.min():.3g} to {high.max():.3g}. Are they in the"
            " units of env.action_space?",
            stacklevel=5,
        )
    return inside


@functools.lru_cache(maxsize=256)
def _constant(values: tuple[Any, ...], xp: Any, dtype: Any, where: Any) -> Array:
    return xp.asarray(values, dtype=dtype, device=where)


def copy_of(array: Array) -> Array:
    """Returns a copy of an array, of the same kind."""
    return array.copy() if isinstance(array, np.ndarray) else array.clone()


def giver(device: str) -> Callable[[NDArray[Any]], Array]:
    """Returns the function that turns a fresh NumPy array into one of the device's kind.

    It shares NumPy's memory: for engines that compute on the CPU.
    """
    if device == "cpu":
        return np.asarray
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "torch") from error

    def give(array: NDArray[Any]) -> Array:
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    return give


def converter(device: str) -> Callable[[Any], Array]:
    """Returns the function that gives an array of the device's kind, fresh where it must be."""
    if device == "cpu":
        return np.asarray
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise missing_extra("torch", "torch") from error
    where = "cpu" if device == "torch" else device
    if where == "warp":
        raise InvalidValueError(
            "device is 'warp', but this world has no MuJoCo", allowed="cpu, torch, cuda"
        )
    if where.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidValueError(
            f"device is {device!r}, but there is no CUDA device", allowed="cpu, torch"
        )

    def convert(values: Any) -> Array:
        if isinstance(values, torch.Tensor):
            return values.to(where)
        return torch.as_tensor(np.array(values), device=where)

    return convert


def to_numpy(array: Any) -> NDArray[Any]:
    """Returns an array, a tensor on any device or numbers as NumPy, copied only if needed."""
    if isinstance(array, np.ndarray):
        return array
    held = array.detach().cpu().numpy() if callable(getattr(array, "detach", None)) else array
    return np.asarray(held)


def mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """Returns what a function gives for arrays, or for each array of dicts of them, however deep.

    >>> mapped(lambda a, b: a + b, {"x": 1, "y": {"z": 2}}, {"x": 10, "y": {"z": 20}})
    {'x': 11, 'y': {'z': 22}}
    """
    if isinstance(trees[0], Mapping):
        return {n: mapped(function, *(tree[n] for tree in trees)) for n in trees[0]}
    return function(*trees)


def leaves(tree: Any) -> list[Any]:
    """Returns an array in a list, or all arrays of dicts of them in order."""
    if isinstance(tree, Mapping):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    return [tree]


def alike(one: Any, other: Any) -> bool:
    """Returns whether two arrays, or dicts and lists of them, are equal; a NaN equals another."""
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(one[n], other[n]) for n in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    mine, theirs = to_numpy(one), to_numpy(other)
    return np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == theirs.dtype.kind == "f")


def batch_ids(worlds: NDArray[np.int64], num_worlds: int) -> NDArray[np.int32] | None:
    """Returns world indices as a batch wants them: sorted, or None for all."""
    return None if len(worlds) == num_worlds else np.sort(worlds).astype(np.int32)


def as_rows(values: Any, count: int, width: int, name: str) -> NDArray[np.float64]:
    """Returns values as (count, width), or as (count, 1) to broadcast; other widths raise."""
    rows = np.asarray(values, dtype=np.float64).reshape(count, -1 if count else width)
    if rows.shape[1] in (1, width):
        return rows
    if width % rows.shape[1] == 0:
        return np.tile(rows, width // rows.shape[1])  # several elements, the same values each
    raise InvalidValueError(f"{name} has {rows.shape[1]} values a world", allowed=f"{width} or 1")


def host_view(array: Array) -> Array:
    """Returns an array on the CPU as NumPy, sharing its memory; one on a GPU as it is."""
    if isinstance(array, np.ndarray) or array.device.type != "cpu":
        return array
    return array.numpy()


# --- rotations -----------------------------------------------------------------------------------


def unit(quaternions: Array) -> Array:
    """Returns quaternions (..., 4) of length one; those that have it keep every bit."""
    xp = namespace(quaternions)
    x, y, z, w = (quaternions[..., i] for i in range(4))
    square = x * x + y * y + z * z + w * w
    length = xp.where(xp.abs(square - 1.0) <= _NEAR, xp.ones_like(square), xp.sqrt(square))
    return quaternions / length[..., None]


def inverse(quaternions: Array) -> Array:
    """Returns the opposite rotations (..., 4)."""
    xp = namespace(quaternions)
    return xp.concat([-quaternions[..., :3], quaternions[..., 3:]], axis=-1)


def multiply(a: Array, b: Array) -> Array:
    """Returns the quaternions of the rotations `b` followed by `a`, (..., 4)."""
    xp = namespace(a, b)
    ax, ay, az, aw = (a[..., i] for i in range(4))
    bx, by, bz, bw = (b[..., i] for i in range(4))
    return xp.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def sum_last(values: Array) -> Array:
    """Returns the sum over the last axis, term by term: library sums reorder with the shape."""
    return sum((values[..., i] for i in range(1, values.shape[-1])), values[..., 0])


def rotate(quaternions: Array, vectors: Array) -> Array:
    """Returns vectors (..., 3) turned by quaternions (..., 4)."""
    x, y, z, w = (quaternions[..., i] for i in range(4))
    a, b, c = (vectors[..., i] for i in range(3))
    s, t, u = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    turned = [a + w * s + (y * u - z * t), b + w * t + (z * s - x * u), c + w * u + (x * t - y * s)]
    return namespace(quaternions, vectors).stack(turned, axis=-1)


def cross(a: Array, b: Array) -> Array:
    """Returns vector products (..., 3)."""
    (ax, ay, az), (bx, by, bz) = ((v[..., 0], v[..., 1], v[..., 2]) for v in (a, b))
    parts = [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]
    return namespace(a, b).stack(parts, axis=-1)


def matrix(q: Array) -> Array:
    """Returns the rotation matrices of quaternions, (..., 3, 3); their columns are the axes."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    xw, yw, zw = x * w, y * w, z * w
    first = [1 - 2 * (yy + zz), 2 * (xy - zw), 2 * (xz + yw)]
    second = [2 * (xy + zw), 1 - 2 * (xx + zz), 2 * (yz - xw)]
    third = [2 * (xz - yw), 2 * (yz + xw), 1 - 2 * (xx + yy)]
    return namespace(q).stack([*first, *second, *third], axis=-1).reshape(*q.shape[:-1], 3, 3)


def from_rotation_vector(vector: Array) -> Array:
    """Returns the quaternions of rotation vectors (axis times angle, rad), (..., 4)."""
    xp = namespace(vector)
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    angle = xp.sqrt(x * x + y * y + z * z)
    small = angle < 1e-12
    scale = xp.where(small, 0.5, xp.sin(angle / 2) / xp.where(small, 1.0, angle))
    return xp.stack([x * scale, y * scale, z * scale, xp.cos(angle / 2)], axis=-1)


def to_rotation_vector(q: Array) -> Array:
    """Returns the shortest rotation vectors (axis times angle, rad) of quaternions, (..., 3)."""
    xp = namespace(q)
    x, y, z, w = (q[..., i] for i in range(4))
    sine = xp.sqrt(x * x + y * y + z * z)
    flip = xp.where(w < 0, -1.0, 1.0)
    small = sine < 1e-12
    angle = 2 * xp.atan2(sine, xp.abs(w))
    scale = flip * xp.where(small, 2.0, angle / xp.where(small, 1.0, sine))
    return xp.stack([x * scale, y * scale, z * scale], axis=-1)


def from_yaw(angle: Array) -> Array:
    """Returns the quaternions of turns about the vertical, rad, (..., 4)."""
    xp = namespace(angle)
    zero = xp.zeros_like(angle)
    return xp.stack([zero, zero, xp.sin(angle / 2), xp.cos(angle / 2)], axis=-1)


def to_mujoco(q: Array) -> Array:
    """Returns quaternions with w first, (..., 4)."""
    return namespace(q).concat([q[..., 3:], q[..., :3]], axis=-1)


def from_mujoco(q: Array) -> Array:
    """Returns w-first quaternions with w last, (..., 4)."""
    return namespace(q).concat([q[..., 1:], q[..., :1]], axis=-1)
