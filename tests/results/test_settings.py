"""Runs under unlike settings: never pooled, and marked where they are compared."""

import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.protocols.protocol import Protocol
from interverse.results import Results
from interverse.results.comparisons import comparisons

TASK = "tutorial/slider-v1"
LIGHT = Protocol(name="mine", variables={"box/mass": "A"})
HEAVY = Protocol(name="mine", variables={"box/mass": "B", "gravity": "B"})


def scored(protocols="P0", **given):
    given = {"episodes": 4, "max_steps": 5, **given}
    return iv.evaluate("random", task=TASK, protocols=protocols, **given)


def made(experiment="x", seed=0, *, engine=None, **run):
    """Results of one episode, as a run of these settings would give them."""
    row = {"task": TASK, "protocol": "P0", "seed": seed, "episode": 0, "return": 1.0}
    told = {"runs": [{"experiment": experiment, "task": TASK, "policy": f"{seed}", **run}]}
    told |= {} if engine is None else {"engine": engine}
    return Results.from_rows([row | {"experiment": experiment}], told)


def test_runs_under_other_options_are_not_one_row():
    short, long = scored(), scored(seed=1, max_steps=20)
    with pytest.raises(InvalidValueError, match=r"'random'.*max_steps is 5 and 20.*experiment"):
        Results.concat([short, long])
    both = Results.concat([short, long.named("longer")])
    assert both.experiments == ["random", "longer"]
    with pytest.raises(InvalidValueError, match="max_steps is 5 and 20"):
        both.named("all")


def test_protocols_that_share_a_name_are_not_pooled():
    parts = [scored([LIGHT], experiment="x"), scored([HEAVY], experiment="x", seed=1)]
    with pytest.raises(InvalidValueError, match=r"protocol mine has variables .*A.*B"):
        Results.concat(parts)
    # Nor where another experiment came between, which took no such test.
    joined = Results.concat([scored(experiment="y"), parts[0]])
    with pytest.raises(InvalidValueError, match="protocol mine"):
        Results.concat([joined, parts[1]])
    Results.concat([joined, parts[1].named("y")])


def test_a_note_of_a_protocol_changes_no_test():
    noted = Protocol(name="mine", variables={"box/mass": "A"}, note="lighter ones")
    assert len(Results.concat([scored([LIGHT]), scored([noted], seed=1)])) == 8


def test_engines_are_not_pooled_and_cards_are():
    host, card = {"device": "cpu"}, {"device": "cuda:0", "contact": "convex"}
    with pytest.raises(InvalidValueError, match="engine is cpu and convex cuda"):
        Results.concat([made(engine=host), made(seed=1, engine=card)])
    other = {**card, "device": "cuda:1"}
    Results.concat([made(engine=card), made(seed=1, engine=other)])


def test_trainings_elsewhere_that_take_the_same_test_are_pooled():
    places = ({"device": "cuda"}, {"device": "cpu", "threads": 2})
    parts = [
        made(seed=i, options={"max_steps": 5, **where}, training_place={"visual_seed": [0, i]})
        for i, where in enumerate(places)
    ]
    assert len(Results.concat(parts)) == 2


def test_a_comparison_of_unlike_tests_says_so():
    longer = Results.concat([scored(), scored(max_steps=20, experiment="b")])
    table = comparisons(longer, "return")
    assert f"NOT THE SAME TEST: random vs b in {TASK}: max_steps is 5 and 20" in table.caption
    assert "episode, not the same test" in table.render("csv")
    mine = Results.concat([scored([LIGHT]), scored([HEAVY], experiment="b")])
    assert "NOT THE SAME TEST: random vs b" in comparisons(mine, "return").caption
    alike = comparisons(Results.concat([scored(), scored(experiment="b")]), "return")
    assert "not the same test" not in (alike.caption.lower() + alike.render("csv"))


def test_a_report_of_results_that_were_pooled_is_refused(tmp_path):
    runs = [{"experiment": "x", "task": TASK, "options": {"max_steps": n}} for n in (5, 20)]
    pooled = Results.from_rows(
        [{"task": TASK, "protocol": "P0", "seed": 0, "episode": 0}], {"runs": runs}
    )
    with pytest.raises(InvalidValueError, match="max_steps is 5 and 20"):
        iv.report(pooled, tmp_path)


def test_rows_of_two_engines_in_one_frame_are_told():
    pandas = pytest.importorskip("pandas")
    given = {"protocols": "P0", "episodes": 2, "max_steps": 3}
    frames = [
        iv.evaluate("random", "trifinger/pushing-v1", contact=contact, **given).to_pandas()
        for contact in ("exact", "convex")
    ]
    assert [set(frame["settings"]) for frame in frames] == [
        {"max_steps=3, contact=exact, device=cpu"},
        {"max_steps=3, contact=convex, device=cpu"},
    ]
    frames[1]["seed"] = 1
    rows = pandas.concat(frames).to_dict("records")
    with pytest.raises(InvalidValueError, match=r"no one test: .*convex.* and .*exact"):
        Results.from_rows(rows)
    for row in rows:
        row["experiment"] = row["settings"]
    assert len(Results.from_rows(rows)) == 4
