"""The suite's own tasks on our models: made once, copied for each world."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, final

import numpy as np

from interverse.core.errors import check_name
from interverse.worlds.control.compat import (
    FieldIndexer,
    NamedIndexStructs,
    quiet,
    suite,
    wrap_model,
)
from interverse.worlds.control.domains import DOMAINS, MULTI_POLES
from interverse.worlds.control.rewards import with_fast_rewards
from interverse.worlds.control.scene import compile_domain

_PLAIN = {str, int}  # types of a second index that stand for themselves


@final
class RememberedNames(FieldIndexer):
    """dm_control's indexer of a field; a key is translated once.

    A field keeps its place in memory, so a part of it that is a view is made once, too.
    """

    __slots__ = ("_array", "_flat", "_known")

    def __init__(self, indexer: Any, struct: Any) -> None:
        super().__init__(struct, indexer._field_name, indexer.axes)
        self._array = getattr(struct, indexer._field_name)
        self._flat = self._array.reshape(-1)
        self._known: dict[Any, Any] = {}  # a view, or a call that returns a copy or a number

    def __getitem__(self, key: Any) -> Any:
        """Returns the array at a key, as dm_control's indexer does."""
        word = key if type(key) is str else _word(key)
        found = self._known.get(word)
        if type(found) is np.ndarray:
            return found
        return self._first(key, word) if found is None else found()

    def _first(self, key: Any, word: Any) -> Any:
        """Returns the array at a key that is new, and keeps how it is found."""
        index = self._convert_key(key)
        found = self._array[index]
        if np.ndim(found) == 0:
            self._known[word] = functools.partial(self._array.__getitem__, index)
        elif np.shares_memory(found, self._array):
            self._known[word] = found
        else:
            places = np.arange(self._array.size).reshape(self._array.shape)[index]
            self._known[word] = functools.partial(self._flat.take, places)
        return found


def _word(key: Any) -> Any:
    """Returns what stands for a key that is no name in a table; a repr tells 1 from True."""
    if type(key) is tuple and len(key) == 2:
        one, other = key
        if type(one) is str:
            return key if type(other) in _PLAIN else (one, None, repr(other))
    return None, repr(key)


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A task of the suite: what each world of it starts from.

    Attributes:
        physics_type: dm_control's class of the domain.
        model: the compiled MuJoCo model; copy it before writing.
        task: dm_control's task object; copy it before use.
        substeps: physics steps in a control step.
        key: the same for worlds whose models differ in looks and dynamics alone.
    """

    physics_type: Any
    model: Any
    task: Any
    substeps: int
    key: tuple[str, int]


def check_task(domain: str, task: str) -> None:
    """Raises unless the domain has that task."""
    check_name("domain", domain, DOMAINS)
    check_name(f"task of {domain}", task, DOMAINS[domain].tasks)


@functools.cache
def template(domain: str, task: str) -> Template:
    """Returns the template of a task, made at the first call in a process."""
    poles = MULTI_POLES.get(task, 1)
    with quiet():
        env = suite.load(domain, task)
    substeps = round(env.control_timestep() / env.physics.timestep())
    task_object = with_fast_rewards(env.task)
    model = domain_model(domain, poles)
    return Template(type(env.physics), model, task_object, substeps, (domain, poles))


@functools.cache
def domain_model(domain: str, poles: int) -> Any:
    """Returns the compiled model of a domain; copy it before writing."""
    with quiet():
        return compile_domain(domain, poles)


def new_physics(made: Template) -> Any:
    """Returns dm_control's physics on a model of its own."""
    physics = made.physics_type.from_model(wrap_model(copy.copy(made.model)))
    remember_names(physics)
    return physics


def new_task(made: Template) -> Any:
    """Returns a task with a random stream of its own."""
    return copy.deepcopy(made.task)
