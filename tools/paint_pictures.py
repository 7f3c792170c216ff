"""Paints the floors and backgrounds anew and packs them into the package.

Usage: python tools/paint_pictures.py [--check] (a minute; prints the pictures' statistics by kind).
With --check it packs nothing and compares every 16th picture with the packed one.
"""

from __future__ import annotations

import io
import sys
import zipfile

import numpy as np
from painters import KINDS, Statistics, paint, statistics
from PIL import Image

from interverse.art.pictures import Picture
from interverse.art.pictures.procedural import FILES, MEANS, Procedural

QUALITY = 90  # of the floors' WebP: 8 MB, 2.4 of 255 from what was painted on average
STEP = 5  # of levels of backgrounds where neighbours differ as much: 6 MB, at most 2 of 255 off
_NEAR = 6.0  # of 255, a packed picture's mean distance from the painted one
_FIELDS = ("luminance", "contrast", "saturation", "red", "green", "blue", "beta")


def row(label: str, found: list[Statistics]) -> str:
    """Returns a Markdown row: means of all, with deviations of what the photographs' table has."""
    values = np.array([[getattr(s, field) for field in _FIELDS] for s in found])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    first = " | ".join(f"{mean[i]:.3f} ± {spread[i]:.3f}" for i in range(2))
    rgb = " ".join(f"{mean[i]:.2f}" for i in (3, 4, 5))
    return (
        f"| {label} | {len(found)} | {first} | {mean[2]:.2f} ± {spread[2]:.2f} | {rgb} "
        f"| {mean[6]:.2f} ± {spread[6]:.2f} |"
    )


def packed(image: Picture, name: str) -> bytes:
    """Returns a picture as WebP: floors are noise all over, backgrounds have edges to keep."""
    buffer = io.BytesIO()
    if name == "floors":
        Image.fromarray(image).save(buffer, "WEBP", quality=QUALITY, method=6, use_sharp_yuv=True)
    else:
        levels = image.astype(int)
        near = [np.roll(levels, by, axis) for axis in (0, 1) for by in (1, -1)]
        rough = np.any([np.abs(levels - other) >= STEP for other in near], axis=(0, -1))
        coarse = np.minimum((levels + STEP // 2) // STEP * STEP, 255)
        kept = np.where(rough[..., None], coarse, levels).astype(np.uint8)
        Image.fromarray(kept).save(buffer, "WEBP", lossless=True, quality=100, method=6)
    return buffer.getvalue()


def pack(name: str) -> None:
    """Writes a set's file: its pictures by number, and their mean colours in hexadecimal."""
    found: dict[str, list[Statistics]] = {}
    means: list[str] = []
    with zipfile.ZipFile(FILES / f"{name}.zip", "w", zipfile.ZIP_STORED) as file:

        def add(entry: str, data: bytes) -> None:
            file.writestr(zipfile.ZipInfo(entry), data)  # without a date: equal runs, equal files

        for kind in KINDS[name]:
            for seed in range(kind.count):
                image = paint(name, kind, seed)
                add(f"{len(means)}.webp", packed(image, name))
                mean = image.mean(axis=(0, 1))
                means.append(bytes((mean + 0.5).astype(np.uint8)).hex())
                found.setdefault(kind.name, []).append(statistics(image))
        add(MEANS, " ".join(means).encode())
    rows = [row(f"**all {name}**", [s for many in found.values() for s in many])]
    sys.stdout.write("\n".join(rows + [row(kind, many) for kind, many in found.items()]) + "\n")


def far(name: str) -> list[str]:
    """Returns a line for each 16th picture that is not what the painters paint."""
    pictures, lines = Procedural(name), []  # type: ignore[arg-type]
    numbered = [(kind, seed) for kind in KINDS[name] for seed in range(kind.count)]
    if [kind.name for kind, _ in numbered] != [pictures.kind(i) for i in range(pictures.count)]:
        return [f"{name}: other kinds"]
    for index in range(0, pictures.count, 16):
        apart = pictures.picture(index, 256).astype(float) - paint(name, *numbered[index])
        if np.abs(apart).mean() > _NEAR:
            lines.append(f"{name} {index}: {np.abs(apart).mean():.1f} of 255 apart")
    return lines


def main() -> int:
    """Paints every picture once, or compares; returns the exit code."""
    if "--check" in sys.argv[1:]:
        lines = [line for name in KINDS for line in far(name)]
        sys.stdout.write("\n".join([*lines, f"{len(lines)} pictures are other than painted\n"]))
        return int(bool(lines))
    for name in KINDS:
        pack(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
