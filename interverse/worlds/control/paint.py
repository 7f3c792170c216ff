"""Looks written into a compiled model by their bindings: pixel for pixel what a built one shows.

Beside fields of the model a look has two of the renderer. `tex_data` is the picture of a texture,
made when something is drawn; `shown` says whether that picture is seen in place of the scene's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.scm import Binding, Variable
from interverse.sim.drawing import Drawing
from interverse.sim.elements import element_id, find_slot, template
from interverse.sim.single import put_field
from interverse.worlds.control.scene import PICTURE_SIZE, SKY_PICTURE, STOCK_TEXTURES

PIXELS, SHOWN = "tex_data", "shown"
Values = Mapping[str, NDArray[Any]]  # of one world, by variable


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A binding with the names it is made from."""

    binding: Binding
    of: tuple[str, ...]

    def value(self, values: Values) -> NDArray[Any]:
        """Returns what the variables of one world mean to the renderer."""
        function, given = self.binding.function, [values[name] for name in self.of]
        if function is None:
            return given[0]
        made: NDArray[Any] = function(*(value[None] for value in given))[0]
        return made

    def key(self, values: Values) -> Hashable:
        """Returns what is equal only where the value is."""
        return (self.binding.function, *(values[name].tobytes() for name in self.of))


@final
class _Field:
    """Writes one binding into a field of the model."""

    def __init__(self, model: Any, source: _Source) -> None:
        self._model, self._source = model, source
        binding, slot = source.binding, find_slot(model, source.binding, visual=True)
        self._columns, self._repeats = slot.columns, max(1, len(slot.elements))
        self._field = template(model, binding.field)  # the model's memory, but for single numbers
        stock = self._field.reshape(-1)[slot.columns].copy() if binding.relative else 1.0
        self._factor: Any = binding.scale * stock

    def write(self, values: Values) -> None:
        """Makes the field so."""
        value = self._source.value(values) * self._factor
        if value.size < len(self._columns):  # several elements get the same values each
            value = np.tile(value, self._repeats)
        self._field.reshape(-1)[self._columns] = value
        if not self._field.shape:
            put_field(self._model, self._source.binding.field, self._field)


@final
class _Surface:
    """A texture for pictures, and the scene's own that it stands in for."""

    def __init__(self, model: Any, name: str, pixels: _Source, shown: _Source) -> None:
        self._model, self._pixels, self._shown = model, pixels, shown
        stock = element_id(model, "texture", STOCK_TEXTURES[name])
        self._textures = stock, element_id(model, "texture", name)
        self.is_sky = name == SKY_PICTURE
        self._uses = model.mat_texid == stock
        self._content: Hashable = None  # what the model's texture holds
        self._side: tuple[Hashable, NDArray[np.uint8]] | None = None  # the latest one

    def show(self, values: Values, drawing: Drawing) -> None:
        """Brings the picture into GL, unless it is there or the scene's own is seen."""
        shown, texture = self.choose(values), self._textures[1]
        content = self._pixels.key(values)
        if shown and drawing.loaded.get(texture) != content:
            self._fill(values, content)
            drawing.upload(self._model, texture, content)
        if self.is_sky:
            drawing.choose_sky(self._textures, self._textures[shown])

    def fill(self, values: Values) -> None:
        """Brings the picture into the model, unless the scene's own is seen."""
        if self.choose(values):
            self._fill(values, self._pixels.key(values))

    def side(self, values: Values) -> NDArray[np.uint8]:
        """Returns the first face of the picture of these values, seen or not."""
        content = self._pixels.key(values)
        if self._side is None or self._side[0] != content:
            self._side = content, self._pixels.value(values)[:PICTURE_SIZE]
        return self._side[1]

    def choose(self, values: Values) -> bool:
        """Gives materials this texture or the scene's own; returns whether it is this."""
        shown = bool(self._shown.value(values))
        self._model.mat_texid[self._uses] = self._textures[shown]
        return shown

    def _fill(self, values: Values, content: Hashable) -> None:
        if self._content != content:
            start, pixels = int(self._model.tex_adr[self._textures[1]]), self._pixels.value(values)
            self._model.tex_data[start : start + pixels.size] = pixels.ravel()
            self._content = content


def _place(binding: Binding) -> tuple[Any, ...]:
    return binding.field, binding.element, binding.index


def without_covered(looks: Iterable[Variable], covers: Iterable[Variable]) -> Iterator[Variable]:
    """Yields looks without the bindings to places that others take over: a video's surface."""
    taken = {_place(binding) for cover in covers for binding in cover.bindings}
    for look in looks:
        left = tuple(binding for binding in look.bindings if _place(binding) not in taken)
        yield look if len(left) == len(look.bindings) else replace(look, bindings=left)


@final
class Paint:
    """Writes looks into one model, always from its compiled values."""

    def __init__(self, model: Any, variables: Iterable[Variable]) -> None:
        """Finds where the variables' bindings lead."""
        found = {_place(b): _Source(b, b.of or (v.name,)) for v in variables for b in v.bindings}
        drawn = {key for key in found if key[0] in (PIXELS, SHOWN)}
        self._fields = [_Field(model, source) for key, source in found.items() if key not in drawn]
        self._surfaces = [
            _Surface(model, name, found[PIXELS, name, None], found[SHOWN, name, None])
            for name in STOCK_TEXTURES
            if (PIXELS, name, None) in drawn
        ]

    def write(self, values: Values) -> None:
        """Writes everything but pictures; derive the model's constants afterwards."""
        for field in self._fields:
            field.write(values)
        for surface in self._surfaces:
            surface.choose(values)

    def show(self, values: Values, drawing: Drawing) -> None:
        """Brings the look's pictures into GL."""
        for surface in self._surfaces:
            surface.show(values, drawing)

    def fill(self, values: Values) -> None:
        """Brings the look's pictures into the model, for who draws without GL."""
        for surface in self._surfaces:
            if not surface.is_sky:
                surface.fill(values)

    def sky_side(self, values: Values) -> NDArray[np.uint8] | None:
        """Returns one side of the sky, for who draws without GL; None in a domain without one."""
        sky = next((surface for surface in self._surfaces if surface.is_sky), None)
        return None if sky is None else sky.side(values)
