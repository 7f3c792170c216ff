"""Named access to the arrays of MuJoCo that remembers each key: names took most of a step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, final

from interverse.worlds.control.compat import FieldIndexer, NamedIndexStructs


@final
class RememberedNames(FieldIndexer):
    """dm_control's indexer of a field; a key is translated once."""

    __slots__ = ("_array", "_known", "_other")

    def __init__(self, indexer: Any, struct: Any) -> None:
        super().__init__(struct, indexer._field_name, indexer.axes)
        self._array = getattr(struct, indexer._field_name)
        self._known: dict[str, Any] = {}
        self._other: dict[Any, Any] = {}  # of keys that are no names

    def __getitem__(self, key: Any) -> Any:
        """Returns the array at a key, as dm_control's indexer does."""
        known, word = (self._known, key) if type(key) is str else (self._other, _word(key))
        try:
            return self._array[known[word]]
        except KeyError:
            known[word] = index = self._convert_key(key)
            return self._array[index]


def _word(key: Any) -> Any:
    """Returns what stands for a key that is no name in a table: cheap for a pair with a range."""
    if type(key) is tuple and len(key) == 2:
        one, other = key
        if type(one) is str:
            if type(other) is slice:
                return one, other.start, other.stop, other.step
            if type(other) is str:
                return key
        elif type(one) is slice and type(other) is list:
            return one.start, one.stop, one.step, *other
    return repr(key)


def remember_names(physics: Any) -> None:
    """Makes a physics of our own translate each name once; values and views stay what they are.

    dm_control's own struct indexer is a new class each time, and classes live until a garbage
    collection: with them would live the arrays, and so the whole model.
    """
    structs = {}
    for part in ("model", "data"):
        fields = getattr(physics.named, part)
        struct = getattr(physics, part)
        kept = {name: RememberedNames(item, struct) for name, item in fields._asdict().items()}
        structs[part] = SimpleNamespace(**kept)
    physics._named = NamedIndexStructs(**structs)
