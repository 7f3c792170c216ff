"""Layout of a world of chemistry: the array behind each variable, and the observation space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.scm import Variable, with_defaults
from interverse.sim import raster
from interverse.worlds.chemistry import graphs
from interverse.worlds.chemistry.cpt import MOST_TABLE_ROWS, CptWeights, chances_of, tabulate
from interverse.worlds.chemistry.delayed import whole_bytes
from interverse.worlds.chemistry.networks import Screen, file_weights
from interverse.worlds.chemistry.options import ChemistryOptions
from interverse.worlds.chemistry.variables import (
    colors,
    declare,
    delay_of,
    edge_of,
    goal_of,
    name_of,
)
from interverse.worlds.grid import Place, clashes

_ROUNDING = 1e-6  # how far a row of chances may be from 1


def out_of_order(adjacency: NDArray[np.int64]) -> dict[int, str]:
    """Returns the rows of (R, n, n) that are no graph of this world, each with its reason."""
    backward = np.triu(np.ones(adjacency.shape[1:], dtype=bool))
    rows = np.flatnonzero((adjacency != 0)[:, backward].any(axis=1))
    return {int(row): graphs.disorder(adjacency[row]) for row in rows}


def disagreeing(name: str, differs: NDArray[np.bool_]) -> dict[int, str]:
    """Returns the rows where an edge and the whole graph, both given, say different things."""
    text = explain(f"{name} and graph/adjacency disagree", fix="Give one of them")
    return {int(row): text for row in np.flatnonzero(differs)}


def not_chances(name: str, rows: NDArray[np.float64]) -> dict[int, str]:
    """Returns the worlds whose table (R, rows, k) has a row that does not sum to 1."""
    off = np.abs(rows.sum(axis=2) - 1.0) > _ROUNDING
    return {
        int(world): explain(
            f"row {int(np.argmax(off[world]))} of {name} sums to"
            f" {rows[world].sum(axis=1)[np.argmax(off[world])]:.6g}",
            allowed="rows that sum to 1",
        )
        for world in np.flatnonzero(off.any(axis=1))
    }


def shared_cells(position: NDArray[np.int64]) -> dict[int, str]:
    """Returns the rows of (R, n, 2) where two objects share a cell, each with its reason."""
    return {
        row: explain(
            f"object_{one} and object_{other} would share cell {list(cell)}",
            allowed="distinct cells",
        )
        for row, one, other, cell in clashes(position)
    }


def declared(
    options: ChemistryOptions,
) -> tuple[NDArray[np.int64], Mapping[str, Variable]]:
    """Returns the adjacency and the variables, with the options' defaults laid over both."""
    chances = tables_of(options)
    given = with_defaults(declare(options, options.adjacency(), chances), options.defaults)
    matrix = np.array(given["graph/adjacency"].default)
    graphs.adjacency_of(graphs.edges_of(matrix), options.objects)  # raises for a cycle
    for i in range(options.objects):
        for j in range(i):
            if edge_of(j, i) in options.defaults:
                matrix[i, j] = given[edge_of(j, i)].default
    for name in options.defaults:
        if given[name].read_only:
            raise InvalidValueError(
                f"{name} has a default, but can only be read", fix="Leave it out"
            )
    whole = given["graph/adjacency"].default
    if "graph/adjacency" in options.defaults and not np.array_equal(whole, matrix):
        raise InvalidValueError(
            "defaults for graph/adjacency and for edges disagree", fix="Give one of them"
        )
    placed = [n for n in options.defaults if n.endswith("/position")]
    if placed and options.moves:
        raise InvalidValueError(
            f"{placed[0]} has a default, but positions are drawn each episode",
            fix="Pass movement='static', or intervene after the reset",
        )
    for name in options.defaults:
        if name.endswith("/cpt"):
            wrong = not_chances(name, np.asarray(given[name].default)[None])
            if wrong:
                raise InvalidValueError(wrong[0])
    positions = [given[name_of(i, "position")].default for i in range(options.objects)]
    clash = shared_cells(np.array(positions)[None])
    if clash:
        raise InvalidValueError(clash[0])
    rest = {n: v for n, v in options.defaults.items() if given[n].kind != "graph"}
    return matrix, with_defaults(declare(options, matrix, chances), rest)


def networks(options: ChemistryOptions) -> CptWeights:
    """Returns the networks the world is made with: of a file, or drawn and screened."""
    if options.cpt_file is not None:
        level = options.level
        return file_weights(options.cpt_file, options.sizes, gain=level.gain, bias=level.bias)
    return screen(options).weights(options.cpt_seed)


def tables_of(options: ChemistryOptions) -> dict[int, NDArray[np.float64]]:
    """Returns each object's chances where they are variables; object 0 is only ever painted."""
    if options.cpt != "table":
        return {}
    level = options.level
    found = tabulate(networks(options), options.adjacency(), level.gain, level.bias)
    for v, table in enumerate(found):
        if table is None:
            raise InvalidValueError(
                f"object {v} has too many parents for a table",
                allowed=f"{MOST_TABLE_ROWS} rows at most",
                fix="Pass cpt='network', or a sparser graph",
            )
    return {v: chances_of(table) for v, table in enumerate(found) if v and table is not None}


def places(options: ChemistryOptions) -> dict[str, Place]:
    """Returns where each variable that can be set lives."""
    out: dict[str, Place] = {
        "graph/adjacency": ("adjacency", ()),
        "cpt/gain": ("gain", ()),
        "cpt/bias": ("bias", ()),
        "palette": ("palette", ()),
    }
    for i in range(options.objects):
        if i and options.cpt == "table":
            out[name_of(i, "cpt")] = (f"cpt_{i}", ())
        out |= {name_of(i, field): (field, (i,)) for field in ("color", "position", "shape")}
        if options.has_target:
            out[goal_of(i, options)] = ("goal", (i,))
        for j in range(i):
            out[edge_of(j, i)] = ("adjacency", (i, j))
            if options.mode == "delayed":
                out[delay_of(j, i)] = ("delay", (i, j))
    return out


def blank_row(
    variables: Mapping[str, Variable], where: Mapping[str, Place], options: ChemistryOptions
) -> dict[str, NDArray[Any]]:
    """Returns one world's state as declared, before anything is drawn."""
    n = options.objects
    row: dict[str, NDArray[Any]] = {}
    for name, (key, index) in where.items():
        default = variables[name].default
        size = (n,) * len(index) + default.shape
        row.setdefault(key, np.zeros(size, dtype=default.dtype))[index] = default
    if options.has_target:
        row["target_actions"] = np.zeros(options.target_steps, dtype=np.int64)
    if options.mode == "delayed":
        row["origin"] = np.zeros((n, 3), dtype=np.int64)
        row |= {name: np.ones(n, dtype=np.int64) for name in ("elapsed", "duration")}
        row.setdefault("delay", np.ones((n, n), dtype=np.int64))
    return row


def screen(options: ChemistryOptions) -> Screen:
    """Returns what decides which networks the world is made with."""
    level = options.level
    features = None
    if options.mode == "delayed":
        features = whole_bytes(colors(options)).astype(np.float64)
    return Screen(
        sizes=options.sizes,
        family=level.weights,
        gain=level.gain,
        bias=level.bias,
        adjacency=options.adjacency(),
        least=options.screened_at,
        features=features,
    )


def observation_space(options: ChemistryOptions) -> gym.spaces.Dict:
    """Returns what one world shows: pictures, colours, and in mode moving the cells."""
    size, count = (raster.SIZE, raster.SIZE, 3), len(options.seen)
    state: gym.Space[Any] = gym.spaces.MultiDiscrete([options.colors] * count)
    if options.mode == "delayed":
        state = gym.spaces.Box(0, 255, (count, 3), np.uint8)
    spaces: dict[str, gym.Space[Any]] = {
        "image": gym.spaces.Box(0, 255, size, np.uint8),
        "state": state,
    }
    if options.has_target:
        spaces["target"] = gym.spaces.Box(0, 255, size, np.uint8)
    if options.mode == "moving":
        spaces["positions"] = gym.spaces.MultiDiscrete(np.full((count, 2), raster.GRID))
    return gym.spaces.Dict(spaces)
