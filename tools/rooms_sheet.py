"""Draws sheets of rooms, each before and after one action, for the documentation.

Usage: python tools/rooms_sheet.py FOLDER [FIRST_HOUSE]; writes rooms_1.png and rooms_2.png there.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs

SHEETS, COLUMNS, SIZE, CAPTION = 2, 6, 224, 16


def chosen(first: int) -> list[Pair]:
    """Returns a pair each of twelve houses, of a class not shown yet and of a rare action."""
    found: list[Pair] = []
    for house in itertools.count(first):
        verbs, classes = [p.verb for p in found], {p.cls for p in found}
        given = generate_pairs("rooms/multi-v1", 0, house, options={"image_size": SIZE})
        fresh = [p for p in given if isinstance(p, Pair) and p.cls not in classes]
        if fresh:
            found.append(min(fresh, key=lambda p: verbs.count(p.verb)))
        if len(found) == SHEETS * COLUMNS:
            break
    return found


def draw_sheet(pairs: list[Pair]) -> Image.Image:
    """Returns pairs side by side, before above after, the object's box drawn in."""
    sheet = Image.new("RGB", (COLUMNS * (SIZE + 4), 2 * SIZE + CAPTION), "white")
    draw = ImageDraw.Draw(sheet)
    for number, pair in enumerate(pairs):
        x = number * (SIZE + 4)
        text = f"room {pair.address.house}: {VERBS[pair.verb].name} {CLASS_NAMES[pair.cls]}"
        draw.text((x + 3, 2), text, fill="black")
        sheet.paste(Image.fromarray(np.concatenate([pair.before, pair.after])), (x, CAPTION))
        for row, box in enumerate((pair.box_before, pair.box_after)):
            y = CAPTION + row * SIZE
            corners = (x + box[0], y + box[1], x + box[2] - 1, y + box[3] - 1)
            draw.rectangle(corners, outline=(255, 255, 255))
    return sheet


def main() -> int:
    """Writes the sheets."""
    pairs = chosen(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for number in range(SHEETS):
        sheet = draw_sheet(pairs[number * COLUMNS : (number + 1) * COLUMNS])
        small = sheet.quantize(palette=sheet.quantize(256), dither=Image.Dither.FLOYDSTEINBERG)
        small.save(Path(sys.argv[1]) / f"rooms_{number + 1}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
