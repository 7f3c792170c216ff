"""The drawn graph and the drawn curve, read back as XML."""

from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from interverse.envs import make
from interverse.scm import Box, CausalGraph, Variable, table
from interverse.scm.graph import now
from interverse.viewer.graph import GraphMarks, by_object, curve_svg, graph_svg, lights_of
from interverse.viewer.scene import _outside

WORLDS = ("blocks/unobserved-3-v1", "chemistry/full-v1", "rooms/multi-v1", "trifinger/pushing-v1")


@pytest.fixture(scope="module", params=WORLDS)
def env(request):
    made = make(request.param)
    yield made
    made.close()


def drawn(env, chosen, *, whole, lights=None):
    marks = GraphMarks(chosen=chosen, lights=lights or {})
    return ElementTree.fromstring(graph_svg(env.graph, env.variables, marks, whole=whole))


def nodes(svg):
    return {g.get("data-name"): g for g in svg.iter("g") if g.get("class") == "node"}


def inside(svg):
    """Returns whether no two pills overlap and all are on the sheet."""
    width = float(svg.get("viewBox").split()[2])
    boxes = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in svg.iter("rect")]
    for i, (x, y, w, h) in enumerate(boxes):
        if x < -0.1 or x + w > width + 0.1:
            return False
        if any(abs(y - v) < h and x < u + b and u < x + w for u, v, b, _ in boxes[:i]):
            return False
    return True


def test_the_whole_graph_has_every_variable_once_and_every_edge(env):
    svg = drawn(env, next(iter(env.variables)), whole=True)
    assert nodes(svg).keys() == env.variables.keys()
    assert inside(svg)
    edges = {(now(a), now(b)) for a, b in env.graph.edges if now(a) != now(b)}
    lines = [path for path in svg.iter("path") if path.get("data-kind")]
    assert len(lines) == len(edges)


def test_a_neighbourhood_is_the_variable_its_causes_and_its_effects(env):
    both = nx.DiGraph((now(a), now(b)) for a, b in env.graph.edges)
    for name in list(env.variables)[::7]:
        svg = drawn(env, name, whole=False)
        near = {name} | env.graph.effects_now(name)
        if name in both:
            near |= set(both.predecessors(name)) | set(both.successors(name))
        assert near <= nodes(svg).keys()
        assert inside(svg)


def test_what_is_lit_is_what_networkx_says_can_follow(env):
    unrolled = env.graph.unrolled(4)
    for name in list(env.variables)[::5]:
        later = {n for n, _ in nx.descendants(unrolled, (name, 0))} - {name}
        assert lights_of(env.graph, [name], []).keys() - {name} >= later
        assert lights_of(env.graph, [name], [])[name] == "do"


def test_lights_and_inert_variables_show():
    declared = [
        Variable(name=n, kind="state", default=np.array(0.0), domain=Box(0, 1), inert=why)
        for n, why in (("a", ""), ("b", ""), ("paint", "nothing sees it"))
    ]
    graph = CausalGraph.build(
        ["a", "b", "paint"], [("a", "b'")], inert={("paint", "b'"): "too thin"}
    )
    marks = GraphMarks(
        chosen="a", lights=lights_of(graph, ["a"], ["a"]), differing=frozenset({"b"})
    )
    svg = ElementTree.fromstring(graph_svg(graph, table(*declared), marks, whole=True))
    found = nodes(svg)
    assert {name: g.get("data-state") for name, g in found.items()} == {
        "a": "do",
        "b": "follows",
        "paint": "",
    }
    assert (found["b"].get("data-differs"), found["a"].get("data-differs")) == ("1", "0")
    assert found["paint"].find("rect").get("stroke-dasharray")
    assert "nothing sees it" in found["paint"].find("title").text
    kinds = sorted(path.get("data-kind") for path in svg.iter("path") if path.get("data-kind"))
    assert kinds == ["inert", "lit"]


def test_the_curve_has_a_line_for_each_number_of_fact_and_ghost():
    fact = [{"x": np.array([step, 2.0 * step, -1.0])} for step in range(4)]
    svg = ElementTree.fromstring(curve_svg("x", fact, fact[:2], at=2))
    lines = [(p.get("data-kind"), len(p.get("points").split())) for p in svg.iter("polyline")]
    assert lines == [("fact", 4)] * 3 + [("ghost", 2)] * 3
    heights = [float(p.split(",")[1]) for p in next(svg.iter("polyline")).get("points").split()]
    assert heights == sorted(heights, reverse=True)  # up is down in SVG
    lonely = ElementTree.fromstring(curve_svg("x", [{"x": np.array(np.nan)}], (), at=0))
    assert len(list(lonely.iter("polyline"))) == 1


def test_many_variables_are_drawn_by_their_objects():
    env = make("trifinger/pushing-v1")
    marks = GraphMarks(
        chosen="block_0/mass",
        lights={"block_0/mass": "do", "block_0/size": "follows", "floor/color": "refused"},
        differing=frozenset({"goal_0/size"}),
    )
    graph, things, folded = by_object(env.graph, env.variables, marks)
    assert set(graph.nodes) >= set(things) >= {"gravity", "block_0", "finger_2", "goal_0"}
    assert not any("/" in name for name in things)
    assert len(things) < 25
    assert folded.lights == {"block_0": "do", "floor": "refused"}
    assert (folded.chosen, folded.differing) == ("block_0", {"goal_0"})
    assert "block_0" in graph_svg(graph, things, folded, whole=True)
    env.close()


def test_the_near_wall_of_a_bowl_is_seen_through():
    env = make("trifinger/pushing-v1")
    env.reset(seed=0)
    hollow = [
        shape.name
        for shape in env.unwrapped.world.shapes(0)
        if shape.mesh is not None and _outside(shape.mesh.vertices, shape.mesh.faces) is not None
    ]
    assert hollow == ["geom/stage"]
    env.close()
