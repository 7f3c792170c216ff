"""Chemistry as a world: N scenes of objects whose colours follow a causal graph one can edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace, to_numpy
from interverse.core.rng import Noise
from interverse.scm import SCM, CausalGraph
from interverse.scm.variable import SpaceName
from interverse.sim import raster
from interverse.worlds.chemistry import cpt, delayed, dynamics, layout, reference
from interverse.worlds.chemistry.options import ChemistryOptions
from interverse.worlds.chemistry.variables import causal_graph, goal_of, name_of
from interverse.worlds.grid import GridWorld, Reasons, place, put
from interverse.worlds.palette import color_labels, painted, to_bytes
from interverse.worlds.world import Index, Observation, Scenario, Score, State

_SIDE = raster.PEOPLE_SIZE
_GAP = 10  # columns between the picture and its target
_MECHANISM = ("adjacency", "gain", "bias")
_AFTER_DRAWS = ("state", "goal")  # kinds whose given values come after the initial draws


@final
class Chemistry(GridWorld):
    """N worlds of n objects. `graph` shows an edge if any of the worlds has it now."""

    options_type = ChemistryOptions
    render_size = (_SIDE, 2 * _SIDE + _GAP)

    options: ChemistryOptions

    def __init__(self, *, num_worlds: int, options: ChemistryOptions) -> None:
        self._adjacency, variables = layout.declared(options)
        super().__init__(num_worlds, options, variables)
        self._where = layout.places(options)
        self.observation_space = layout.observation_space(options)
        self.action_space = gym.spaces.Discrete(options.objects * options.colors)
        self.reward_range = (0.0, 1.0 if options.has_target else 0.0)
        self._blank = layout.blank_row(self.variables, self._where, options)
        self._state = {name: self._repeated(row, num_worlds) for name, row in self._blank.items()}
        weights = layout.networks(options)
        self._weights = self._on_device(weights)
        self._tables: list[cpt.CptTable | None] = []
        if options.meta:  # each world has its own, which are part of its state
            parts = {name: part[0] for name, part in _parts(weights).items()}
            self._state |= {name: self._repeated(row, num_worlds) for name, row in parts.items()}
        elif options.mode != "delayed":
            gain, bias = (float(self._blank[name]) for name in ("gain", "bias"))
            for table in cpt.tabulate(weights, self._adjacency, gain, bias):
                kept = None if table is None else self._array(table.cumulative)
                self._tables.append(table and cpt.CptTable(parents=table.parents, cumulative=kept))
        # Until graph, gain or bias are edited, every world is read off the tables: no comparison,
        # which on a GPU would wait for its answer.
        self._edited = False
        self._graphs: dict[bytes, CausalGraph] = {}
        self._canvases = {"image": raster.Canvas(), "target": raster.Canvas()}
        self._names = [name_of(i, "color") for i in range(options.objects)]
        self._recorded: Callable[[Noise], Array] | None = None

    def _on_device(self, weights: cpt.CptWeights) -> cpt.CptWeights:
        return cpt.CptWeights(**{p: self._array(getattr(weights, p)) for p in cpt.PARTS})

    @property
    def graph(self) -> CausalGraph:  # type: ignore[override]
        """The causal graph now; over several worlds, with every edge that one of them has."""
        present = np.asarray(to_numpy(self._state["adjacency"]).any(axis=0), dtype=np.int64)
        key = present.tobytes()
        if key not in self._graphs:
            self._graphs = {key: causal_graph(self.variables, self.options, present)}
        return self._graphs[key]

    @property
    def tables(self) -> Sequence[cpt.CptTable | None]:
        """Every object's chances, which all worlds share; empty where each has its own."""
        return self._tables

    # ----------------------------------------------------------------- episodes

    def _start(self, noise: Noise, given: Mapping[str, Array]) -> tuple[State, Reasons]:
        """Draws networks and graph, lays in what is given, then draws colours, places, target."""
        options = self.options
        rows = {name: self._repeated(row, len(noise)) for name, row in self._blank.items()}
        drawn = self._noise(noise)
        if options.meta:
            each = [noise.generator("cpt", row) for row in range(len(noise))]
            own = cpt.draw_weights(each, options.sizes, options.level.weights)
            rows |= _parts(self._on_device(own))
            if options.graph_is_random:
                rows["adjacency"] = options.drawn_graphs(drawn)
                drawn_over = [n for n in options.defaults if self._where[n][0] == "adjacency"]
                self._set(rows, self._defaults(drawn_over, len(noise)))
        late = {n for n in given if self.variables[n].kind in _AFTER_DRAWS}
        refused = self._set(rows, {n: v for n, v in given.items() if n not in late})
        self._draw(rows, drawn)
        after = [n for n in options.defaults if self.variables[n].kind in _AFTER_DRAWS]
        declared = self._defaults(after, len(noise))
        return rows, self._set(rows, declared | {n: given[n] for n in late}) | refused

    def _defaults(self, names: Iterable[str], count: int) -> State:
        return {name: self._repeated(self.variables[name].default, count) for name in names}

    def _draw(self, rows: State, noise: Noise) -> None:
        options = self.options
        if options.moves:
            names = [name_of(i, "position") for i in range(options.objects)]
            rows["position"] = place(noise.uniforms(names)[:, :, 0])
        mechanisms = self._mechanisms(rows)
        uniforms = noise.uniforms(self._names)[:, :, 0]
        if options.mode == "delayed":
            rules = self._rules(rows, mechanisms)
            rows |= delayed.start(mechanisms, rules.palette, uniforms)._asdict()
        else:
            rows["color"] = dynamics.start(mechanisms, uniforms)
        if options.has_target:
            fade = self._draw_goal(rows, mechanisms, noise)
            if fade is not None and options.legacy:
                rows |= fade._asdict()  # fades begun in the target's making go on in the world

    def _draw_goal(
        self, rows: State, mechanisms: cpt.Mechanisms, noise: Noise, prefix: str = ""
    ) -> delayed.Fade | None:
        """Sets the goal that random interventions lead to; returns the fades they left."""
        options, steps = self.options, self.options.target_steps
        goals = [prefix + goal_of(i, options) for i in range(options.objects)]
        actions = noise.integers(
            f"{prefix}goal/actions", options.objects * options.colors, (steps,)
        )
        uniforms = noise.uniforms(goals, steps) if steps else None
        rows["target_actions"] = actions
        if options.mode != "delayed":
            rows["goal"] = dynamics.play(rows["color"], actions, mechanisms, uniforms)
            return None
        rules = self._rules(rows, mechanisms)
        fade = delayed.play(_fade_of(rows), actions, rules, uniforms)
        rgb = delayed.shown(fade, rules.palette)
        rows["goal"] = namespace(rgb).astype(rgb, self._state["goal"].dtype) / 255.0
        return fade

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Paints one object per world and lets its effects follow."""
        options = self.options
        rows, here = self._rows(worlds), self._array(worlds)
        chosen = self._array(actions)
        objects, paints = chosen // options.colors, chosen % options.colors
        uniforms = self._uniforms(noise)
        mechanisms = self._mechanisms(rows)
        out: State = {}
        if options.mode == "delayed":
            rules = self._rules(rows, mechanisms)
            out = delayed.propagate(_fade_of(rows), objects, paints, rules, uniforms)._asdict()
        else:
            out["color"] = dynamics.propagate(rows["color"], objects, paints, mechanisms, uniforms)
        if options.mode == "moving":
            out["position"] = dynamics.move(rows["position"], rows["color"], out["color"])
        put(self._state, out, here)

    def _uniforms(self, noise: Noise) -> Array:
        """Returns a step's number for every world and object, (R, n)."""
        if len(noise) < self.num_worlds or not self.options.device.startswith("cuda"):
            return self._noise(noise).uniforms(self._names)[:, :, 0]
        if self._recorded is None:
            from interverse.sim.recorded import RecordedUniforms  # loads Torch

            self._recorded = RecordedUniforms(self._names, self.num_worlds, self.options.device)
        return self._recorded(noise)

    def _rows(self, worlds: Index) -> State:
        everyone = np.array_equal(worlds, np.arange(self.num_worlds))
        return self._state if everyone else self.save(worlds)

    def _mechanisms(self, rows: State) -> cpt.Mechanisms:
        """Returns what makes these rows' colours."""
        adjacency, gain, bias = (rows[name] for name in ("adjacency", "gain", "bias"))
        xp = namespace(adjacency)
        weights = self._weights
        if self.options.meta:
            weights = cpt.CptWeights(**{part: rows[f"cpt/{part}"] for part in cpt.PARTS})
        standard = None
        if self._tables and self._edited:
            graph = self._array(self._adjacency)
            same_graph = xp.all(xp.reshape(adjacency == graph, (len(gain), -1)), axis=1)
            usual = (gain == float(self._blank["gain"])) & (bias == float(self._blank["bias"]))
            standard = same_graph & usual
        return cpt.Mechanisms(
            weights=weights,
            adjacency=adjacency,
            gain=gain,
            bias=bias,
            tables=self._tables,
            standard=standard,
            own=[rows.get(f"cpt_{v}") for v in range(self.options.objects)]
            if self.options.cpt == "table"
            else (),
        )

    def _rules(self, rows: State, mechanisms: cpt.Mechanisms) -> delayed.FadeRules:
        return delayed.FadeRules(
            mechanisms=mechanisms,
            palette=delayed.whole_bytes(rows["palette"]),
            delay=rows["delay"],
            legacy=self.options.legacy,
        )

    def model(self, world: int = 0) -> SCM:
        """Returns one world's next step as a structural causal model; see `reference`."""
        return reference.step_model(self._mechanisms(self._state), world)

    # ------------------------------------------------------------ interventions

    def _moved_by(self, values: Mapping[str, Array]) -> set[str]:
        keys = {self._where[name][0] for name in values}
        fades = self.options.mode == "delayed" and "color" in keys
        return keys | {*delayed.Fade._fields} if fades else keys

    def _set(self, rows: State, values: Mapping[str, Array]) -> Reasons:
        """Sets variables; a graph out of order and a taken cell are refused."""
        refused: Reasons = {}
        # The whole graph first, so that an edge given beside it can be seen to disagree.
        for name in sorted(values, key=lambda n: n != "graph/adjacency"):
            key, index = self._where[name]
            self._edited |= key in _MECHANISM
            value = self._array(values[name])
            place_in = (slice(None), *index)
            if key == "adjacency" and index and "graph/adjacency" in values:
                refused |= layout.disagreeing(name, to_numpy(rows[key][place_in] != value))
            rows[key][place_in] = value
            if key == "color" and self.options.mode == "delayed":
                rows["elapsed"][place_in] = 1
                rows["duration"][place_in] = 1
        if "graph/adjacency" in values:
            refused = layout.out_of_order(to_numpy(rows["adjacency"])) | refused
        for name in values:
            if self._where[name][0].startswith("cpt_"):
                refused = layout.not_chances(name, to_numpy(rows[self._where[name][0]])) | refused
        if any(self._where[name][0] == "position" for name in values):
            refused = layout.shared_cells(to_numpy(rows["position"])) | refused
        return refused

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape), as a fresh array."""
        if name in self._where:
            return super().read(name)
        i = int(name.partition("/")[0].removeprefix("object_"))
        if name.endswith("/fade"):
            return (self._state["duration"] - self._state["elapsed"])[:, i]
        xp = namespace(self._state["color"])
        return xp.astype(self._shown()[:, i], xp.float64) / 255.0

    def sample_goal(self, worlds: Index, noise: Noise, space: SpaceName) -> Mapping[str, Array]:
        """Returns goals that random interventions lead to from the present colours."""
        if not self.options.has_target:
            return super().sample_goal(worlds, noise, space)
        rows = self.save(worlds)
        self._draw_goal(rows, self._mechanisms(rows), self._noise(noise), "sample_goal/")
        return {goal_of(i, self.options): rows["goal"][:, i] for i in range(self.options.objects)}

    # ------------------------------------------------------------- what it shows

    def _shown(self) -> Array:
        """What each object shows, (N, n, 3) uint8."""
        if self.options.mode != "delayed":
            return painted(self._state["color"], self._state["palette"])
        rgb = delayed.shown(_fade_of(self._state), delayed.whole_bytes(self._state["palette"]))
        return namespace(rgb).astype(rgb, namespace(rgb).uint8)

    def _goal_shown(self) -> Array:
        if self.options.mode == "delayed":
            return to_bytes(self._state["goal"])
        return painted(self._state["goal"], self._state["palette"])

    def observe(self) -> Observation:
        """Returns pictures of the present and of the target, and the colours one can see."""
        shown = self._shown()
        scenes = self._scenes(shown).items()
        seen = {key: self._canvases[key].draw(*scene) for key, scene in scenes}
        known = shown if self.options.mode == "delayed" else self._state["color"]
        seen["state"] = known[:, list(self.options.seen)]
        if self.options.mode == "moving":
            seen["positions"] = self._state["position"][:, list(self.options.seen)]
        return seen

    def score(self) -> Score:
        """Returns the fraction of visible objects that match the target."""
        state, seen = self._state, list(self.options.seen)
        xp = namespace(state["color"])
        nothing = xp.zeros_like(state["gain"])
        never = nothing > 0.0
        if not self.options.has_target:
            return Score(nothing, never, {})
        if self.options.mode == "delayed":
            shown, goal = (xp.astype(a, xp.int64) for a in (self._shown(), self._goal_shown()))
            reward = delayed.matches(shown[:, seen], goal[:, seen])
        else:
            reward = dynamics.matches(state["color"][:, seen], state["goal"][:, seen])
        info = {"success": reward == 1.0, "fractional_success": reward}
        return Score(reward, never, info | {"target_actions": state["target_actions"]})

    def scripted_policy(self) -> Callable[[Any], Any] | None:
        """Returns the policy that paints the first object unlike its goal; causes come first.

        Painting changes later objects only, so it is done after n actions at most; then it
        repaints the last object, which causes nothing.
        """
        if not self.options.has_target or self.options.mode == "delayed":
            return None

        def paint(observations: Any) -> NDArray[np.int64]:
            color, goal = (to_numpy(self._state[name]) for name in ("color", "goal"))
            wrong = color != goal
            wrong[:, -1] = True
            first = np.argmax(wrong, axis=1)
            return first * self.options.colors + goal[np.arange(len(goal)), first]

        return paint

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        super().load(state, worlds)
        self._edited = True  # the rows may come from an edited world

    def state(self) -> Array:
        """Returns the observed objects' colours (in delayed mode their rgb), (N, n, ...)."""
        known = self._shown() if self.options.mode == "delayed" else self._state["color"]
        return known[:, list(self.options.seen)]

    def scenes(self) -> Mapping[str, tuple[Array, Array, Array]]:
        """Returns what `raster.draw` takes for each picture: positions, shapes and colours."""
        return self._scenes(self._shown())

    def _scenes(self, now: Array) -> Mapping[str, tuple[Array, Array, Array]]:
        seen = list(self.options.seen)
        shown = {"image": now}
        if self.options.has_target:
            shown["target"] = self._goal_shown()
        position, shape = self._state["position"][:, seen], self._state["shape"][:, seen]
        return {key: (position, shape, rgb[:, seen]) for key, rgb in shown.items()}

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns a graph with fewer edges: what joins two objects then is a path alone."""
        return () if self.options.cpt == "table" else (_fewer_edges,)

    def set_by_action(self, action: Any) -> frozenset[str]:
        """Returns the colour of the object that an action paints."""
        return frozenset({name_of(int(action) // self.options.colors, "color")})

    def action_names(self, world: int) -> tuple[tuple[str, ...], ...]:
        """Returns a name per action: the object that is painted, and its new colour."""
        labels = color_labels(to_numpy(self._state["palette"][world]))
        return (tuple(f"{name} := {label}" for name in self._names for label in labels),)

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns the picture with the edges of the graph, and to its right the target."""
        frame = np.full((*self.render_size, 3), 255, dtype=np.uint8)
        frame[:, :_SIDE] = self._portrait(world, self._shown(), arrows=True)
        if self.options.has_target:
            frame[:, -_SIDE:] = self._portrait(world, self._goal_shown(), arrows=False)
        return frame

    def _portrait(self, world: int, rgb: Array, *, arrows: bool) -> NDArray[np.uint8]:
        seen = list(self.options.seen)
        scene = (self._state["position"], self._state["shape"], rgb)
        edges = to_numpy(self._state["adjacency"][world])[seen][:, seen]  # [i, j]: j causes i
        pairs = np.argwhere(edges).tolist() if arrows else []
        return raster.portrait(
            *(to_numpy(part[world])[seen] for part in scene), arrows=[(j, i) for i, j in pairs]
        )


# ------------------------------------------------------------------ rows of state


def _parts(weights: cpt.CptWeights) -> State:
    return {f"cpt/{part}": getattr(weights, part) for part in cpt.PARTS}


def _fade_of(rows: State) -> delayed.Fade:
    return delayed.Fade(*(rows[part] for part in delayed.Fade._fields))


def _fewer_edges(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    adjacency = values["graph/adjacency"]
    yield "do", {"graph/adjacency": adjacency * (rng.random(adjacency.shape) < 0.5)}
    yield "play", int(rng.integers(3))
