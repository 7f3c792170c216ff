"""The interface of a world: N copies of one causal system, stepped together as arrays.

A world holds state and mechanisms and knows nothing of Gymnasium's calls, seeds, episode counts or
autoreset: `interverse.envs` drives it. Everything has a leading world axis; `worlds` arguments are
index arrays, and arrays given with them have one row per index.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, final

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.arrays import Array
from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    UnknownNameError,
    check_name,
    unknown,
)
from interverse.core.rng import Noise
from interverse.core.type_checks import check_types, validated, whole
from interverse.scm.graph import CausalGraph
from interverse.scm.space import Space
from interverse.scm.variable import Kind, SpaceName, Variable

if TYPE_CHECKING:
    from interverse.sim.engine import Engine
    from interverse.sim.shapes import Shape

Index = NDArray[np.int64]
Refusals = Mapping[int, str]  # world index -> why its intervention was refused
State = dict[str, Array]  # everything that makes later steps what they are, by name, (n, ...)
Observation = Any  # an array (N, ...) or a dict of them

# Brings one world about, given its values now: yields ("do", values), ("try", values of which the
# first possible ones are set), ("play", steps), ("scripted", steps), ("action", the next action).
Scenario = Callable[[Mapping[str, NDArray[Any]], np.random.Generator], Iterator[tuple[str, Any]]]

NONE_REFUSED: Refusals = {}
_DEVICES = ("cpu", "torch", "cuda", "warp")


def check_device_name(device: str, name: str = "device") -> None:
    """Raises for what is no device's name; whether there is such a device is seen later."""
    kind, colon, number = str(device).partition(":")
    if kind not in _DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise UnknownNameError(unknown(name, device, (*_DEVICES, "cuda:N")))


@dataclass(frozen=True, kw_only=True)
@validated
class WorldOptions:
    """Options every world takes; a world adds its own fields in a subclass."""

    space: SpaceName = "A_B"
    """The region that checked interventions must lie in: A, B or their hull A_B."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Other default values by variable: the world as if it had been declared that way."""
    device: Annotated[str, check_device_name] = "cpu"
    """Where arrays live: "cpu" (NumPy), "torch" (Torch on the CPU), "cuda", or "warp" (MuJoCo Warp
    on the CPU: slow, for tests of what a GPU will do)."""
    threads: Annotated[int, whole(4096, least=0)] = 0
    """Threads of the simulator; 0 takes every core. It never changes a result."""
    max_steps: Annotated[int | None, whole(10_000_000)] = None
    """Steps until truncation; None takes the world's own length."""

    def __post_init__(self) -> None:
        if isinstance(self.defaults, Mapping):  # what the caller does with its own later is no edit
            object.__setattr__(self, "defaults", copy.deepcopy(dict(self.defaults)))


OptionsT = TypeVar("OptionsT", bound=WorldOptions)


def parse_options(kind: type[OptionsT], given: Mapping[str, Any]) -> OptionsT:
    """Returns the options, or raises naming an unknown one and its nearest neighbour.

    A value of another type than declared is refused, in the options' own words where they have any.
    """
    names = {f.name for f in fields(kind)}
    for name in given:
        check_name("option", name, names)
    try:
        options = kind(**given)
    except InterverseError:
        raise
    except Exception:  # what the options' own checks took for granted does not hold
        check_types(kind, given)
        raise
    check_types(kind, {name: getattr(options, name) for name in given})
    return options


def changed_options(options: WorldOptions) -> dict[str, Any]:
    """Returns the options that differ from their defaults: what a record must hold."""
    out = {}
    for item in fields(options):
        default = item.default if item.default is not MISSING else None
        if item.default_factory is not MISSING:
            default = item.default_factory()
        value = getattr(options, item.name)
        if type(value) is not type(default) or value != default:
            out[item.name] = value
    return out


_ENGINE = ("device", "contact", "contacts", "renderer")  # options, where a world has them
_USUAL = (None, "mujoco")  # not said: what every world without the option has


def engine_of(world: World) -> dict[str, str]:
    """Returns the options of a world that say by which engine and contacts its numbers are made."""
    found = {name: getattr(world.options, name, None) for name in _ENGINE}
    return {name: str(value) for name, value in found.items() if value not in _USUAL}


def resolved_options(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those options of an engine that another machine could resolve otherwise.

    None stands for the best there is. What that is where a command starts, other machines are told:
    they do the same, or refuse.
    """
    return {"contact": engine["contact"]} if engine.get("contact") else {}


@final
class Score(NamedTuple):
    """What a step earned, per world.

    Attributes:
        reward: (N,) float.
        terminated: (N,) bool.
        info: named arrays (N, ...) for the Gymnasium `info`.
        info_lasts: whether `info` is the same object, with the same arrays, until something in it
            changes; it is copied where it is handed out.
    """

    reward: Array
    terminated: Array
    info: Mapping[str, Array]
    info_lasts: bool = False


_FILM_SIZE = (720, 960)


def variable(
    name: str, kind: Kind, default: ArrayLike, domain: Space, doc: str, **more: Any
) -> Variable:
    """Returns a variable, its default any number or nested list; `more` are further fields."""
    return Variable(name=name, kind=kind, default=np.array(default), domain=domain, doc=doc, **more)


class World(ABC):
    """N copies of a causal system. Subclasses are final and set the attributes below."""

    options_type: ClassVar[type[WorldOptions]] = WorldOptions
    # options under which cameras are observed, where the default ones observe none
    pixel_options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    clips_actions: ClassVar[bool] = False  # whether actions outside the space are clipped
    render_size: tuple[int, int] = (240, 320)  # rows, columns of `render`
    scene_variables: tuple[str, ...] = ()  # what builds the scene anew, and decides what is there
    reset_variables: ClassVar[tuple[str, ...]] = ()  # variables that `reset` takes as options
    start_variables: ClassVar[tuple[str, ...]] = ()  # variables that act where an episode starts
    # options that say where a policy is trained (in which looks, say); tests do not take them over
    training_place: ClassVar[tuple[str, ...]] = ()

    num_worlds: int
    options: WorldOptions
    variables: Mapping[str, Variable]
    graph: CausalGraph
    observation_space: gym.Space[Any]  # of one world
    action_space: gym.Space[Any]  # of one world
    # key -> slice of the flat observation, read-only
    layout: Mapping[str, slice] = MappingProxyType({})
    # key -> the lowest and highest raw numbers, which normalising takes to -1 and 1
    observation_bounds: Mapping[str, tuple[NDArray[Any], NDArray[Any]]] = MappingProxyType({})
    nested_info: tuple[str, ...] = ()  # owners of entries that are a dict in `info`: `owner/name`
    max_steps: int
    reward_range: tuple[float, float]
    engine: Engine | None = None  # the simulator, which tells what broke down on a device

    @property
    def info_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the columns of arrays in `info`, where they have names."""
        return {}

    @property
    def return_range(self) -> tuple[float, float]:
        """The least and the greatest sum of rewards of an episode."""
        low, high = self.reward_range
        return low * self.max_steps, high * self.max_steps

    @abstractmethod
    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts a new episode in some worlds: defaults, then `given`, then the initial draws.

        Args:
            worlds: which worlds, (n,).
            noise: their addresses at step 0; n rows.
            given: values of an intervention at reset, (n, *shape) each. Values of non-state
                variables come before the initial draws, those of state variables after.

        Returns:
            Why worlds refused `given`; a refused world is left in its default start. Without
            `given`, why an episode cannot start with the options' defaults.
        """

    @abstractmethod
    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables in some worlds, with all that follows from them at once.

        Values have passed their domain and space and have one row per world. Each differs from the
        present one, or holds an effect of another that does. A refused world must be left as it
        was, bit for bit.
        """

    @abstractmethod
    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape), as a fresh array."""

    @abstractmethod
    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Advances some worlds by one step; actions and noise have one row per world."""

    @abstractmethod
    def observe(self) -> Observation:
        """Returns every world's observation, as fresh arrays."""

    @abstractmethod
    def score(self) -> Score:
        """Returns what the last step (or the reset) earned in every world."""

    @abstractmethod
    def save(self, worlds: Index) -> State:
        """Returns a copy of all that makes later steps of these worlds what they are."""

    @abstractmethod
    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""

    @abstractmethod
    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture (rows, columns, 3) of one world for people."""

    def use_film_size(self) -> None:
        """Makes pictures for people as large as a film's, where they may have any size."""
        if self.render_size == World.render_size:
            self.render_size = _FILM_SIZE

    def follow_image_size(self, image_size: int) -> None:
        """Makes pictures for people as wide as larger observations are, at 4 to 3."""
        if image_size > self.render_size[1]:
            self.render_size = (image_size * 3 // 4, image_size)

    @property
    def most_actions(self) -> int:
        """Actions after which an episode is over at the latest, ended or truncated."""
        return self.max_steps

    @property
    def starting_values(self) -> Mapping[str, Array]:
        """Values that every episode starts with beside the defaults, (1, *shape) each."""
        return {}

    def same_values(self, name: str, a: Array, b: Array) -> NDArray[np.bool_]:
        """Returns in which rows two values of a variable, (n, *shape), mean the same."""
        return self.variables[name].domain.same(a, b)

    def sample_goal(self, worlds: Index, noise: Noise, space: SpaceName) -> Mapping[str, Array]:
        """Returns a new goal per world, as values to intervene with; applies nothing.

        It draws from addresses other than the reset's, or it would return the present goal.
        """
        raise InvalidValueError(
            f"{type(self).__name__} has no goal sampler", fix="Use another actor, such as uniform"
        )

    def absent(self, values: Mapping[str, Array], worlds: Index) -> Mapping[str, NDArray[np.bool_]]:
        """Returns the objects that some worlds would not have under an intervention.

        Args:
            values: to intervene with, (n, *shape) each.
            worlds: which worlds, (n,).

        Returns:
            By object (`block_7` of `block_7/mass`), in which rows it is not there, (n,).
        """
        return {}

    def scripted_policy(self) -> Callable[[Any], Any] | None:
        """Returns the world's hand-written baseline policy, where it has one."""
        return None

    def scenarios(self) -> Sequence[Scenario]:
        """Returns situations in which causes act that seldom do, for the search of witnesses."""
        return ()

    def set_by_action(self, action: Any) -> frozenset[str] | None:
        """Returns the variables that an action sets; None where it may move anything."""
        return None

    def action_names(self, world: int) -> tuple[tuple[str, ...], ...]:
        """Returns names of what can be chosen now, for each part of a discrete action.

        One tuple for a `Discrete` space, one per entry of a `MultiDiscrete` one; empty where
        actions have no names.
        """
        return ()

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world; empty where pictures are all."""
        return ()

    def close(self) -> None:  # noqa: B027 - most worlds hold nothing to release
        """Releases simulators and GL contexts."""
