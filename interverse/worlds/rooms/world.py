"""Rooms with objects that can be opened, switched, soiled and broken, by one action or several.

The room's seed and noise make everything else (`mechanisms`); pictures are drawn when asked for
and kept until something changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm import refuse_bindings, with_defaults
from interverse.scm.store import Store
from interverse.sim.filament import probe
from interverse.sim.studio import reserve
from interverse.worlds.rooms.actions import (
    ABSENT,
    CLASS_NAMES,
    VERBS,
    act,
    act_to,
    graded_target,
    has,
    possible,
)
from interverse.worlds.rooms.camera import RoomView, aim
from interverse.worlds.rooms.mechanisms import (
    Row,
    change_noise,
    draw_numbers,
    impossible_state,
    refocus,
    settle,
    things_of,
)
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.room import plan_room
from interverse.worlds.rooms.scene import Cast, Frame, Part, Shot, Staged, cast_of, draw, staged
from interverse.worlds.rooms.variables import (
    ACTION,
    CAMERA,
    CONFOUNDER,
    LIGHT,
    TARGET,
    causal_graph,
    declare,
    name_of,
)
from interverse.worlds.world import (
    NONE_REFUSED,
    Index,
    Observation,
    Refusals,
    Scenario,
    Score,
    State,
    World,
)

_RENDERED = 336
_COLOURS: tuple[Part, ...] = ("rgb",)
_Values = Mapping[str, NDArray[Any]]
_Moves = Iterator[tuple[str, Any]]


@final
class Rooms(World):
    """N rooms; a step applies one of seven actions to one object."""

    options_type = RoomsOptions
    training_place = ("confounder", "lamps", "pair_nuisance")
    render_size = (_RENDERED, _RENDERED)

    options: RoomsOptions

    def __init__(self, *, num_worlds: int, options: RoomsOptions) -> None:
        self.num_worlds, self.options = num_worlds, options
        if options.quality == "high":
            probe()
        self.variables = with_defaults(declare(options), options.defaults)
        refuse_bindings(self.variables.values())
        self.graph = causal_graph(self.variables, options)
        size = options.image_size
        self.observation_space = gym.spaces.Dict(
            {
                "image": gym.spaces.Box(0, 255, (size, size, 3), np.uint8),
                "mask": gym.spaces.Box(0, options.objects, (size, size), np.uint8),
            }
        )
        self.action_space = gym.spaces.MultiDiscrete([options.objects, len(VERBS)])
        # An episode is over after its actions, one step before it would be truncated.
        self.max_steps = options.actions + 1 if options.max_steps is None else options.max_steps
        self.reward_range = (0.0, 1.0)
        self._slots = range(options.objects)
        self._defaults = {name: self.variables[name].default for name in options.defaults}
        zero = np.zeros(num_worlds, dtype=np.int64)
        # One world's rows of what is no variable: noise, what is held, what was done.
        no = np.zeros(1, dtype=bool)
        flags = dict.fromkeys(("changed", *(f"cut/{n}" for n in self.variables)), no)
        order = np.arange(self.options.objects)[None]
        counts = {"order": order, "steps": np.zeros(1, dtype=np.int64)}
        self._store = Store(
            self.variables,
            num_worlds=num_worlds,
            start=flags | counts | draw_numbers(Noise.single(seed=0), self.options),
        )
        self._image = np.zeros((num_worlds, size, size, 3), np.uint8)
        self._mask = np.zeros((num_worlds, size, size), np.uint8)
        self._stale = np.ones(num_worlds, dtype=bool)
        self._held: dict[int, tuple[tuple[int, Cast], Staged]] = {}
        self.reset(np.arange(num_worlds), Noise(zero, zero, zero), {})

    @property
    def most_actions(self) -> int:
        """The actions of a room: it ends with the last one."""
        return min(self.options.actions, self.max_steps)

    # ------------------------------------------------------------------ episodes

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Draws rooms and all that follows; given states come last."""
        refused: dict[int, str] = {}
        numbers = draw_numbers(noise, self.options)
        for i, world in enumerate(worlds.tolist()):
            mine = {name: value[i] for name, value in numbers.items()}
            held = {name: value[i] for name, value in given.items()}
            row, problem = self._start(mine, self._defaults | held)
            if problem is not None:
                refused[world] = problem
                row, _ = self._start(mine, self._defaults)
            self._write(row, world)
        return refused

    def _start(self, numbers: Row, held: Mapping[str, Array]) -> tuple[Row, str | None]:
        """Returns the row of a new episode under values held fixed, and why it cannot be."""
        row = {name: np.array(rows[0]) for name, rows in self._store.start.items()}
        row |= {name: np.array(value) for name, value in numbers.items()}
        return row, self._impose(row, held, redraw=self._slots)

    def _impose(
        self, row: Row, values: Mapping[str, Array], *, redraw: Collection[int]
    ) -> str | None:
        """Sets values in a row with all that follows; states, which follow from classes, last."""
        states = {name: v for name, v in values.items() if name.endswith("/state")}
        for name in values.keys() - states.keys():
            row[name] = np.asarray(values[name], dtype=self.variables[name].dtype)
            row[f"cut/{name}"] = np.array(True)
        problem = settle(row, self.options, redraw=redraw)
        row |= {name: np.array(v, dtype=float) for name, v in states.items()}
        return impossible_state(row, self.options) if problem is None else problem

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; a refused world stays as it was."""
        refused = {}
        for i, world in enumerate(worlds.tolist()):
            mine = {name: value[i] for name, value in values.items()}
            row = self._row(world)
            other = {name for name, value in mine.items() if not np.array_equal(value, row[name])}
            common = {"room/seed", *CONFOUNDER}
            new = [s for s in self._slots if (common | {name_of(s, "class")}) & other]
            problem = self._impose(row, mine, redraw=new)
            if problem is None:
                self._write(row, world)
            else:
                refused[world] = problem
        return refused or NONE_REFUSED

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Acts on one object in each world; camera and light change where that was asked for."""
        self.act(actions, worlds, noise)
        numbers = change_noise(noise, self.options)
        for i, world in enumerate(worlds.tolist() if numbers else ()):
            row = self._row(world)
            row |= {key: value[i] for key, value in numbers.items()}
            settle(row, self.options)
            self._write(row, world)

    def act(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Acts on one object in each world, and nothing else changes."""
        graded = self.options.states == "graded"
        uniforms = noise.uniform(TARGET) if graded else np.zeros(len(worlds))
        for i, world in enumerate(worlds.tolist()):
            row = self._row(world)
            slot, verb = actions[i].tolist()
            name = name_of(slot, "state")
            cls = int(row[name_of(slot, "class")])
            if graded:
                if not row[f"cut/{TARGET}"]:
                    row[TARGET] = np.array(graded_target(row[name], verb, float(uniforms[i])))
                after = act_to(cls, row[name], verb, float(row[TARGET]))
            else:
                after = act(cls, row[name], verb)
            row["changed"] = np.array(not np.array_equal(after, row[name]))
            row["steps"] = row["steps"] + 1
            row |= {name: after, ACTION[0]: np.array(slot), ACTION[1]: np.array(verb)}
            self._write(row, world)

    def score(self) -> Score:
        """Returns 1 for an action that changed an object; an episode is over after its actions."""
        changed = self._store.rows["changed"].copy()
        over = self._store.rows["steps"] >= self.options.actions
        return Score(changed.astype(float), over, {"success": changed})

    def look(self, world: int, item: int, numbers: NDArray[np.float64]) -> None:
        """Draws another camera, for an item of the room: slot 0 stays as it is."""
        row = self._row(world)
        row["aimed"], row["u/camera"] = np.array(item), numbers
        settle(row, self.options)
        self._write(row, world)

    def focus(self, world: int, item: int) -> None:
        """Puts an item of the room into slot 0: it becomes `object`."""
        row = self._row(world)
        refocus(row, plan_room(int(row["room/seed"]), self.options.objects), item)
        settle(row, self.options)
        self._write(row, world)

    # ------------------------------------------------------------------- reading

    def hidden(self, world: int) -> Row:
        """Returns a world's row as it is, to be read: who acts asks what the confounder says."""
        return {name: rows[world, ...] for name, rows in self._store.rows.items()}

    def present(self, world: int) -> list[int]:
        """Returns the items that are in a room now, by their index in it."""
        return [index for index, thing in enumerate(things_of(self.hidden(world))) if thing]

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape), as a fresh array."""
        return self._store.rows[name].copy()

    def observe(self) -> Observation:
        """Returns pictures, and masks with 1 for the object, i + 1 for object_i, 0 elsewhere."""
        reserve(self.num_worlds)
        for world in np.flatnonzero(self._stale).tolist():
            frame = self.frame(world, self.options.image_size, ("rgb", "items"))
            assert frame.rgb is not None  # asked for
            self._image[world] = frame.rgb
            self._mask[world] = self.slots(world, frame) + 1
            self._stale[world] = False
        return {"image": self._image.copy(), "mask": self._mask.copy()}

    def frame(
        self, world: int, size: int, parts: Collection[Part] = _COLOURS, *, fast: bool = False
    ) -> Frame:
        """Returns a picture of a world; `fast` has the quick renderer draw it in any quality."""
        row = self.hidden(world)
        states = np.zeros((self.options.objects, 4))
        for slot, index in enumerate(row["order"].tolist()):
            states[index] = row[name_of(slot, "state")]
        place, yaw, pitch, fov = (row[name] for name in CAMERA)
        color, bright, time = (row[name] for name in LIGHT)
        shot = Shot(
            things=things_of(row),
            states=states,
            view=RoomView(place, float(yaw), float(pitch), float(fov)),
            light=(color, float(bright), float(time)),
        )
        # The model of a world's room, made at first and then kept.
        seed = int(row["room/seed"])
        options, cast = self.options, cast_of(shot.things, shot.states)
        held = self._held.get(world)
        if held is None or held[0] != (seed, cast):
            spill, high = options.light_spill, options.quality == "high"
            made = staged(seed, options.objects, cast, spill=spill, high=high)
            held = self._held[world] = ((seed, cast), made)
        return draw(held[1], shot, size=size, parts=parts, fast=fast)

    def slots(self, world: int, frame: Frame) -> NDArray[np.int16]:
        """Returns the slot of the object at each pixel of a frame, -1 for none."""
        order = self._store.rows["order"][world]
        table = np.full(len(order) + 1, -1, np.int16)
        table[order] = np.arange(len(order))
        assert frame.items is not None  # asked for
        return table[frame.items]

    def set_by_action(self, action: object) -> frozenset[str]:
        """Returns the two parts of an action: all that it does follows from them."""
        return frozenset(ACTION)

    def action_names(self, world: int) -> tuple[tuple[str, ...], ...]:
        """Returns the objects that stand in the room, by slot and class, and the verbs."""
        classes = [int(self._store.rows[name_of(slot, "class")][world]) for slot in self._slots]
        words = ["-" if number == ABSENT else CLASS_NAMES[number] for number in classes]
        things = tuple(f"{slot} {word}" for slot, word in enumerate(words))
        return things, tuple(verb.name for verb in VERBS)

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns objects left in other states, and cameras that look at another object."""
        return (_handled, _facing)

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture of one world."""
        picture = self.frame(world, _RENDERED).rgb
        assert picture is not None  # asked for
        return picture

    # ---------------------------------------------------------------------- rows

    def _row(self, world: int) -> Row:
        return {name: rows[0, ...] for name, rows in self._store.take(np.array([world])).items()}

    def _write(self, row: Row, world: int) -> None:
        rows = {name: np.asarray(value)[None] for name, value in row.items()}
        self._store.update(rows, np.array([world]))
        self._stale[world] = True

    def save(self, worlds: Index) -> State:
        """Returns copies of the state's rows."""
        return self._store.take(worlds)

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        self._store.update(state, worlds)
        self._stale[worlds] = True

    def close(self) -> None:
        """Gives up the models; drawing again makes them anew."""
        self._held.clear()


# Situations in which causes act that seldom do, for the search for witnesses.


def _handled(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Leaves objects in other states than they were found in; then acts on one of them."""
    chosen = rng.permutation([slot for slot in (0, 1) if name_of(slot, "class") in values])
    for slot in chosen.tolist():
        name, held = name_of(slot, "state"), has(int(values[name_of(slot, "class")]))
        yield "do", {name: np.where(held, rng.integers(2, size=4), 0.0)}
        for verb in possible(int(values[name_of(slot, "class")]), values[name]):
            yield "action", [slot, verb]


def _facing(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Turns the camera to the second object."""
    if name_of(1, "position") not in values:
        return
    there = values[name_of(1, "position")]
    spots = [there + rng.uniform((-1.5, -1.5, 0.2), (1.5, 1.5, 1.2)) for _ in range(10)]
    yield "try", [{"camera/position": np.clip(spot, -4.0, 4.0)} for spot in spots]
    yaw, pitch = aim(values["camera/position"], there)
    yield "do", {"camera/yaw": yaw, "camera/pitch": np.clip(pitch, -1.4, 1.4), "camera/fov": 1.6}
