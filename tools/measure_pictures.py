"""Writes `means.py` anew and the statistics of all painted pictures, after a painter has changed.

Usage: python tools/measure_pictures.py (a minute; prints the rows of docs/pictures.md).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from interverse.art.pictures import procedural
from interverse.art.pictures.procedural import Procedural, paint
from interverse.art.pictures.sets import Picture
from interverse.art.textures import Statistics, statistics

_HEAD = '''"""Mean colours of the painted pictures, red, green and blue in hexadecimal, by number.

Made by tools/measure_pictures.py: a world can then tell a body from its surround without painting a
picture.
"""

from __future__ import annotations

MEANS: dict[str, str] = {
'''
_FIELDS = ("luminance", "contrast", "saturation", "red", "green", "blue", "beta")
_IN_LINE = 12


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


def word(image: Picture) -> str:
    """Returns the mean colour as six hexadecimal digits."""
    sums = image.sum(axis=(0, 1), dtype=np.int64)
    pixels = image.shape[0] * image.shape[1]
    return "".join(f"{(2 * int(total) + pixels) // (2 * pixels):02x}" for total in sums)


def main() -> None:
    """Paints every picture once."""
    text = _HEAD
    for name in ("backgrounds", "floors"):
        pictures = Procedural(name)
        words: list[str] = []
        found: dict[str, list[Statistics]] = {}
        for index in range(pictures.count):
            image = paint(name, index)
            words.append(word(image))
            found.setdefault(pictures.kind(index), []).append(statistics(image))
        lines = [" ".join(words[i : i + _IN_LINE]) for i in range(0, len(words), _IN_LINE)]
        text += f'    "{name}": """\n' + "\n".join(lines) + '\n""",\n'
        rows = [row(f"**all {name}**", [s for many in found.values() for s in many])]
        rows += [row(kind, many) for kind, many in found.items()]
        sys.stdout.write("\n".join(rows) + "\n")
    file = Path(procedural.__file__).with_name("means.py")
    file.write_text(text + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
