"""Pairs of pictures in memory, as training takes them: uint8, one tensor, no files.

They come from a data set (`from_dataset`) or from one `.npz` file, which a machine without
simulator and data libraries can read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.atomic import atomic
from interverse.core.files.zip_archive import read_npz
from interverse.data.pairs import Labels
from interverse.metrics.representation import Kind

Crop = Literal["single", "multi"]
_NEEDED = ("before", "after", "verb", "noun", "verbs", "nouns", "crop", "coding")
Values = Mapping[str, NDArray[Any]]
_PROPERTIES = ("open", "on", "dirty", "broken")
_FORM = ("width", "depth", "height", "hue", "saturation", "lightness", "gloss", "wear")
_FIELDS = ("position", "yaw", "class", *_FORM)
_PARTS = {"position": "xyz", "color": "rgb"}
_HALF = 128  # of an 8-bit mask
_OPTIONAL = ("boxes", "scenes", "instances", "edges")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairTensors:
    """N pairs of pictures with their labels.

    Attributes:
        images: (N, 2, 3, S, S) uint8, before and after.
        verb, noun: (N,) int64, places in `verbs` and `nouns`.
        verbs, nouns: names of actions and object classes.
        crop: "single" (the object alone) or "multi" (the whole scene).
        masks: (N, 2, S, S) bool, the object acted on, or None.
        factors: name -> (N, 2) float, true values before and after; may be empty.
        extra: name -> array with N rows: boxes, scenes, instances, and edges (width and height of
            the pictures that boxes are in), where the source has them.
    """

    images: Tensor
    verb: Tensor
    noun: Tensor
    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    crop: Crop
    masks: Tensor | None = None
    factors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count, shape = len(self.images), tuple(self.images.shape)
        size = shape[-1] if shape else 0
        if self.images.dtype != torch.uint8 or shape != (count, 2, 3, size, size):
            raise InvalidValueError(
                f"images are {self.images.dtype} {shape}", allowed="uint8 (N, 2, 3, S, S)"
            )
        for name, labels, names in (
            ("verb", self.verb, self.verbs),
            ("noun", self.noun, self.nouns),
        ):
            if tuple(labels.shape) != (count,):
                raise InvalidValueError(
                    f"{name} has shape {tuple(labels.shape)}", allowed=f"({count},)"
                )
            wrong = ((labels < 0) | (labels >= len(names))).nonzero()
            if len(wrong):
                row = int(wrong[0, 0])
                raise InvalidValueError(
                    f"{name} of pair {row} is {int(labels[row])}",
                    allowed=f"0 to {len(names) - 1}, places in {name}s",
                )
        if self.masks is not None and tuple(self.masks.shape) != (count, 2, size, size):
            raise InvalidValueError(
                f"masks are {tuple(self.masks.shape)}, pictures {shape}",
                allowed=f"({count}, 2, {size}, {size})",
            )
        for name, values in self.factors.items():
            if values.shape != (count, 2):
                raise InvalidValueError(
                    f"factor {name!r} is {values.shape}", allowed=f"({count}, 2)"
                )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        """Edge of the pictures in pixels."""
        return int(self.images.shape[-1])

    @property
    def labels(self) -> Labels:
        """What `split_pairs` takes."""
        house = None
        if "scenes" in self.extra:
            house = np.unique(self.extra["scenes"], return_inverse=True)[1].astype(np.int64)
        edges = {}
        if "edges" in self.extra and len(self):
            width, height = self.extra["edges"][0].tolist()
            edges = {"width": width, "height": height}
        return Labels(
            verb=self.verb.cpu().numpy(),
            noun=self.noun.cpu().numpy(),
            verbs=self.verbs,
            box=self.extra.get("boxes"),
            house=house,
            **edges,
        )

    def to(self, device: str | torch.device) -> PairTensors:
        """Returns the same pairs with pictures, masks and labels on a device."""
        return replace(
            self,
            images=self.images.to(device),
            verb=self.verb.to(device),
            noun=self.noun.to(device),
            masks=None if self.masks is None else self.masks.to(device),
        )

    def take(self, rows: ArrayLike) -> PairTensors:
        """Returns some of the pairs."""
        chosen = np.asarray(rows)
        at = torch.as_tensor(chosen, device=self.images.device)
        return replace(
            self,
            images=self.images[at],
            verb=self.verb[at],
            noun=self.noun[at],
            masks=None if self.masks is None else self.masks[at],
            factors={name: values[chosen] for name, values in self.factors.items()},
            extra={name: values[chosen] for name, values in self.extra.items()},
        )


def from_arrays(
    before: ArrayLike,
    after: ArrayLike,
    *,
    verb: Sequence[str] | NDArray[Any],
    noun: Sequence[str] | NDArray[Any],
    crop: Crop,
    **more: Any,
) -> PairTensors:
    """Returns pairs from (N, 3, S, S) uint8 arrays and names of actions and objects.

    Labels count in the names' alphabetical order; `more` holds masks, factors, extra.
    """
    images = np.stack([np.asarray(before), np.asarray(after)], axis=1)
    verbs, verb_at = np.unique(np.asarray(verb, dtype=str), return_inverse=True)
    nouns, noun_at = np.unique(np.asarray(noun, dtype=str), return_inverse=True)
    masks = more.pop("masks", None)
    return PairTensors(
        images=torch.from_numpy(images),
        verb=torch.from_numpy(verb_at.astype(np.int64)),
        noun=torch.from_numpy(noun_at.astype(np.int64)),
        verbs=tuple(map(str, verbs)),
        nouns=tuple(map(str, nouns)),
        crop=crop,
        masks=None if masks is None else torch.as_tensor(np.asarray(masks, dtype=bool)),
        **more,
    )


def from_dataset(dataset: Any, *, size: int, crop: Crop) -> PairTensors:
    """Returns the pairs of an `interverse.data.pairs.PairDataset`, decoded at a size.

    Factors are those of `pair_factors`: camera, light, and the object acted on.
    """
    arrays = dataset.tensors(size=size, crop=crop)
    extra = {"scenes": np.asarray(dataset.scene)}
    if dataset.box_after is not None:
        extra["boxes"] = np.asarray(dataset.box_after)
        extra["edges"] = np.tile([dataset.width, dataset.height], (len(dataset), 1))
    return PairTensors(
        images=torch.from_numpy(np.stack([arrays.before, arrays.after], axis=1)),
        verb=torch.from_numpy(np.asarray(dataset.verb, dtype=np.int64)),
        noun=torch.from_numpy(np.asarray(dataset.noun, dtype=np.int64)),
        verbs=tuple(dataset.verbs),
        nouns=tuple(dataset.nouns),
        crop=crop,
        masks=None if arrays.masks is None else torch.from_numpy(arrays.masks >= _HALF),
        factors=pair_factors(dataset.factors_before, dataset.factors_after),
        extra=extra,
    )


def save(pairs: PairTensors, path: Path) -> None:
    """Writes one `.npz` that appears complete or not at all.

    Neighbouring pixels, channels and the two pictures are much alike, so differences (modulo 256)
    are compressed: 10 KB a pair of rooms at 64 px.
    """
    images = pairs.images.cpu().numpy()
    content = {
        "before": _differences(images[:, 0]),
        "after": _differences(images[:, 1] - images[:, 0]),
        "coding": np.array("difference"),
        "verb": pairs.verb.cpu().numpy(),
        "noun": pairs.noun.cpu().numpy(),
        "verbs": np.array(pairs.verbs),
        "nouns": np.array(pairs.nouns),
        "crop": np.array(pairs.crop),
    }
    if pairs.masks is not None:
        content["masks"] = np.packbits(pairs.masks.cpu().numpy(), axis=-1)
    content |= {f"factor/{name}": values for name, values in pairs.factors.items()}
    content |= {name: pairs.extra[name] for name in _OPTIONAL if name in pairs.extra}
    with atomic(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **content)  # type: ignore[arg-type]


def load(path: Path) -> PairTensors:
    """Returns the pairs of an `.npz`: our own, or one with plain (N, 3, S, S) `before`, `after`.

    A plain file has `coding` "plain" and unpacked bool `masks`; all else is the same.
    """
    try:
        held = read_npz(path)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read as .npz: {error}") from error
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}", allowed=", ".join(_NEEDED))
    try:
        before, after, masks = held["before"], held["after"], held.get("masks")
        if str(held["coding"]) == "difference":
            before = _sums(before)
            after = _sums(after) + before
            if masks is not None:
                masks = np.unpackbits(masks, axis=-1, count=before.shape[-1])
        return PairTensors(
            images=torch.from_numpy(np.stack([before, after], axis=1)),
            verb=torch.from_numpy(held["verb"].astype(np.int64)),
            noun=torch.from_numpy(held["noun"].astype(np.int64)),
            verbs=tuple(map(str, held["verbs"])),
            nouns=tuple(map(str, held["nouns"])),
            crop=str(held["crop"]),  # type: ignore[arg-type]
            masks=None if masks is None else torch.from_numpy(masks.astype(bool)),
            factors={n[7:]: values for n, values in held.items() if n.startswith("factor/")},
            extra={name: held[name] for name in _OPTIONAL if name in held},
        )
    except (InvalidValueError, ValueError, IndexError) as error:
        raise FileFormatError(f"{path}: {error}") from error


def _differences(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns red and blue less green, then each pixel less its left neighbour, modulo 256."""
    out = images.copy()
    out[:, [0, 2]] -= images[:, [1]]
    return np.diff(out, axis=-1, prepend=np.uint8(0))


def _sums(differences: NDArray[np.uint8]) -> NDArray[np.uint8]:
    out = np.cumsum(differences, axis=-1, dtype=np.uint8)
    out[:, [0, 2]] += out[:, [1]]
    return out


# ---------------------------------------------------------------------------------- true factors


def pair_factors(before: Values, after: Values) -> dict[str, NDArray[np.float64]]:
    """Returns every factor of the pairs by name, (N, 2) before and after.

    Vectors become columns, such as camera/position/x. Of objects, the one acted on counts: its
    state (open, on, dirty, broken), position, yaw and class, and its form where that is open.
    """
    out: dict[str, NDArray[np.float64]] = {}
    for name in before:
        if name.startswith(("camera/", "light/")):
            out |= _columns(name, before[name], after[name])
    if "object/state" not in before:
        return out
    slot = np.asarray(after.get("action/object", np.zeros(len(before["object/state"]))))
    slot = slot.ravel().astype(int)
    both: list[dict[str, NDArray[np.float64]]] = [{}, {}]
    for values, found in zip((before, after), both, strict=True):
        for name in ("state", *_FIELDS):
            if f"object/{name}" in values:
                found[name] = np.array(values[f"object/{name}"], dtype=np.float64)
                for other in np.unique(slot[slot > 0]):
                    found[name][slot == other] = values[f"object_{other}/{name}"][slot == other]
    for place, name in enumerate(_PROPERTIES):
        out[name] = np.stack([values["state"][:, place] for values in both], axis=1)
    for name in _FIELDS:
        if name in both[0]:
            out |= _columns(f"object/{name}", *(values[name] for values in both))
    return out


def factor_kinds(names: Sequence[str]) -> list[Kind]:
    """Returns what each factor is: a number, an angle or a class."""
    kinds: dict[str, Kind] = {"yaw": "angle", "class": "categorical"}
    return [kinds.get(name.rpartition("/")[2], "continuous") for name in names]


def _columns(name: str, *moments: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    values = np.stack(moments, axis=1).astype(np.float64)
    if values.ndim == 2:
        return {name: values}
    letters = _PARTS.get(name.rpartition("/")[2], "".join(map(str, range(values.shape[2]))))
    return {f"{name}/{letter}": values[..., at] for at, letter in enumerate(letters)}
