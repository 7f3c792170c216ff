"""Options of a world of chemistry: objects, graph, chances, looks, form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.rng import Noise
from interverse.core.type_checks import Seed, number, one_of, validated, whole
from interverse.worlds import palette
from interverse.worlds.chemistry import graphs
from interverse.worlds.chemistry.cpt import CptSizes, Family
from interverse.worlds.chemistry.dynamics import DIRECTIONS
from interverse.worlds.chemistry.networks import LEAST_EFFECT, file_graph
from interverse.worlds.grid import CELLS
from interverse.worlds.world import WorldOptions

Mode = Literal["rl", "plain", "moving", "delayed"]
Movement = Literal["static", "dynamic"]
Mechanism = Literal["network", "table"]

LARGEST_SCALE = 10.0
LONGEST_DELAY = 64
_TARGET_STEPS = 10


class Level(NamedTuple):
    """How far from even the chances are: the layers' family, their gain, their biases' width."""

    weights: Family
    gain: float
    bias: float


# The settings the original had over time, the most even chances first, the final one marked.
SKEWNESS = {
    "orthogonal-1.5": Level("orthogonal", 1.5, 1.1),
    "orthogonal-2.5": Level("orthogonal", 2.5, 1.1),
    "uniform-1.2": Level("uniform", 1.2, 1.8),
    "orthogonal-3.5": Level("orthogonal", 3.5, 2.1),  # final
    "uniform-2.0": Level("uniform", 2.0, 3.5),
    "uniform-2.5": Level("uniform", 2.5, 3.5),
}


class _Form(NamedTuple):
    """What a mode brings unless the options say otherwise."""

    level: Level
    movement: Movement
    cmap: str
    has_target: bool


_FINAL = SKEWNESS["orthogonal-3.5"]
_FORMS: dict[str, _Form] = {
    "rl": _Form(_FINAL, "static", "Sets", has_target=True),
    "plain": _Form(_FINAL, "dynamic", "Sets", has_target=False),
    "moving": _Form(SKEWNESS["orthogonal-2.5"], "dynamic", "Sets", has_target=False),
    "delayed": _Form(_FINAL, "static", "Primary", has_target=True),
}


@final
@dataclass(frozen=True, kw_only=True)
@validated
class ChemistryOptions(WorldOptions):
    """Options of a world of chemistry. None takes what the mode brings."""

    objects: Annotated[int, whole(CELLS)] = 5
    """How many objects, at most one per cell."""
    colors: Annotated[int, whole(256, least=2)] = 5
    """How many colours an object can have."""
    graph: str | tuple[tuple[int, ...], ...] | None = None
    """A family (chain, collider, full, tree, jungle, bidiag, fork, confounder, random; a suffix as
    in chain5 is checked against `objects`), edges such as `0->1->2,{0-2}->4`, a 0/1 matrix with
    [i][j] = 1 where j causes i, or None for a random graph."""
    mode: Mode = "rl"
    """rl: a target picture and a reward. plain: neither, and wider networks. moving: as plain, and
    an object whose colour changes moves one cell. delayed: as rl, with effects that fade in."""
    movement: Movement | None = None
    """static: every object has its own cell. dynamic: distinct cells are drawn each episode."""
    cmap: str | None = None
    """Where the colours come from: Sets, Pastels, Set3, Pastel2, Primary, Blues, Reds, Greens."""
    skewness: Annotated[str | None, one_of(SKEWNESS)] = None
    """A named level of weights, gain and bias instead of giving the three; see `SKEWNESS`."""
    weights: Family | None = None
    """How layers are drawn: orthogonal, or uniform in [-gain, gain]."""
    gain: Annotated[float | None, number(most=LARGEST_SCALE)] = None
    """Scale of the layers (`cpt/gain`). Larger: chances nearer to 0 and 1."""
    bias: Annotated[float | None, number(most=LARGEST_SCALE)] = None
    """Half-width of the uniform biases (`cpt/bias`)."""
    cpt: Mechanism = "network"
    """network: chances come from the networks, and graph, gain and bias can be edited. table: every
    object's chances are a variable `object_i/cpt` that can be read and set, a row per colouring of
    its parents (the first parent counts fastest); graph, gain and bias can then only be read."""
    cpt_file: str | Path | None = None
    """A file that the original saved (`graph` and `mlp0`, `mlp1`, ...; needs interverse[torch]):
    the world has its graph and its networks instead of drawn ones."""
    hidden: Annotated[int | None, whole(4096)] = None
    """Hidden units a network; None takes 4 objects, in plain and moving 4 objects x colors."""
    graph_seed: Seed = 0
    """Which random graph, and which random delays."""
    density: Annotated[float | None, number(most=1.0)] = None
    """Of a random graph: the share of the possible edges it has. None draws each by chance, as
    published."""
    longest_chain: Annotated[int | None, whole(CELLS)] = None
    """Of a random graph: the edges of its longest path. None takes any."""
    cpt_seed: Seed = 0
    """Which networks: the same seed, the same chances in every episode, world and process."""
    least_effect: Annotated[float | None, number(most=1.0)] = None
    """The least effect of every edge of the graph: an object's network is drawn again until all its
    parents reach it (see `networks`). None asks for 0.2 where weights, gain and bias are one of
    the `SKEWNESS` levels, as every mode's own are, and takes every first draw elsewhere; 0 takes
    every first draw, as the original did. Edits and `defaults` change the world that was drawn;
    they draw no other."""
    meta: bool = False
    """Draw new networks each episode, unscreened, and a new graph if it is random."""
    observed: tuple[int, ...] | None = None
    """The objects that are drawn, in `state` and scored; the others are hidden confounders. They
    can still be painted and read as variables. None observes all."""
    target_steps: Annotated[int, whole(10_000, least=0)] = _TARGET_STEPS
    """How many random interventions lead from the start to the target."""
    delay: Annotated[int | None, whole(LONGEST_DELAY)] = None
    """Steps until an effect stands (delayed only); None draws 1 + Poisson(3) for each edge."""
    legacy: bool = False
    """As the original had it. Colours: intensities are jittered, so that some palettes differ.
    delayed: an effect takes a step less, so that a delay of 1 has none; a pending fade overrides
    an intervention on its object; fades pending in the target's making go on in the world."""

    def __post_init__(self) -> None:
        if self.skewness is not None:
            also = [n for n in ("weights", "gain", "bias") if getattr(self, n) is not None]
            if also:
                raise InvalidValueError(
                    f"skewness and {', '.join(also)} are both given",
                    fix="Give the named level, or the three numbers behind it",
                )
        if self.least_effect and self.meta:
            raise InvalidValueError(
                "least_effect and meta are both given",
                fix="Leave one out: networks drawn each episode are not screened",
            )
        if self.delay is not None and self.mode != "delayed":
            raise _needs_mode("delay", self.delay, "delayed", self.mode)
        if not self.has_target and self.target_steps != _TARGET_STEPS:
            raise _needs_mode("target_steps", self.target_steps, "rl or delayed", self.mode)
        if self.mode == "moving" and self.colors > len(DIRECTIONS):
            raise InvalidValueError(
                f"colors is {self.colors}, and mode 'moving' has {len(DIRECTIONS)} directions",
                allowed=f"2 to {len(DIRECTIONS)}",
            )
        for name, given in (("cpt", self.cpt != "network"), ("cpt_file", self.cpt_file)):
            if given and (self.meta or self.mode == "delayed"):
                raise InvalidValueError(
                    f"{name} is {getattr(self, name)!r}, mode is {self.mode!r}, meta is"
                    f" {self.meta}",
                    allowed=f"{name} in modes rl, plain and moving, without meta",
                )
        if self.cpt_file is not None and (self.graph is not None or self.least_effect):
            raise InvalidValueError(
                f"cpt_file brings its graph, but graph is {self.graph!r} and least_effect is"
                f" {self.least_effect} (chain, full, collider and random set them)",
                fix="Pass cpt_file to chemistry/custom-v1, without graph and least_effect",
            )
        palette.spread(self.colormap, self.colors)  # raises for an unknown or too small one
        object.__setattr__(self, "observed", _observed(self.observed, self.objects))
        if self.graph is not None and not isinstance(self.graph, str):
            matrix = graphs.parse(self.graph, self.objects)
            object.__setattr__(self, "graph", tuple(map(tuple, np.asarray(matrix).tolist())))
        elif self.graph is not None:
            graphs.parse(self.graph, self.objects)
        has_delays = self.mode == "delayed" and self.delay is None
        if self.graph_seed and not has_delays and not self.graph_is_random:
            raise InvalidValueError(
                f"graph_seed is {self.graph_seed}, but the graph is not drawn",
                allowed="graph_seed with a random graph, or with drawn delays (mode delayed)",
            )

        for name in ("density", "longest_chain"):
            if getattr(self, name) is not None and not self.graph_is_random:
                raise InvalidValueError(
                    f"{name} is {getattr(self, name)}, but the graph is not drawn",
                    allowed=f"{name} with a random graph",
                )

    @property
    def has_target(self) -> bool:
        """Whether there is a target to reach, and a reward."""
        return _FORMS[self.mode].has_target

    @property
    def level(self) -> Level:
        """The family, gain and bias of the networks."""
        if self.skewness is not None:
            return SKEWNESS[self.skewness]
        mine = _FORMS[self.mode].level
        return Level(
            mine.weights if self.weights is None else self.weights,
            mine.gain if self.gain is None else float(self.gain),
            mine.bias if self.bias is None else float(self.bias),
        )

    @property
    def screened_at(self) -> float:
        """The least effect of every edge in force; 0 where networks are not screened."""
        if self.least_effect is not None:
            return float(self.least_effect)
        return LEAST_EFFECT if self.level in SKEWNESS.values() and not self.meta else 0.0

    @property
    def sizes(self) -> CptSizes:
        """How large the networks are."""
        width = 4 * self.objects * (self.colors if self.mode in ("plain", "moving") else 1)
        return CptSizes(
            objects=self.objects,
            features=3 if self.mode == "delayed" else self.colors,
            hidden=width if self.hidden is None else self.hidden,
            colors=self.colors,
        )

    @property
    def moves(self) -> bool:
        """Whether positions are drawn each episode."""
        return (self.movement or _FORMS[self.mode].movement) == "dynamic"

    @property
    def colormap(self) -> str:
        """Where the colours come from."""
        return _FORMS[self.mode].cmap if self.cmap is None else self.cmap

    @property
    def seen(self) -> tuple[int, ...]:
        """The objects one can see."""
        return tuple(range(self.objects)) if self.observed is None else self.observed

    @property
    def graph_is_random(self) -> bool:
        """Whether the graph is drawn rather than named."""
        return self._named_graph() is None

    def adjacency(self) -> NDArray[np.int64]:
        """Returns the (n, n) graph the world is made with."""
        named = self._named_graph()
        if named is not None:
            return named
        return np.asarray(self.drawn_graphs(Noise.single(seed=self.graph_seed))[0])

    def drawn_graphs(self, noise: Noise) -> Array:
        """Returns (N, n, n) random graphs, as the options ask for them."""
        return graphs.random_adjacency(
            noise, self.objects, density=self.density, longest_chain=self.longest_chain
        )

    def _named_graph(self) -> NDArray[np.int64] | None:
        if self.cpt_file is not None:
            return file_graph(self.cpt_file, self.objects)
        if self.graph is not None:
            return graphs.parse(self.graph, self.objects)
        if not self.has_target and self.objects in graphs.HARD_WIRED:
            return graphs.adjacency_of(graphs.HARD_WIRED[self.objects], self.objects)
        return None


def _needs_mode(name: str, value: object, wanted: str, mode: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name} is {value!r}, but mode is {mode!r}", allowed=f"{name} in mode {wanted}"
    )


def _observed(given: Any, objects: int) -> tuple[int, ...] | None:
    if given is None:
        return None
    nodes = list(given) if isinstance(given, list | tuple | range | np.ndarray) else [given]
    for node in nodes:
        check_whole(node, "observed", objects - 1, least=0)
    if not nodes or len(set(nodes)) != len(nodes):
        raise InvalidValueError(f"observed is {nodes}", allowed="at least one object, each once")
    return tuple(sorted(int(node) for node in nodes))
