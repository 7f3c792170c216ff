"""Identity of a policy or a metric: a hash of all that decides what it does, where that is known.

A file, a registered name, an exported policy and a Torch module can be hashed by content. Any other
callable may depend on values that no hash sees (a module's constant, another module's code, the
state of an object), so it has no identity unless the user gives it a version.
"""

from __future__ import annotations

import dis
import hashlib
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from interverse.core.code import files_hash
from interverse.rollouts.saved import (
    CARD,
    NAMES,
    SHIPPED,
    PolicyLike,
    is_named,
    policy_path,
    trained_policy,
)

_DEEPEST = 32
_HOOKS = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called", "_pre_hooks")


class UnknownContentError(Exception):
    """Something whose content cannot be hashed; the text names it."""


def fingerprint(policy: PolicyLike) -> str | None:
    """Returns a hash of a policy's content; None if that cannot be known.

    >>> fingerprint("random") == fingerprint("random")
    True
    >>> fingerprint(lambda seen: seen) is None
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    if is_named(policy):
        digest.update(f"name {policy}".encode())
    elif (path := policy_path(policy)) is not None:
        digest.update(f"files {files_hash(path)}".encode())
    else:
        try:
            _Content(digest).add_model(policy)
        except UnknownContentError:
            return None
    return digest.hexdigest()


def recorded_policy(run: Mapping[str, Any]) -> str | Path | None:
    """Returns the policy that a run's record names, if it is there and is the one that was scored.

    That is a name, a policy of the package, or a folder with a policy's card: JSON and safetensors,
    and nothing of it is loaded before its content has the recorded hash.
    """
    source = run.get("source")
    if source in NAMES:
        return str(source)
    path = Path(str(source))
    places = [trained_policy(path.name)] if path.name in SHIPPED else []
    places += [path] if source and (path / CARD).is_file() else []
    return next((place for place in places if fingerprint(place) == run.get("policy")), None)


def function_hash(function: Callable[..., Any]) -> str | None:
    """Returns a hash of a function's code and of all that it refers to; None if not all is known.

    >>> function_hash(len) == function_hash(len) != function_hash(max)
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        _Content(digest).add(function)
    except UnknownContentError:
        return None
    return digest.hexdigest()


class _Content:
    """Adds values to a digest, each with its type and length; raises at the first unknown one."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest
        self._seen: dict[int, Any] = {}

    def add_model(self, model: Any) -> None:
        """Adds a Torch module, a Stable-Baselines3 model or an exported policy."""
        name = type(model).__qualname__
        if type(model).__module__.startswith("interverse.rollouts."):
            self._note(f"exported {name}")
            self.add(vars(model))
        elif _is_module(model):
            self.add(model)
        elif _of_library(type(model)) and _is_module(getattr(model, "policy", None)):
            self._note(f"model {name} {model.observation_space} {model.action_space}")
            self.add(model.policy)
        else:
            raise UnknownContentError(name)

    def _note(self, text: str) -> None:
        self._digest.update(f"{len(text)}:{text};".encode())

    def add(self, value: Any, depth: int = 0) -> None:
        """Adds a value with all that it holds."""
        if depth > _DEEPEST:
            raise UnknownContentError("values nested too deep")
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            self._note(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self._note(f"array {value.dtype.str} {value.shape}")
            self._digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, tuple | frozenset | range | types.CodeType):
            self._add_object(value, depth + 1)  # equal ones may or may not be one object
        elif id(value) in self._seen:
            self._note(f"seen {list(self._seen).index(id(value))}")
        else:
            self._seen[id(value)] = value  # held, so that its id stays its own
            self._add_object(value, depth + 1)

    def _add_object(self, value: Any, depth: int) -> None:
        if _is_torch(value, "Tensor"):
            self._note(f"tensor {value.dtype}")
            plain = value.detach().cpu()
            exact = str(value.dtype) != "torch.bfloat16"  # which NumPy does not know
            self.add((plain if exact else plain.float()).numpy(), depth)
        elif isinstance(value, Mapping | list | tuple | set | frozenset | range):
            parts = list(value)
            if isinstance(value, Mapping):
                parts = [part for pair in value.items() for part in pair]
            elif isinstance(value, set | frozenset):
                parts = sorted(value, key=repr)
            self._note(f"{type(value).__name__} {len(parts)}")
            for part in parts:
                self.add(part, depth)
        elif isinstance(value, type):
            self._add_class(value, depth)
        elif isinstance(value, types.FunctionType):
            self._add_function(value, depth)
        elif isinstance(value, types.CodeType):
            if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(value)):
                raise UnknownContentError(f"{value.co_name}, which imports when it is called")
            self.add([value.co_code, list(value.co_names), list(value.co_varnames)], depth)
            self.add(list(value.co_consts), depth)
        elif _of_library(value):
            self._note(f"library {_home(value)} {getattr(value, '__qualname__', '')}")
        elif _is_module(value) or hasattr(type(value), "__dataclass_fields__"):
            self._add_class(type(value), depth)
            self._add_state(value, depth)
        else:
            raise UnknownContentError(type(value).__qualname__)

    def _add_state(self, value: Any, depth: int) -> None:
        held = dict(getattr(value, "__dict__", {}))
        if not held and hasattr(type(value), "__dataclass_fields__"):
            held = {name: getattr(value, name) for name in type(value).__dataclass_fields__}
        for name, part in sorted(held.items()):
            mode = name == "training" and _is_module(value)  # it acts in eval mode
            if not mode and not (name.endswith(_HOOKS) and not part):
                self._note(name)
                self.add(part, depth)

    def _add_class(self, kind: type, depth: int) -> None:
        home = _FORMER.get(kind.__qualname__, kind.__module__)
        self._note(f"class {home} {kind.__qualname__}")
        if _of_library(kind) or kind.__module__.startswith("interverse."):
            return  # their versions, and the package's code, are told apart from this
        for base in kind.__bases__:
            self._add_class(base, depth)
        for name, part in sorted(vars(kind).items()):
            if name in _UNTOLD or isinstance(part, types.GetSetDescriptorType):
                continue
            self._note(name)
            if isinstance(part, property | staticmethod | classmethod):
                part = getattr(part, "fget", None) or getattr(part, "__func__", None)
            self.add(part, depth)

    def _add_function(self, function: types.FunctionType, depth: int) -> None:
        if _of_library(function) or function.__module__.startswith("interverse."):
            self._note(f"function {function.__module__} {function.__qualname__}")
            return
        self.add(function.__code__, depth)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        self.add([cells, function.__defaults__, function.__kwdefaults__], depth)
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                self._note(name)
                self.add(function.__globals__[name], depth)


# Where classes of saved policies stood when hashes of them were first recorded.
_FORMER = {
    "PixelCard": "interverse.rollouts.pixels",
    **dict.fromkeys(
        ("PlanLayers", "PlanModel", "PlanOptions", "PlanSizes"), "interverse.rollouts.plan_model"
    ),
}
_UNTOLD = ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__")


def _global_names(code: types.CodeType) -> set[str]:
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*map(_global_names, inner))


def _is_module(value: Any) -> bool:
    return _is_torch(value, "nn.Module")


def _is_torch(value: Any, kind: str) -> bool:
    """Returns whether a value is of a class of Torch, which is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, attrgetter(kind)(torch))


def _home(value: Any) -> str:
    name = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    return name if isinstance(name, str) else ""


def _of_library(value: Any) -> bool:
    """Returns whether a module, class, function or small object is an installed library's.

    Instances of a library's classes may hold state, so only what has a name of its own counts.
    """
    if type(value).__name__ in ("dtype", "device", "ellipsis"):
        return True
    if isinstance(value, types.BuiltinFunctionType):
        if not isinstance(value.__self__, types.ModuleType | type | None):
            return False  # a method bound to an object
    elif not isinstance(value, types.ModuleType | type | types.FunctionType | np.ufunc):
        return False
    top = _home(value).partition(".")[0] or "builtins"
    if top == "__main__":
        return False
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    module = sys.modules.get(top)
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    file = getattr(module, "__file__", None) or ""
    return any(place and file.startswith(place + os.sep) for place in places)
