"""The files of CITRIS: frames with their true causal factors and which of them were set.

`train.npz`, `val.npz`, `test.npz` and `..._triplets.npz` of Pong, Ball-in-Boxes and Voronoi hold
`images`, `latents`, `targets`, `keys`; those of Temporal Causal3DIdent `imgs`, `raw_latents`,
`shape_latents`, `interventions`. Rows of the plain files follow each other in time, and row t of
the targets says what was set in the step into row t + 1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, check_name, explain
from interverse.core.files.zip_archive import read_npz

SPLITS = ("train", "val", "test")
CAUSAL3D_NAMES = (
    *("pos-x", "pos-y", "pos-z", "rot-alpha", "rot-beta", "rot-gamma", "rot-spot"),
    *("hue-object", "hue-spot", "hue-back", "obj-shape", "obj-material"),
)
"""The factors of Temporal Causal3DIdent; `raw_latents` holds the first of them."""


class CitrisSteps(NamedTuple):
    """Steps from one frame to the next, a row each."""

    before: NDArray[np.uint8]  # (N, H, W, 3)
    after: NDArray[np.uint8]
    latents_before: NDArray[Any]  # (N, K)
    latents_after: NDArray[Any]
    targets: NDArray[Any]  # (N, ...), what was set


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CitrisFrames:
    """One file.

    Attributes:
        path: the file. names: of the K factors, as far as the file tells.
        images: uint8 (N, H, W, 3), or (N, 3, H, W, 3) in a file of triplets.
        latents: (N, K) or (N, 3, K), the true factors.
        targets: (N - 1 or N, ...), which factors were set; in triplets, from which of the first
            two frames the third takes each.
    """

    path: Path
    names: tuple[str, ...]
    images: NDArray[np.uint8]
    latents: NDArray[Any]
    targets: NDArray[Any]

    @property
    def triplets(self) -> bool:
        """Whether rows are triplets of frames instead of one moment each."""
        return self.images.ndim == 5

    def steps(self) -> CitrisSteps:
        """Returns the steps between consecutive frames."""
        if self.triplets:
            raise InvalidValueError(
                f"{self.path} holds triplets, which do not follow each other in time"
            )
        return CitrisSteps(
            self.images[:-1],
            self.images[1:],
            self.latents[:-1],
            self.latents[1:],
            self.targets[: len(self.images) - 1],
        )


def load_citris(
    folder: str | os.PathLike[str],
    split: Literal["train", "val", "test"] = "train",
    *,
    triplets: bool = False,
) -> CitrisFrames:
    """Returns one file of a CITRIS data set.

    Args:
        folder: where `train.npz` and so on are.
        split: which; "val" falls back to "test" where there is no such file.
        triplets: the `..._triplets.npz` of that split instead.
    """
    check_name("split", split, SPLITS)
    ending = "_triplets.npz" if triplets else ".npz"
    path = Path(folder) / f"{split}{ending}"
    if split == "val" and not path.exists():
        path = path.with_name(f"test{ending}")
    if not path.is_file():
        raise FileNotFoundError(explain(f"there is no file {path}"))
    try:
        held = read_npz(path)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read as .npz: {error}") from error
    grid = "images" in held
    shown, true, set_ = (
        ("images", "latents", "targets") if grid else ("imgs", "raw_latents", "interventions")
    )
    for name in (shown, true, set_):
        if name not in held:
            raise FileFormatError(
                f"{path} lacks {('images' if name == 'imgs' else name)!r}; it has"
                f" {', '.join(sorted(held)) or 'nothing'}",
                allowed="images, latents, targets, keys; or imgs, raw_latents, interventions",
            )
    images, latents, targets = held[shown], held[true], held[set_]
    names = tuple(map(str, held.get("keys", ()))) if grid else CAUSAL3D_NAMES[: latents.shape[-1]]
    if not grid and "shape_latents" in held:
        shapes = held["shape_latents"].reshape(*latents.shape[:-1], -1)
        latents = np.concatenate([latents, shapes], axis=-1)
        names += CAUSAL3D_NAMES[-2:][: shapes.shape[-1]]
    shape = images.shape
    if images.dtype != np.uint8 or len(shape) not in (4, 5) or shape[-1] != 3:
        raise FileFormatError(
            f"{path}: images are {images.dtype} {shape}",
            allowed="uint8 (N, H, W, 3), or (N, 3, H, W, 3) for triplets",
        )
    lead = shape[:-3]
    if latents.shape[: len(lead)] != lead or latents.ndim != len(lead) + 1:
        raise FileFormatError(f"{path}: latents are {latents.shape}, images {shape}")
    # In time the last row may go without, since no step leads on from it.
    if len(targets) not in ((shape[0],) if len(shape) == 5 else (shape[0] - 1, shape[0])):
        raise FileFormatError(f"{path}: targets are {targets.shape}, images {shape}")
    return CitrisFrames(path=path, names=names, images=images, latents=latents, targets=targets)
