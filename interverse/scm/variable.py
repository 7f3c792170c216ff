"""Variables of a world, declared once as data: names, domains, spaces, bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, UnknownNameError, unknown
from interverse.scm.space import Space, hull, space_to_json

Kind = Literal["state", "latent", "appearance", "goal", "robot", "graph"]
KINDS: tuple[Kind, ...] = ("state", "latent", "appearance", "goal", "robot", "graph")
SpaceName = Literal["A", "B", "A_B"]
SPACE_NAMES: tuple[SpaceName, ...] = ("A", "B", "A_B")
Values = Mapping[str, NDArray[Any]]
Bounds = Space | Callable[[Values], Space]  # a space, or one that depends on other variables


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """Where a variable lives in a simulator: a field, one or several elements, an index.

    `Binding("geom_rgba", "block", (0, 1, 2))` is the red, green and blue of the geom "block".
    `element` None means the whole field, as for "opt.gravity"; several elements get the same values
    each, or their own one after another. A field that follows from several variables names them:
    `Binding("pair_friction", "floor:block", function=product, of=("floor/friction",
    "block/friction"))`.
    """

    field: str
    element: str | tuple[str, ...] | None = None
    index: int | tuple[int, ...] | None = None
    scale: float = 1.0  # simulator value = scale * variable value (half sizes: 0.5)
    function: Callable[..., Any] | None = None
    """Gives the simulator's values, (n, ...), from those of `of`; None takes them as they are."""
    of: tuple[str, ...] = ()
    """What the function takes, in order; empty means the variable that declares the binding."""
    relative: bool = False
    """Whether the simulator's value is that of the scene times the variable's: a factor."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """One quantity of a world that can be read and, unless `read_only`, intervened on."""

    name: str
    kind: Kind
    default: NDArray[Any]
    domain: Space
    space_a: Bounds | None = None
    space_b: Bounds | None = None
    unit: str = ""
    doc: str = ""
    read_only: bool = False
    bindings: tuple[Binding, ...] = field(default=())
    inert: str = ""
    """Why nothing that can be observed follows from it; empty for a variable that acts."""
    labels: tuple[str, ...] = ()
    """Names of its whole numbers, from the least of its domain on; empty where they have none."""
    drawn: bool = True
    """Whether `Everything`, and so curriculum 2 and protocols of everything, draws it."""
    cube: bool = False
    """Whether one number stands for all its parts: the edge of a cube."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValueError(
                f"kind of {self.name} is {self.kind!r}", allowed=", ".join(KINDS)
            )
        default = np.array(self.default, dtype=self.dtype)
        default.flags.writeable = False
        object.__setattr__(self, "default", default)
        if default.shape != self.domain.shape:
            raise InvalidValueError(
                f"default of {self.name} has shape {default.shape}",
                allowed=f"its domain's shape {self.domain.shape}",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return self.domain.shape

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """int64 for whole numbers, float64 otherwise."""
        return np.int64 if self.domain.integral else np.float64

    @property
    def bounded(self) -> bool:
        """Whether its spaces depend on the values of other variables."""
        return callable(self.space_a) or callable(self.space_b)

    def resolve(self, values: Values) -> Variable:
        """Returns the variable with its spaces evaluated at the present values."""
        if not self.bounded:
            return self
        a = self.space_a(values) if callable(self.space_a) else self.space_a
        b = self.space_b(values) if callable(self.space_b) else self.space_b
        return replace(self, space_a=a, space_b=b)

    def space(self, name: SpaceName) -> Space | None:
        """Returns space A, B or their hull A_B, which is A without a B; None where there is none.

        Call `resolve` first when the bounds depend on other variables.
        """
        if name not in SPACE_NAMES:
            raise UnknownNameError(unknown("space", name, SPACE_NAMES))
        if callable(self.space_a) or callable(self.space_b):
            raise InvalidValueError(
                f"the spaces of {self.name} depend on other variables", fix="resolve first"
            )
        if name == "A_B" and self.space_a is not None and self.space_b is not None:
            return hull(self.space_a, self.space_b)
        return self.space_b if name == "B" else self.space_a

    def region(self, name: SpaceName) -> Space | None:
        """Returns where values of a world in this space lie: A for a variable that has no B."""
        space = self.space(name)
        return self.space("A") if space is None else space

    def to_json(self) -> dict[str, Any]:
        """Returns everything declared, JSON-ready."""
        spaces = {
            key: None if space is None or callable(space) else space_to_json(space)
            for key, space in (("space_a", self.space_a), ("space_b", self.space_b))
        }
        return {
            "name": self.name,
            "kind": self.kind,
            "shape": list(self.shape),
            "unit": self.unit,
            "default": self.default.tolist(),
            "domain": space_to_json(self.domain),
            **spaces,
            "read_only": self.read_only,
            "doc": self.doc,
            "inert": self.inert,
            "labels": list(self.labels),
        }


def table(*variables: Variable) -> Mapping[str, Variable]:
    """Returns a read-only mapping from name to variable; a name given twice raises.

    >>> from interverse.scm.space import Box
    >>> import numpy as np
    >>> mass = Variable(name="block/mass", kind="latent", default=np.array(0.02), domain=Box(0, 1))
    >>> list(table(mass))
    ['block/mass']
    """
    out: dict[str, Variable] = {}
    for variable in variables:
        if variable.name in out:
            raise InvalidValueError(f"variable {variable.name!r} is declared twice")
        out[variable.name] = variable
    return MappingProxyType(out)


def refuse_bindings(variables: Iterable[Variable]) -> None:
    """Raises if one of these variables has a binding where nothing would write by it."""
    for variable in variables:
        if variable.bindings:
            raise InvalidValueError(
                f"{variable.name} has a binding to {variable.bindings[0].field}, and nothing "
                f"in its world writes that",
                fix="Bind what an engine simulates, or let the world's own code read the value",
            )


def with_defaults(variables: Mapping[str, Variable], defaults: Values) -> Mapping[str, Variable]:
    """Returns the table with other defaults: the world as if it had been declared that way."""
    out = dict(variables)
    if not isinstance(defaults, Mapping):
        raise InvalidValueError(f"defaults is {defaults!r}", allowed="values by variable")
    for name, value in defaults.items():
        variable = lookup(variables, name)
        try:
            array = np.asarray(value, dtype=variable.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidValueError(f"default of {name}: {error}") from error
        domain = variable.domain
        if not domain.contains(array):
            bounds = f"{domain.low.tolist()} to {domain.high.tolist()} {domain.rule}"
            raise InvalidValueError(
                f"default of {name} is {np.asarray(value).tolist()}", allowed=bounds.rstrip()
            )
        out[name] = replace(variable, default=array)
    return MappingProxyType(out)


def lookup(variables: Mapping[str, Variable], name: str) -> Variable:
    """Returns the variable of that name, or raises with a suggestion."""
    if name not in variables:
        fix = "See env.unwrapped.variables"
        raise UnknownNameError(unknown("variable", name, variables, fix=fix))
    return variables[name]
