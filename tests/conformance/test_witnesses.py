"""The other side of the causal law: what is declared to act is seen to act, in every id.

Laws elsewhere say that nothing but the declared effects changes. Here every variable must move
something that can be observed, and every edge must have a witness: a seed, values, perhaps an
action, perhaps a situation for which the child moves. `python tools/witnesses.py --write` finds
them and stores them beside each world; these tests run what is stored.
"""

import itertools
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import interverse as iv
import interverse.worlds.tutorial
from interverse.cli.describe import _graph_text, _VariableTable
from interverse.rollouts.evidence import (
    MANY_EDGES,
    WITNESS_LAWS,
    Evidence,
    WitnessTrial,
    edge_kind,
)
from interverse.rollouts.witnesses import WitnessBench, replay, search, stored
from interverse.scm import CausalGraph
from interverse.worlds import WORLDS

BUILT_IN = tuple(n for n in WORLDS if WORLDS[n].target.startswith("interverse."))
SLIDER = "tutorial/slider-v1"
EDGES, VARIABLES, DECLARED = WITNESS_LAWS
TOO_MANY = 5000  # edges of the two worlds of stacked blocks: a second for each wrong graph


@pytest.mark.parametrize("world_id", BUILT_IN)
def test_every_edge_and_variable_acts_and_nothing_else_does(world_id):
    """Where this fails after a change: `python tools/witnesses.py --write ID`.

    Of the same trials, some edges taken out, some false ones put in and some parents swapped are
    each found.
    """
    assert stored(world_id), "no witnesses are stored"
    evidence = Evidence()
    assert replay(world_id, evidence) == []
    wrong = WrongGraphs(evidence)
    if wrong.graph.number_of_edges() < TOO_MANY:
        assert wrong.unnoticed(removed=5, added=20, swapped=20) == []


@pytest.mark.slow
@pytest.mark.parametrize("world_id", [n for n in BUILT_IN if "stacked_blocks" not in n])
def test_every_edge_taken_out_and_400_false_ones_put_in_are_found(world_id):
    evidence = Evidence()
    replay(world_id, evidence)
    assert WrongGraphs(evidence).unnoticed(removed=400, added=400, swapped=0) == []


class WrongGraphs:
    """The trials of an id judged by graphs with an edge too few, too many, or from elsewhere."""

    def __init__(self, evidence):
        self.evidence = evidence
        self.graph = evidence.moments[0][0]  # the first trial starts from what is declared
        self.kinds = {edge_kind(edge) for edge in self.graph.edges}
        self.many = self.graph.number_of_edges() > MANY_EDGES

    def unnoticed(self, *, removed, added, swapped):
        """Returns the edges, of so many wrong in each way, that no law misses or finds idle."""
        rng = np.random.default_rng(0)
        true = [edge for edge in self.graph.edges if self.stands_alone(edge)]
        true = [true[i] for i in rng.permutation(len(true))[:removed]]
        false = list(itertools.islice(self.false_edges(rng), added))
        out = [f"without {a} -> {b}" for a, b in true if not self.strays((a, b))]
        out += [f"with {a} -> {b}" for a, b in false if self.acts((a, b))]
        swaps = list(self.swaps())
        swaps = [swaps[i] for i in rng.permutation(len(swaps))[:swapped]]
        return out + [f"{q} for {p} -> {c}" for p, q, c in swaps if self.acts((q, c), (p, c))]

    def stands_alone(self, edge):
        """Whether a trial shows it: not inert, not one of a kind that another edge stands for.

        Of two names of one value the other one's edge says the same.
        """
        parent, child = edge
        same = {(twin, child) for twin in self.graph.equals(parent)} & set(self.graph.edges)
        return not same and edge in self.evidence.edges and edge not in self.graph.inert

    def false_edges(self, rng):
        """Yields edges at random between things that are not joined so, by any of their names."""
        nodes, names = list(self.graph), [n for n in self.graph if not n.endswith("'")]
        while True:
            child = nodes[rng.integers(len(nodes))]
            parent = (nodes if child.endswith("'") else names)[rng.integers(len(names))]
            if self.is_false(parent, child):
                yield parent, child

    def is_false(self, parent, child):
        ends = itertools.product(self.names_of(parent), self.names_of(child))
        known = self.many and edge_kind((parent, child)) in self.kinds
        return parent != child and not known and not any(e in self.graph.edges for e in ends)

    def swaps(self):
        """Yields true parents, others that move together with them, and the children.

        The others are effects of the parent, effects of its causes, and these causes. Only what can
        be set is swapped: of the rest nothing but its moves is known. The parent a moment later is
        the same thing.
        """
        settable = self.evidence.moments[0][1].settable
        for parent, child in filter(self.stands_alone, self.graph.edges):
            if parent.removesuffix("'") not in settable:
                continue
            causes = set(self.graph.predecessors(parent))
            alike = set().union(*map(self.graph.children, {parent, *causes})) | causes
            for other in sorted(alike - self.names_of(parent) - self.names_of(child)):
                later = other.endswith("'") and not child.endswith("'")
                known = other.removesuffix("'") in settable and other != parent + "'"
                if known and not later and self.is_false(other, child):
                    yield parent, other, child

    def names_of(self, node):
        mark = "'" if node.endswith("'") else ""
        name = node.removesuffix("'")
        return {node} | {twin + mark for twin in self.graph.twins(name)}

    def judged(self, edge, change):
        """Returns what the trials show in which the child moved, the graphs being changed."""
        out, copies = Evidence(), {}
        for graph, moment in self.evidence.moments:
            if edge[1].removesuffix("'") in moment.moved:
                if id(graph) not in copies:
                    copies[id(graph)] = CausalGraph(graph)
                    change(copies[id(graph)])
                out.judge(copies[id(graph)], moment)
        return out

    def strays(self, edge):
        return self.judged(edge, lambda graph: graph.remove_edges_from([edge])).stray

    def acts(self, edge, instead_of=None):
        """Whether the false edge is credited and nothing is missed, such as the one it replaces."""

        def change(graph):
            graph.remove_edges_from([instead_of] if instead_of else ())
            graph.add_edge(*edge)

        found = self.judged(edge, change)
        return edge in found.edges and not found.stray


# ------------------------------------------------------------- what is false is found


def broken(world_id, change=lambda graph: None):
    """Returns what the stored trials find in a world whose graph is declared otherwise."""
    group = stored(world_id)[0]
    bench = WitnessBench(world_id, group["options"], group["worlds"])
    graph = CausalGraph(bench.world.graph)
    change(graph)
    bench.world.graph = graph
    for data in group["trials"]:
        bench.run(WitnessTrial.from_json(data))
    found = bench.broken()
    bench.close()
    return found


def test_the_template_as_declared_breaks_nothing():
    assert broken(SLIDER) == {law: [] for law in WITNESS_LAWS}


def test_a_declared_edge_that_is_not_there_is_found():
    found = broken(SLIDER, lambda graph: graph.add_edge("box/color", "box/velocity'"))
    assert found[EDGES] == ["edge box/color -> box/velocity' has no witness"]
    assert not found[VARIABLES] + found[DECLARED]


def test_an_edge_that_acts_only_through_another_variable_is_found():
    """A palette index moves blocks by way of their weights."""
    edge = ("block_0/palette_index", "block_1/position'")
    found = broken("blocks/unobserved-3-v1", lambda graph: graph.add_edge(*edge))
    assert found[EDGES] == ["edge block_0/palette_index -> block_1/position' has no witness"]


@pytest.mark.parametrize(
    ("world_id", "parent", "other", "child"),
    [
        ("blocks/observed-3-v1", "block_1/weight", "block_1/color", "block_0/position'"),
        ("control/reacher_easy-v1", "visual_seed", "camera/position", "light/diffuse"),
        ("control/reacher_easy-v1", "dynamics/mass_scale", "qpos'", "qvel'"),
        (
            "trifinger/pushing-v1",
            "finger_0/upper/mass",
            "joint_velocities'",
            "block_0/linear_velocity'",
        ),
    ],
)
def test_what_merely_moves_together_with_a_cause_is_no_cause(world_id, parent, other, child):
    """Something else moved both: the other was never set, or moved nothing when it was."""

    def swap(graph):
        graph.remove_edge(parent, child)
        graph.add_edge(other, child)

    found = broken(world_id, swap)
    assert f"edge {other} -> {child} has no witness" in found[EDGES] or any(
        child.removesuffix("'") in line for line in found[DECLARED]
    )


def test_an_effect_that_is_not_declared_is_found():
    def forget(graph):
        graph.remove_edges_from([("push", "box/position'"), ("push", "box/velocity'")])

    found = broken(SLIDER, forget)
    assert found[DECLARED] == ["do(push) moves ['box/position', 'box/velocity']"]
    assert found[EDGES] == []


@pytest.mark.parametrize(
    ("world_id", "edge", "words"),
    [
        (SLIDER, ("gravity", "box/velocity'"), "do(gravity) moves ['box/velocity']"),
        (
            "control/cartpole_balance-v1",
            ("dynamics/damping", "qvel'"),
            "do(dynamics/damping) moves ['qvel']",
        ),
    ],
)
def test_an_edge_that_is_not_declared_is_found_though_a_longer_path_is(world_id, edge, words):
    """Nothing may move sooner than the declared edges carry it."""
    assert words in broken(world_id, lambda graph: graph.remove_edge(*edge))[DECLARED]


def test_an_edge_that_is_called_inert_and_acts_is_found():
    def call_inert(graph):
        graph.edges["gravity", "box/velocity'"]["inert"] = "nothing falls"

    assert broken(SLIDER, call_inert)[EDGES] == ["edge gravity -> box/velocity' is called inert"]


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
    yield "mine/idle-v1"
    sys.path.remove(str(folder))


def test_a_variable_without_binding_is_found(idle_slider):
    bench = WitnessBench(idle_slider, {}, 16)
    search(bench, 6)
    found = bench.broken()
    bench.close()
    assert found[VARIABLES] == ["air/density moves nothing"]
    assert found[EDGES] == [
        "edge air/density -> box/position' has no witness",
        "edge air/density -> box/velocity' has no witness",
    ]


# -------------------------------------------------------------------------- inert ones


def test_an_inert_variable_says_why():
    env = iv.make(SLIDER)
    idle = replace(env.variables["push"], inert="no motor is attached")
    assert "inert: no motor is attached" in _printed(_VariableTable([idle]))
    assert idle.to_json()["inert"] == "no motor is attached"


def test_an_inert_edge_says_why_and_needs_no_witness():
    reason = "the wind is off"
    graph = CausalGraph.build(["wind", "box"], [("box", "box'")], inert={("wind", "box'"): reason})
    text = _printed(_graph_text(graph))
    assert "wind -> box'" in text
    assert f"(inert: {reason})" in text
    assert text.count("inert") == 1
    assert CausalGraph.from_json(graph.to_json()).inert == {("wind", "box'"): reason}


def _printed(part):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(part)
    return console.export_text()


def test_edges_of_a_kind_differ_in_numbers_alone():
    assert edge_kind(("block_1/mass", "block_1/size'")) != edge_kind(
        ("block_1/mass", "block_2/size'")
    )
    assert edge_kind(("block_1/mass", "block_2/size'")) == edge_kind(
        ("block_4/mass", "block_3/size'")
    )
