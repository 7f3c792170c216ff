"""The store of N worlds: every value as rows by world, edited as a whole or not at all.

A store is made from variables. An edit takes copies of rows, changes and judges them, and commits
them; the commit sends what changed to the simulators, by the variables' bindings and in no other
way. Rows are arrays of any kind (NumPy, Torch on any device): `asarray` makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, copy_of, namespace, to_numpy
from interverse.core.errors import InvalidValueError
from interverse.scm.variable import KINDS, Binding, Kind, Variable

Index = NDArray[np.int64]
Rows = dict[str, Array]  # values of some worlds by key, (n, ...) each
Edit = tuple[Binding, Array]  # where, and one row of values per world
Write = Callable[[Sequence[Edit], Index], None]

PREFIX = "store/"  # of the rows' names in a saved state


@final
@dataclass(frozen=True, slots=True)
class StoreSlot:
    """The place of a value: an array of the store, an index after the world axis."""

    key: str
    index: tuple[int, ...] = ()


@final
@dataclass(slots=True, eq=False)
class _Cached:
    """A value made from rows, good until one of them changes."""

    value: Any
    stamps: tuple[int, ...]
    edits: int  # of the whole store when it was last looked at


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Writer:
    """A simulator that follows the store: how to write to it, and which kinds of variable."""

    write: Write
    kinds: Collection[str] = field(default=KINDS)


@final
class Store:
    """The values of N worlds, and where they go.

    >>> from interverse.scm.space import Box
    >>> from interverse.scm.variable import table
    >>> mass = Variable(name="mass", kind="latent", default=np.array(0.5), domain=Box(0, 1))
    >>> store = Store(table(mass), num_worlds=2)
    >>> rows = store.take(np.array([1]))
    >>> rows["mass"][:] = 0.75
    >>> _ = store.commit(rows, np.array([1]))
    >>> store.read("mass").tolist()
    [0.5, 0.75]
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        *,
        num_worlds: int,
        start: Mapping[str, NDArray[Any]] | None = None,
        slots: Mapping[str, StoreSlot | None] | None = None,
        asarray: Callable[[Any], Array] = np.array,
    ) -> None:
        """Makes the rows of every world.

        The variables' defaults fill the rows that `start` does not: one world's rows, (1, ...) by
        key, of arrays that variables share and of state that no variable shows. `slots` says where
        values are kept that have no array of their own name, None where they are worked out when
        read; names that are no variable may stand there too, for bindings to name. `asarray` makes
        arrays of the simulator's kind, on its device, in its precision.
        """
        self.num_worlds, self._asarray = num_worlds, asarray
        own = {name: StoreSlot(name) for name in variables}
        places = {**own, **(slots or {})}
        self.slots: dict[str, StoreSlot] = {n: s for n, s in places.items() if s is not None}
        one = {
            slot.key: variables[name].default[None]
            for name, slot in self.slots.items()
            if name in variables and not slot.index
        }
        one |= dict(start or {})
        self.rows: Rows = {
            key: asarray(np.repeat(np.asarray(rows), num_worlds, axis=0))
            for key, rows in one.items()
        }
        self.start = {key: asarray(np.array(rows)) for key, rows in one.items()}
        self._stamps, self._edits = dict.fromkeys(self.rows, 0), 0
        self._cache: dict[str, _Cached] = {}
        self._writers: list[_Writer] = []
        self._bound = bound_by(tuple(variables.values()))
        self._names: dict[str, list[str]] = {}
        for name, slot in self.slots.items():
            self._names.setdefault(slot.key, []).append(name)
        for bound in self._bound:
            for name in bound.of:
                if name not in self.slots:
                    raise InvalidValueError(
                        f"a binding to {bound.binding.field} is made from {name!r}",
                        allowed="variables that the store keeps",
                    )

    def follow(self, write: Write, kinds: Collection[str] = KINDS) -> None:
        """Sends every later change of variables of some kinds to a simulator."""
        refuse_shared_places(self._bound, factors=True)
        self._writers.append(_Writer(write, kinds))

    # -------------------------------------------------------------------- reading

    def index(self, worlds: Index) -> Any:
        """Returns an index of rows: every world in order is a slice, which copies nothing."""
        if len(worlds) == self.num_worlds and bool(np.all(worlds == np.arange(self.num_worlds))):
            return slice(None)
        return self._asarray(worlds)

    def take(self, worlds: Index) -> Rows:
        """Returns copies of some worlds' rows."""
        where = self.index(worlds)
        return {key: copy_of(rows[where]) for key, rows in self.rows.items()}

    def part(self, rows: Mapping[str, Array], name: str) -> Array:
        """Returns a view of one variable's values in some rows, (n, *shape)."""
        slot = self.slots[name]
        return rows[slot.key][(slice(None), *slot.index)] if slot.index else rows[slot.key]

    def read(self, name: str) -> Array:
        """Returns a copy of one variable's values in every world, (N, *shape)."""
        return copy_of(self.part(self.rows, name))

    def cached(self, name: str, keys: Iterable[str], make: Callable[[], Any]) -> Any:
        """Returns what `make` gave, made again only after one of the keys has changed."""
        held = self._cache.get(name)
        if held is not None and held.edits == self._edits:
            return held.value
        stamps = tuple(map(self._stamps.__getitem__, keys))
        if held is None or held.stamps != stamps:
            held = self._cache[name] = _Cached(make(), stamps, self._edits)
        held.edits = self._edits
        return held.value

    def touch(self, keys: Iterable[str]) -> None:
        """Says that rows of some keys were written in place."""
        self._edits += 1
        for key in keys:
            self._stamps[key] += 1

    # -------------------------------------------------------------------- editing

    def commit(
        self,
        rows: Mapping[str, Array],
        worlds: Index,
        keys: Collection[str] | None = None,
        before: Mapping[str, Array] | None = None,
    ) -> set[str]:
        """Puts edited rows into some worlds, and into the simulators; returns what changed.

        Only `keys` may differ, None looks at all; `before` are these worlds' rows as they are,
        where the caller has them.
        """
        where = self.index(worlds)
        now = before or {key: self.rows[key][where] for key in (rows if keys is None else keys)}
        changed = changed_keys(rows, now, now if keys is None else keys)
        names = self.changed_names(rows, now, changed)
        for key in changed:
            self.rows[key][where] = rows[key]
        self.touch(changed)
        for writer in self._writers:
            edits = self.edits(rows, names, writer.kinds)
            if edits:
                writer.write(edits, worlds)
        return names

    def changed_names(
        self, rows: Mapping[str, Array], before: Mapping[str, Array], keys: Iterable[str]
    ) -> set[str]:
        """Returns the names whose values differ in any world, looking at some keys."""
        out: set[str] = set()
        for key in keys:
            unequal = np.asarray(to_numpy(rows[key] != before[key]).any(axis=0))
            names = self._names.get(key, ())
            out.update(name for name in names if unequal[self.slots[name].index].any())
        return out

    def edits(
        self, rows: Mapping[str, Array], names: Collection[str], kinds: Collection[str] = KINDS
    ) -> list[Edit]:
        """Returns what rows mean to a simulator: every binding made from one of the names."""
        wanted, out = set(names), []
        for bound in self._bound:
            if bound.kind in kinds and not wanted.isdisjoint(bound.of):
                values, function = [self.part(rows, n) for n in bound.of], bound.binding.function
                out.append((bound.binding, values[0] if function is None else function(*values)))
        return out

    def sources(self, wanted: Callable[[Binding], bool]) -> set[str]:
        """Returns the names that some bindings are made from."""
        return {name for bound in self._bound if wanted(bound.binding) for name in bound.of}

    def restart(self, worlds: Index) -> None:
        """Puts the rows of the start back; simulators are reset by whoever owns them."""
        where = self.index(worlds)
        for key, rows in self.rows.items():
            rows[where] = self.start[key]
        self.touch(self.rows)

    def update(self, values: Mapping[str, Array], worlds: Index) -> None:
        """Takes over what a simulator has moved, (n, ...) by key; sends nothing back."""
        where = self.index(worlds)
        for key, moved in values.items():
            self.rows[key][where] = moved
        self.touch(values)

    # --------------------------------------------------------------------- saving

    def save(self, worlds: Index) -> dict[str, Array]:
        """Returns copies of some worlds' rows, by prefixed key."""
        return {PREFIX + key: rows for key, rows in self.take(worlds).items()}

    def load(self, state: Mapping[str, Array], worlds: Index) -> None:
        """Puts saved rows into some worlds; simulators load what they saved themselves."""
        where = self.index(worlds)
        for key, rows in self.rows.items():
            rows[where] = self._asarray(state[PREFIX + key])
        self.touch(self.rows)


def changed_keys(
    rows: Mapping[str, Array], before: Mapping[str, Array], keys: Iterable[str]
) -> list[str]:
    """Returns the keys whose rows differ, with one look at the device for all of them."""
    order = list(keys)
    if not order:
        return []
    xp = namespace(rows[order[0]])
    flags = xp.stack([xp.any(rows[key] != before[key]) for key in order])
    return [key for key, differs in zip(order, flags.tolist(), strict=True) if differs]


def product(*values: Array) -> Array:
    """Returns the product of several values: a function for bindings."""
    return functools.reduce(lambda a, b: a * b, values)


# --- places --------------------------------------------------------------------------------------
# Were two variables to write one place of a simulator, the later `do` would count, and equal values
# would not mean equal worlds. A binding may take over another's place if it is made from all that
# the other is made from: then it says the same, whatever came last.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A binding with the variable that declares it and the names it is made from."""

    variable: str
    binding: Binding
    of: tuple[str, ...]
    kind: Kind


@functools.lru_cache(maxsize=64)  # of one world's variables, for the next with them
def bound_by(variables: tuple[Variable, ...]) -> tuple[Bound, ...]:
    """Returns the bindings of variables, no two of which write one place."""
    bound = tuple(
        Bound(variable.name, binding, binding.of or (variable.name,), variable.kind)
        for variable in variables
        for binding in variable.bindings
    )
    refuse_shared_places(bound, factors=False)
    return bound


@functools.lru_cache(maxsize=64)
def refuse_shared_places(bound: tuple[Bound, ...], *, factors: bool) -> None:
    """Raises if two variables write one place, unless the later is made from all of the earlier.

    With `factors` a factor on what is written there counts too: factors commute where all are
    applied anew, and not where each is written by itself.
    """
    known: dict[str, dict[str | None, list[Bound]]] = {}
    for later in bound:
        if later.binding.relative and not factors:
            continue
        by_element = known.setdefault(later.binding.field, {})
        for earlier in _candidates(by_element, later.binding):
            if earlier.variable != later.variable and not set(earlier.of) <= set(later.of):
                place = later.binding.field
                if later.binding.element is not None:
                    place += f" of {later.binding.element}"
                both = f"of=({earlier.variable!r}, {later.variable!r})"
                raise InvalidValueError(
                    f"{earlier.variable} and {later.variable} both write {place}",
                    allowed="one variable for each place, so that values say what the world is",
                    fix="Bind one of them elsewhere, or leave it out; a world that takes "
                    "bindings of several variables also takes one of both (function=..., "
                    f"{both})",
                )
        for element in _elements(later.binding):
            by_element.setdefault(element, []).append(later)


def _candidates(by_element: dict[str | None, list[Bound]], binding: Binding) -> Iterator[Bound]:
    """Yields what is known to write one of a binding's places; the same one perhaps twice."""
    whole = binding.element is None
    names = by_element if whole else (*_elements(binding), None)
    mine = _columns(binding)
    for name in names:
        for other in by_element.get(name, ()):
            theirs = _columns(other.binding)
            if mine is None or theirs is None or mine & theirs or whole != (name is None):
                yield other


def _elements(binding: Binding) -> tuple[str | None, ...]:
    """Returns the elements; None alone for a whole field."""
    return binding.element if isinstance(binding.element, tuple) else (binding.element,)


def _columns(binding: Binding) -> frozenset[int] | None:
    """Returns the places in each element; None for all of them."""
    if binding.index is None:
        return None
    return frozenset(binding.index if isinstance(binding.index, tuple) else (binding.index,))
