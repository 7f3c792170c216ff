"""The other side of the causal law: what is declared to act is seen to act.

Laws elsewhere say that nothing but the declared effects changes. Here every variable must move
something that can be observed, and every edge must have a witness: a seed, values, perhaps an
action for which the child moves. What cannot is declared `inert` with its reason.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import interverse as iv
import interverse.worlds.tutorial
from interverse.worlds import WORLDS
from tests.conformance.cases import CASES, Case, writable
from tests.conformance.test_mid_episode import one_of_each_kind
from tests.conformance.witnesses import missing, search

# Edges that are true and that no set-up here brings about, with the reason.
RARE = {
    "trifinger/pushing-v1": {
        ("stage/friction", "joint_velocities'"): "a block must touch wall and finger at once",
    },
}
_PIXELS = {"observation_mode": "pixel", "image_size": 16, "skip_frame": 1}
_FAST = (
    "blocks/observed-3-v1",
    "blocks/unobserved-3-v1",
    "chemistry/chain-v1",
    "chemistry/collider-v1",
    "trifinger/pushing-v1",
    "trifinger/reaching-v1",
    "tutorial/slider-v1",
)
_SLOW = (
    "blocks/observed-4-v1",
    "blocks/observed-5-v1",
    "trifinger/creative_stacked_blocks-v1",
    "trifinger/pick_and_place-v1",
    "trifinger/stacked_blocks-v1",
    "trifinger/stacking2-v1",
)
_EDGES = {
    "tutorial/slider-v1": 8,
    "blocks/observed-3-v1": 400,
    "blocks/unobserved-3-v1": 400,
    "chemistry/chain-v1": 120,
    "trifinger/pushing-v1": 28,
}


def acting(env, names):
    """Returns the variables that are not declared inert."""
    return [name for name in names if not env.unwrapped.variables[name].inert]


def unseen(case, names, tries):
    """Returns the variables that moved nothing that can be observed; cameras need pictures."""
    left = missing_variables(case, names, tries)
    if left and case.id.startswith("trifinger/"):
        left = missing_variables(Case(case.id, {**case.options, **_PIXELS}, steps=1), left, 1)
    return left


def missing_variables(case, names, tries):
    found = search(case, names, tries=tries)
    return [name for name in names if name not in found.seen]


@pytest.mark.parametrize("world_id", _FAST)
def test_every_kind_of_variable_moves_something_that_can_be_observed(world_id):
    check_variables(world_id)


@pytest.mark.slow
@pytest.mark.parametrize("world_id", _SLOW)
def test_every_kind_of_variable_of_costly_worlds_moves_something(world_id):
    check_variables(world_id)


def check_variables(world_id):
    case = plain_case(world_id)
    env = case.make()
    names = acting(env, one_of_each_kind(writable(env)))
    env.close()
    names = names[:: max(1, len(names) // 4)] if "stacked" in world_id else names
    grid = world_id.startswith(("blocks/", "chemistry/"))
    assert unseen(case, names, 40 if grid else 4) == []


def plain_case(world_id):
    return next(c for c in CASES if c.id == world_id and not c.options)


def test_every_edge_of_the_template_has_a_witness():
    check_edges("tutorial/slider-v1")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("world_id", [w for w in _EDGES if not w.startswith("tutorial/")])
def test_every_edge_has_a_witness(world_id):
    check_edges(world_id)


def check_edges(world_id):
    case = plain_case(world_id)
    env = case.make()
    graph, everyone = env.unwrapped.graph, list(env.unwrapped.variables)
    found = search(case, acting(env, writable(env)), tries=_EDGES[world_id])
    env.close()
    edges, _ = missing(graph, found, everyone)
    assert set(edges) <= RARE.get(world_id, {}).keys()


# ------------------------------------------------------------------------ it finds idle ones


@pytest.fixture(scope="module")
def idle_slider(tmp_path_factory):
    """The template with a variable that is declared, has edges, and is bound to nothing."""
    folder = tmp_path_factory.mktemp("idle")
    source = Path(interverse.worlds.tutorial.__file__).parent
    shutil.copytree(source, folder / "idle_slider", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "idle_slider" / "variables.py"
    air = (
        'VARIABLES = table(\n    Variable(name="air/density", kind="latent", '
        "default=np.array(1.2), domain=Box(0.0, 900.0)),\n"
    )
    text = file.read_text()
    text = text.replace("VARIABLES = table(\n", air).replace(
        '("gravity",', '("air/density", "gravity",'
    )
    file.write_text(text)
    sys.path.insert(0, str(folder))
    if "mine/idle-v1" not in WORLDS:
        iv.register("mine/idle-v1", "idle_slider.world:Slider")
    yield Case("mine/idle-v1")
    sys.path.remove(str(folder))


def test_a_variable_without_binding_is_found(idle_slider):
    env = idle_slider.make()
    names = writable(env)
    found = search(idle_slider, names, tries=4)
    edges, variables = missing(env.unwrapped.graph, found, names)
    assert variables == ["air/density"]
    assert set(edges) == {
        ("air/density", "box/position'"),
        ("air/density", "box/velocity'"),
    }


def test_an_inert_variable_says_why():
    from dataclasses import replace

    from rich.console import Console

    from interverse.cli.describe import _variable_table

    env = iv.make("tutorial/slider-v1")
    idle = replace(env.variables["push"], inert="no motor is attached")
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(_variable_table({"push": idle}))
    assert "inert: no motor is attached" in console.export_text()
    assert idle.to_json()["inert"] == "no motor is attached"
