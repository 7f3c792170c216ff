"""The suite of dm_control on our models, with the MuJoCo that is installed.

dm_control 1.0.50 lists array fields of MuJoCo's structs in a table and looks every one of them up.
Nine of them (seven of the model, two of the data, all of flexible bodies) are gone in MuJoCo 4, and
the suite uses none of them; they are struck from the table before anything reads it. So this is the
only file that imports it first. Names are translated once, and rewards of single numbers cost no
arrays: both cost more than the physics in dm_control's own code, and give the same bits.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Any, final

import numpy as np

from interverse.core.errors import RenderError, check_name, missing_extra
from interverse.sim import gl
from interverse.sim.single import struct_fields
from interverse.worlds.control.domains import DOMAINS, MULTI_POLES
from interverse.worlds.control.scene import compile_domain

# dm_control picks its GL library when it is imported and asks for a display unless told; ours is
# found first, so that both draw with the same one. Without any, state observations still work.
with contextlib.suppress(RenderError):
    gl.backend()

try:
    from dm_control.mujoco.wrapper.mjbindings import sizes
except ImportError as error:
    raise missing_extra("dm_control", "control") from error

for _struct in ("mjmodel", "mjdata"):
    _table = sizes.array_sizes[_struct]
    for _name in sorted(_table.keys() - struct_fields(_struct)):
        del _table[_name]

from dm_control import suite  # noqa: E402 - after the guard
from dm_control.mujoco import wrapper  # noqa: E402
from dm_control.mujoco.engine import NamedIndexStructs  # noqa: E402
from dm_control.mujoco.index import FieldIndexer  # noqa: E402
from dm_control.rl.control import PhysicsError  # noqa: E402
from dm_control.utils import rewards  # noqa: E402

__all__ = ["PhysicsError", "suite", "wrapper"]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Holds back MuJoCo's note that an attribute of the suite's own cheetah is out of date."""
    log = logging.getLogger("absl")
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*settotalmass.*")
            yield
    finally:
        log.disabled = before


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A task of the suite: what each world of it starts from.

    Attributes:
        physics_type: dm_control's class of the domain.
        model: the compiled MuJoCo model; copy it before writing.
        task: dm_control's task object; copy it deeply before use.
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
    task_object = _with_fast_rewards(env.task)
    model = domain_model(domain, poles)
    return Template(type(env.physics), model, task_object, substeps, (domain, poles))


@functools.cache
def domain_model(domain: str, poles: int) -> Any:
    """Returns the compiled model of a domain; copy it before writing."""
    with quiet():
        return compile_domain(domain, poles)


def new_physics(made: Template) -> Any:
    """Returns dm_control's physics on a model of its own."""
    physics = made.physics_type.from_model(wrapper.MjModel(copy.copy(made.model)))
    # dm_control's own struct indexer is a new class each time, and classes live until a garbage
    # collection: with them would live the arrays, and so the whole model.
    structs = {}
    for part in ("model", "data"):
        fields, struct = getattr(physics.named, part), getattr(physics, part)
        kept = {name: RememberedNames(item, struct) for name, item in fields._asdict().items()}
        structs[part] = SimpleNamespace(**kept)
    physics._named = NamedIndexStructs(**structs)
    return physics


_VALUE_AT_MARGIN = 0.1  # the suite's default


def tolerance(
    x: Any,
    bounds: tuple[float, float] = (0.0, 0.0),
    margin: float = 0.0,
    sigmoid: str = "gaussian",
    value_at_margin: float = _VALUE_AT_MARGIN,
) -> Any:
    """Returns 1 inside the bounds and less outside, as dm_control's function of that name does."""
    single = isinstance(x, float)
    lower, upper = bounds
    about_zero = type(x) is np.ndarray and x.size > 1 and lower == upper == 0.0 and margin > 0
    if about_zero and sigmoid in ("gaussian", "quadratic"):
        scaled = x / margin * _scale(sigmoid, value_at_margin)
        square = scaled * scaled
        return (
            np.where(square < 1, 1 - square, 0.0)
            if sigmoid == "quadratic"
            else np.exp(-0.5 * square)
        )
    if not (single or (type(x) is np.ndarray and x.shape == (1,))) or not lower <= upper:
        return rewards.tolerance(x, bounds, margin, sigmoid, value_at_margin)
    number = float(x) if single else x.item()
    if lower <= number <= upper and margin >= 0:
        value = 1.0
    elif margin == 0:
        value = 0.0
    elif sigmoid in ("gaussian", "linear", "quadratic") and margin > 0:
        away = (lower - number if number < lower else number - upper) / margin
        value = _fallen(away, sigmoid, value_at_margin, single=single)
    else:
        return rewards.tolerance(x, bounds, margin, sigmoid, value_at_margin)
    return float(value) if single else np.array([value])


def _fallen(away: float, sigmoid: str, value_at_margin: float, *, single: bool) -> float:
    """Returns the value at a distance, in margins."""
    scaled = away * _scale(sigmoid, value_at_margin)
    if sigmoid == "linear":
        return 1 - scaled if abs(scaled) < 1 else 0.0
    square = float(np.float64(scaled) ** 2) if single else scaled * scaled  # as NumPy has each
    if sigmoid == "quadratic":
        return 1 - square if abs(scaled) < 1 else 0.0
    return float(np.exp(-0.5 * square))


@functools.cache
def _scale(sigmoid: str, value_at_margin: float) -> float:
    if sigmoid == "linear":
        return 1 - value_at_margin
    if sigmoid == "quadratic":
        return float(np.sqrt(1 - value_at_margin))
    return float(np.sqrt(-2 * np.log(value_at_margin)))


def _with_fast_rewards(task: Any) -> Any:
    """Returns a task of the suite whose methods find our `tolerance` under `rewards`."""
    ours = SimpleNamespace(**{**vars(rewards), "tolerance": tolerance})
    kind, methods = type(task), {}
    for parent in reversed(kind.__mro__):
        for name, method in vars(parent).items():
            if isinstance(method, FunctionType) and "rewards" in method.__code__.co_names:
                names = {**method.__globals__, "rewards": ours}
                parts = method.__name__, method.__defaults__, method.__closure__
                methods[name] = FunctionType(method.__code__, names, *parts)
    task.__class__ = type(kind.__name__, (kind,), methods)
    return task
