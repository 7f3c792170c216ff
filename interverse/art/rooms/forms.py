"""Forms of items: size, colour, gloss and wear, read off an item and given to another like it."""

from __future__ import annotations

import colorsys
from dataclasses import replace

import numpy as np

from interverse.art.meshes import scaled
from interverse.art.rooms.item import Item, MixedTexture, Part, Rgb, RoomJoint, RoomTexture, Surface
from interverse.art.rooms.kit import covered

FORM = ("width", "depth", "height", "hue", "saturation", "lightness", "gloss", "wear")
"""The factors of a form, in their order everywhere."""
Form = tuple[float, float, float, float, float, float, float, float]
_COLOUR = slice(3, 6)


def own_form(item: Item) -> Form:
    """Returns an item's size in metres, the colour and gloss of its largest part, and no wear."""
    main = max(item.parts, key=_area).surface
    tint = np.array(main.rgba[:3])  # times the texture's colours on average
    if isinstance(main.texture, RoomTexture):
        tint = tint * np.mean(main.texture.colours, axis=0)
    color = colorsys.rgb_to_hsv(*np.clip(tint, 0, 1).tolist())
    return (*item.size, *color, main.specular, 0.0)


def formed(item: Item, form: Form) -> Item:
    """Returns an item in another form.

    Its parts are stretched from its foot; hue, saturation and lightness of all surfaces that do not
    glow move by as much as those of its largest part, and so does gloss.
    """
    own = np.array(own_form(item))
    by = np.array(form[:3]) / own[:3]
    move = np.array(form) - own
    parts = [
        replace(
            part,
            mesh=scaled(part.mesh, by),
            surface=part.surface if part.outlook else _surface(part.surface, move),
            alternate={key: _surface(found, move) for key, found in part.alternate.items()},
            joint=None if part.joint is None else _joint(part.joint, by),
        )
        for part in item.parts
    ]
    light = None if item.light is None else tuple((np.array(item.light) * by).tolist())
    return replace(item, parts=tuple(parts), size=form[:3], light=light)


def _area(part: Part) -> float:
    """Returns the surface of a part's box: what is in front of all else is large."""
    if part.shown_when is not None or part.surface.emission > 0 or part.outlook:
        return 0.0
    x, y, z = np.ptp(part.mesh.vertices, axis=0)
    return float(x * y + y * z + z * x)


def _joint(joint: RoomJoint, by: np.ndarray) -> RoomJoint:
    x, y, z = (np.array(joint.origin) * by).tolist()
    if joint.kind == "hinge":
        return replace(joint, origin=(x, y, z))
    way = np.array(joint.axis) / np.linalg.norm(joint.axis) * by
    long = float(np.linalg.norm(way))
    a, b, c = (way / long).tolist()
    return replace(joint, origin=(x, y, z), axis=(a, b, c), travel=joint.travel * long)


def _surface(surface: Surface, move: np.ndarray) -> Surface:
    if surface.emission > 0:
        return surface
    texture = surface.texture
    if isinstance(texture, RoomTexture):
        colours = tuple(_moved(colour, move[_COLOUR]) for colour in texture.colours)
        found = replace(surface, texture=replace(texture, colours=colours))
    else:
        red, green, blue = _moved(surface.rgba[:3], move[_COLOUR])
        found = replace(surface, rgba=(red, green, blue, surface.rgba[3]))
    gloss, wear = move[6], float(np.clip(move[7], 0, 1))
    found = replace(
        found,
        specular=float(np.clip(surface.specular + gloss, 0, 1)),
        shininess=float(np.clip(surface.shininess + gloss, 0, 1)),
    )
    if wear == 0 or isinstance(texture, MixedTexture):
        return found
    worn = covered(found, "wear")
    mix = MixedTexture(first=found, second=worn, share=wear)
    return replace(worn, texture=mix, rgba=(1.0, 1.0, 1.0, found.rgba[3]))


def _moved(colour: Rgb, by: np.ndarray) -> Rgb:
    hue, saturation, light = colorsys.rgb_to_hsv(*np.clip(colour, 0, 1).tolist())
    return colorsys.hsv_to_rgb(
        (hue + by[0]) % 1.0,
        float(np.clip(saturation + by[1], 0, 1)),
        float(np.clip(light + by[2], 0, 1)),
    )
