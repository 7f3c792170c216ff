"""Attribution: known answers, pairing, interactions, every family, the command line."""

import json

import numpy as np
import pytest
from scipy import stats

import interverse as iv
from interverse.agents.policies import trained_policy
from interverse.cli import main
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.protocols.factors import as_factors
from interverse.reports.attribute import attribute
from interverse.reports.attribution import Attribution
from interverse.reports.plots import bars as plot

SLIDER = "tutorial/slider-v1"
CARTPOLE = "control/cartpole_balance-v1"
SMALL = {"frame_stack": 1, "image_size": 24, "quality": "fast", "max_steps": 6}


def reads_brightness():
    """Returns a policy that pushes the cart away where the picture is not as bright as usual."""
    env = iv.make(CARTPOLE, **SMALL)
    usual = env.reset(seed=0)[0].mean()
    env.close()

    def act(seen):
        light = np.asarray(seen, np.float64).mean(axis=(1, 2, 3))
        return np.clip(np.abs(light[:, None] - usual) / 4.0, 0.0, 1.0).astype(np.float32)

    return act


def blind(seen):
    return np.zeros((len(seen), 1), np.float32)


def test_a_policy_that_sees_nothing_pays_for_no_look():
    looks = {"light": "light/*", "floor": "floor/*", "camera": "camera/*"}
    found = iv.attribute(blind, task=CARTPOLE, factors=looks, episodes=3, **SMALL)
    for key in found.scores:
        np.testing.assert_array_equal(found.scores[key], found.scores[()])
    assert len(found.pairs) == 3


def test_the_variable_that_a_policy_depends_on_is_named():
    """The still policy of the slider feels the push and gravity, and no colour or size."""
    names = ["push", "box/color", "box/size"]
    found = iv.attribute("random", task=SLIDER, factors=names, episodes=12, max_steps=25)
    assert found.worst == "push"
    assert found.cost("push").low > 0
    assert not found.costs("box/color").any()
    assert not found.interaction("push", "box/color").any()
    assert str(found.table()).splitlines()[4].split()[0] == "push"


def test_light_is_what_breaks_a_policy_that_reads_brightness():
    looks = {"light": "light/*", "damping": "dynamics/damping"}
    options = SMALL | {"frame_skip": 8}
    found = iv.attribute(reads_brightness(), task=CARTPOLE, factors=looks, episodes=4, **options)
    assert found.worst == "light"
    assert found.costs("light").mean() > 50 * np.abs(found.costs("damping")).max()


def test_a_seed_of_starts_moves_the_start():
    """An intervention after the reset would leave every episode where it started."""
    options = {"observation": "state", "max_steps": 6}
    found = iv.attribute(blind, CARTPOLE, ["dynamics_seed"], episodes=4, **options)
    drawn = found.costs("dynamics_seed")
    assert len(set(np.abs(drawn))) == 4
    assert drawn.all()


def test_a_look_by_its_seed_and_a_picture_beside_it():
    looks = {"look": "visual_seed", "floor": "floor/texture"}

    def pushed_by_light(seen):
        light = np.asarray(seen, np.float32).mean(axis=(1, 2, 3))
        return light[:, None] / 255.0

    found = iv.attribute(pushed_by_light, CARTPOLE, looks, episodes=3, **SMALL)
    assert found.costs("look").all()
    assert found.pairs == [("look", "floor")]
    assert np.any(found.costs("look", "floor") != found.costs("look"))


def test_one_factor_makes_no_pair():
    with pytest.raises(InvalidValueError, match="pairs is 1"):
        iv.attribute(blind, CARTPOLE, ["dynamics/damping"], pairs=1)


def test_costs_and_interactions_by_hand():
    scores = {
        (): np.array([10.0, 8.0]),
        ("a",): np.array([7.0, 8.0]),
        ("b",): np.array([9.0, 6.0]),
        ("a", "b"): np.array([2.0, np.nan]),
    }
    factors = {"a": {"x": "B"}, "b": {"y": "A"}}
    found = Attribution(task="t", metric="return", factors=factors, scores=scores)
    assert found.costs("a").tolist() == [3.0, 0.0]
    assert found.cost("a").value == 1.5
    assert found.interaction("b", "a")[0] == 8.0 - 3.0 - 1.0
    assert np.isnan(found.interaction("a", "b")[1])
    again = Attribution.from_json(json.loads(json.dumps(found.to_json(), sort_keys=True)))
    assert list(again.scores) == list(found.scores)
    assert str(again.table()) == str(found.table())
    with pytest.raises(UnknownNameError, match="factor"):
        found.costs("c")


def test_the_contacts_of_the_episodes_are_named():
    short = {"episodes": 1, "max_steps": 2, "contact": "convex"}
    found = attribute("random", "trifinger/pushing-v1", ["block_0/mass"], **short)
    assert found.to_json()["engine"]["contact"] == "convex"
    assert "Played on MuJoCo with convex contacts." in Attribution.from_json(found.to_json()).page()


def test_episodes_are_the_same_whatever_else_is_asked():
    few = attribute("random", SLIDER, ["push"], episodes=3, max_steps=5)
    more = attribute("random", SLIDER, ["box/mass", "push"], episodes=4, max_steps=5, pairs=0)
    np.testing.assert_array_equal(few.scores[()], more.scores[()][:3])
    np.testing.assert_array_equal(few.scores[("push",)], more.scores[("push",)][:3])


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("trifinger/pushing-v1", {"max_steps": 3}),
        ("blocks/unobserved-3-v1", {"max_steps": 3}),
        ("chemistry/chain-v1", {"max_steps": 3}),
        ("rooms/single-v1", {"image_size": 24}),
        ("control/reacher_easy-v1", {"max_steps": 3, "observation": "state"}),
    ],
)
def test_it_works_in_every_family(task, options):
    env = iv.make(task, **options)
    env.reset(seed=0)
    drawn = [n for n, v in env.variables.items() if v.space_a is not None and not v.read_only]
    env.close()
    if not drawn:
        with pytest.raises(InvalidValueError, match="no variable"):
            attribute("random", task, episodes=2, **options)
        return
    found = attribute("random", task, drawn[:2], episodes=2, **options)
    assert np.isfinite(found.scores[()]).all()
    assert found.table()


def test_default_factors_have_the_states_and_goals_that_are_held_out():
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0)
    factors = as_factors(None, env.variables)
    env.close()
    assert factors["block:latent"]["block_0/mass"] == "B"
    assert factors["goal"] == {"goal_0/size": "B", "goal_0/cylindrical_position": "B"}
    assert factors["goal:appearance"] == {"goal_0/color": "B"}
    assert factors["block:state"] == {"block_0/cylindrical_position": "B"}
    assert factors["joint_positions"] == {"joint_positions": "B"}
    env = iv.make("chemistry/chain-v1")  # its states have a space to train in and no other
    env.reset(seed=0)
    kinds = {env.variables[n].kind for f in as_factors(None, env.variables).values() for n in f}
    env.close()
    assert not kinds & {"state", "goal"}


def test_what_has_no_published_space_is_drawn_from_its_domain():
    task, short = "blocks/unobserved-3-v1", {"max_steps": 2}
    found = attribute("random", task, ["block_*/weight"], episodes=2, **short)
    assert "`block_2/weight` (domain)" in found.page()
    asked = attribute("random", task, {"w": {"block_*/weight": "domain"}}, episodes=2, **short)
    assert list(asked.factors["w"].values()) == ["domain"] * 3
    np.testing.assert_array_equal(
        asked.scores[("w",)], found.scores[("block_*/weight",)], "drawn at the same addresses"
    )
    env = iv.make(task)
    env.reset(seed=0)
    given = {"some": "block_0/*", "one": ["block_1/shape", "block_1/position"], "w": "*/weight"}
    named = as_factors(given, env.variables)
    env.close()
    assert named["one"] == {"block_1/shape": "B", "block_1/position": "domain"}
    assert "domain" not in named["some"].values(), "some of them have a published space"
    assert len(named["w"]) == 3


@pytest.mark.parametrize(
    ("factors", "error", "match"),
    [
        (["box/weigth"], UnknownNameError, "box/weigth"),
        ({"a": "box/mass", "b": "box/*"}, InvalidValueError, "belongs to the factors"),
        ({"a": {"box/mass": "C"}}, InvalidValueError, "region of box/mass.*A, B, A_B, domain"),
    ],
)
def test_mistakes(factors, error, match):
    with pytest.raises(error, match=match):
        attribute("random", SLIDER, factors, episodes=2)


@pytest.mark.parametrize(
    ("policy", "own", "other"),
    [
        ("cartpole_balance_small", "control/cartpole_balance-v1", "control/walker_walk-v1"),
        ("reaching_1", "trifinger/reaching-v1", "trifinger/picking-v1"),
    ],
)
def test_a_policy_of_another_task_is_told_so(policy, own, other, capsys):
    for words in (["explain", policy], ["evaluate", policy, "--protocols", "train"]):
        words = ["P0" if w == "train" and "trifinger" in other else w for w in words]
        assert main([*words, "--task", other, "--episodes", "1"]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"the policy was trained for {own} and cannot act in {other}" in told


def test_the_command_line(tmp_path, capsys):
    words = ["explain", "random", "--task", SLIDER, "--episodes", "3", "--option", "max_steps=4"]
    asked = [*words, "--factors", "push", "box=box/mass,box/size", "--out", str(tmp_path)]
    assert main(asked) == 0
    out = capsys.readouterr().out
    held = json.loads((tmp_path / "attribution.json").read_text())
    assert Attribution.from_json(held).verdict() in " ".join(out.split())
    assert held["order"] == ["push", "box"]
    assert (tmp_path / "attribution.svg").stat().st_size > 2000
    assert main(["explain", "random"]) == 2
    assert "--task" in capsys.readouterr().err


def test_a_shipped_policy_is_evaluated_explained_and_read_about(tmp_path):
    """What a researcher does first, with few and short episodes."""
    policy = trained_policy("cartpole_balance_small")
    short = {"max_steps": 3, "quality": "fast"}
    scores = iv.evaluate(policy, CARTPOLE, "train,pictures_b", episodes=2, **short)
    assert scores.scores("return").shape == (4,)
    looks = {"pictures": "*/texture", "light": "light/*"}
    found = iv.attribute(policy, CARTPOLE, looks, episodes=2, **short)
    page = found.page()
    assert page.startswith(f"# Why it fails: {CARTPOLE}\n")
    assert found.verdict() in page
    assert "over 2 episodes" in page
    assert "- pictures: `background/texture` (B), `floor/texture` (B)" in page
    words = ["--factors", "pictures=*/texture", "--episodes", "1", "--out", str(tmp_path)]
    assert main(["explain", str(policy), *words, "--option", "max_steps=2"]) in (0, None)
    assert (tmp_path / "attribution.md").read_text().startswith("# Why it fails")


def _of(**costs):
    """Returns an attribution of episodes that score 100, less these costs."""
    count = len(next(iter(costs.values())))
    scores = {(name,): 100.0 - np.array(lost, float) for name, lost in costs.items()}
    factors = {name: {"x": "B"} for name in costs}
    given = {(): np.full(count, 100.0), **scores}
    return Attribution(task="t", metric="return", factors=factors, scores=given)


@pytest.mark.parametrize(
    ("name", "variables", "label"),
    [
        ("block:latent", ["block_0/mass", "block_0/size"], "block: mass, size"),
        ("finger:latent", ["finger_0/upper/mass", "finger_1/upper/mass"], "finger: mass"),
        ("box/color", ["box/color"], "box/color"),
        ("gravity", ["gravity"], "gravity"),
        ("sky", ["background/texture", "background/color"], "sky"),
    ],
)
def test_a_factor_is_named_by_what_it_moves(name, variables, label):
    factors = {name: dict.fromkeys(variables, "B")}
    scores = {(): np.ones(2), (name,): np.zeros(2)}
    found = Attribution(task="t", metric="return", factors=factors, scores=scores)
    assert found.label(name) == label
    assert label in str(found.table())


def test_a_page_says_that_episodes_score_alike():
    factors = {"a": {"x": "B"}}
    for scores, alike in (([1.0, 1.0, 1.0], True), ([1.0, 0.9, 1.0], False), ([1.0], False)):
        held = {(): np.array(scores), ("a",): np.array(scores) / 2}
        found = Attribution(task="t", metric="return", factors=factors, scores=held)
        assert ("the same in each" in found.page()) is alike


@pytest.mark.parametrize(
    ("costs", "verdict", "said", "unsaid"),
    [
        (
            {"a": [0, -3, 4, 0]},
            "That it costs anything is not certain.",
            [
                "Of no factor is it certain that it costs less than one percent.",
                "Student's t of the differences",
            ],
            [],
        ),
        (
            {"a": [-1, -2, 0], "b": [-4, -4, -5]},
            "No factor costs anything on average.",
            [],
            ["costs most"],
        ),
        (
            {"a": [5], "b": [3]},
            "a costs most: 5, 5% of it. One episode has no interval: it may be chance.",
            ["(one episode: no interval)"],
            ["nan", "No more than one percent"],
        ),
        (
            {"a": [5, 5, 5], "b": [0, 0, 0]},
            "a costs most: 5, 5% of it. As much in every episode: it has no interval.",
            ["Nothing changes in any of 3 episodes under: b."],
            ["No more than one percent"],
        ),
        ({"a": [np.nan] * 2}, "Every intervention was refused, so no cost is known.", [], []),
        ({"a": [np.nan] * 2, "b": [3, 2]}, "b costs most: 2.5", [], []),
    ],
    ids=["unsure", "gain", "one episode", "equal", "refused", "one refused"],
)
def test_nothing_is_said_of_costs_that_the_episodes_do_not_show(costs, verdict, said, unsaid):
    found = _of(**costs)
    assert verdict in found.verdict()
    for text in (verdict, *said):
        assert text in found.page()
    assert not any(text in found.page() for text in unsaid)


def test_the_costliest_is_told_from_the_next_by_paired_differences():
    first, second = np.array([30, 5, 60, 20]), np.array([25, 1, 53, 16])
    assert "b" not in _of(a=first, b=second).verdict().split(":")[1]  # alike in every episode
    found = _of(a=first, b=second[::-1])
    theirs = stats.ttest_rel(first, second[::-1]).confidence_interval(0.95)
    assert found.lead("a", "b").low == pytest.approx(theirs.low)
    assert found.lead("a", "b").high == pytest.approx(theirs.high)
    ends = f"[{theirs.low:.4g}, {theirs.high:.4g}]"
    assert f"; b may cost as much: the difference {ends} includes 0." in found.verdict()


def test_every_factor_that_may_cost_as_much_is_named():
    costs = {"a": [30, 35, 36, 31], "b": [16, 53, 1, 35], "c": [1, 40, 2, 50], "d": [0, 1, 0, 1]}
    found = _of(**costs, e=[np.nan] * 4)  # the last one was refused
    assert "; b, c may cost as much (at 95%" in found.verdict()
    assert "Replayed with one factor changed, all else equal: a costs most" in found.page()


@pytest.mark.parametrize("factors", [5, 20])
def test_the_largest_of_equal_costs_is_seldom_called_the_largest(factors):
    """Without a correction some factor was surely cheaper in 29% and 89% of cases."""
    rng, wrong = np.random.default_rng(0), 0
    for costs in rng.normal(20.0, 5.0, (200, factors, 20)):
        found = _of(**{f"f{i}": row for i, row in enumerate(costs)})
        wrong += len(found.may_cost_most()) < factors
    assert wrong / 200 < 0.08


def test_leads_are_corrected_over_all_pairs_and_the_verdict_says_so():
    a, b, c = np.array([[30, 35, 36, 31], [16, 53, 1, 35], [0, 1, 0, 1]])
    theirs = stats.ttest_rel(a, b).confidence_interval(1 - 0.05 / 3)
    found = _of(a=a, b=b, c=c)
    assert found.lead("a", "b").low == pytest.approx(theirs.low)
    assert found.verdict().endswith("includes 0 (at 95% for all 3 pairs of factors together).")
    alone = _of(a=a, c=c, d=c / 2).verdict()
    assert alone.endswith(
        ", more than each other factor at 95% for all 3 pairs of factors together."
    )


@pytest.mark.parametrize("episodes", [4, 8])
def test_intervals_of_few_episodes_cover_what_they_say(episodes):
    """A bootstrap of 4 or 8 normal differences covered 84% and 87%."""
    costs = np.random.default_rng(0).normal(3.0, 10.0, (2000, episodes))
    found = [_of(a=row).cost("a") for row in costs]
    assert 0.93 < np.mean([cell.low <= 3.0 <= cell.high for cell in found]) < 0.97
    theirs = stats.ttest_1samp(costs[0], 0.0).confidence_interval(0.95)
    assert (found[0].low, found[0].high) == pytest.approx((theirs.low, theirs.high))


def test_a_policy_that_scores_nothing_shows_no_cost():
    scores = {key: np.zeros(4) for key in [(), ("mass",), ("gravity",)]}
    factors = {"mass": {"x": "B"}, "gravity": {"y": "B"}}
    found = Attribution(task="t", metric="success", factors=factors, scores=scores)
    assert "scores nothing as it is, so no cost can be seen" in found.verdict()
    for text in (found.page(), str(found.table())):
        assert "[0.000, 0.000]" not in text
        assert "one percent" not in text
    assert "over 4 episodes. The policy scores nothing as it is" in found.page()
    lower = scores | {("mass",): np.array([0.0, -1.0, -2.0, -1.0])}  # below 0 there is a loss
    found = Attribution(task="t", metric="return", factors=factors, scores=lower)
    assert found.verdict().startswith("mass costs most: 1")


@pytest.mark.parametrize("factors", [3, {"x": 3}, [3], {"x": [3]}, {"x": []}, []], ids=str)
def test_factors_that_are_no_patterns_are_refused(factors):
    with pytest.raises(InvalidValueError, match="Allowed: a pattern of variables"):
        iv.attribute("random", task=SLIDER, factors=factors, episodes=1, max_steps=1)


def test_rounding_is_no_cost():
    """A size that pure array code never reads may still change the last bit of a return."""
    wanted = {"episodes": 4, "pairs": 0, "max_steps": 10}
    found = iv.attribute("random", SLIDER, ["box/size", "box/color"], **wanted)
    assert found.verdict() == "No factor costs anything on average."
    assert "Nothing changes in any of 4 episodes under: box/size; box/color." in found.page()


def test_rounding_neither_orders_factors_nor_stands_in_a_table():
    base = np.array([100.0, 200.0, 300.0])
    noise = np.array([1e-12, 0.0, 2e-12])
    scores = {
        (): base,
        ("dust",): base - noise,
        ("gain",): base + 1.0,
        ("even",): base - np.array([0.3, -0.1, -0.2]),
        ("gain", "dust"): base + 1.0 + noise,
    }
    factors = {name: {name: "B"} for name in ("gain", "even", "dust")}
    found = Attribution(task="t", metric="return", factors=factors, scores=scores)
    assert found.costs("dust").tolist() == [0.0, 0.0, 0.0]
    assert found.cost("even").value == 0.0, "0.3 - 0.1 - 0.2 is not 0 in floating point"
    assert found.worst == "even", "the first of equals"
    assert found.lead("even", "dust").value == 0.0
    assert not found.interaction("gain", "dust").any()
    assert "e-" not in str(found.table("markdown")), "no number is rounding"


def test_bars_of_equal_costs_have_no_whisker():
    """A cap at the end of a bar would claim a certainty nobody has."""
    (panel,) = plot.costs(_of(a=[5, 7], b=[3, 3])).axes
    (whiskers,) = panel.collections
    first, second = whiskers.get_segments()
    assert np.isfinite(first).all()
    assert second.size == 0
