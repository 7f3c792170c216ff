"""Tables: their numbers against numpy and scipy, their text in four formats."""

import io

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.results import Results, tables
from interverse.results.comparisons import comparisons
from interverse.results.text import Estimate, TextTable
from tests.results import synthetic
from tests.results.synthetic import ends, read_csv, row, width

_R, _LAST = "return", "last_fractional_success"


def test_scores_are_the_means_of_what_was_scored():
    results = synthetic.results(episodes=200, refuse=(0, 1))
    rows = {row["protocol"]: row for row in read_csv(tables.scores(results))}
    assert [int(rows["P2"][n]) for n in ("scored", "refused")] == [198, 2]
    part = results.select(protocol="P2").scores(_LAST)
    known = part[~np.isnan(part)]
    assert float(rows["P2"][_LAST]) == pytest.approx(known.mean())
    low, high = stats.bootstrap((known,), np.mean, method="BCa", rng=1).confidence_interval
    assert ends(rows["P2"], _LAST) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_a_row_depends_on_its_own_episodes_alone():
    results = synthetic.results()
    whole = {row["protocol"]: row for row in read_csv(tables.scores(results))}
    (alone,) = read_csv(tables.scores(results.select(protocol="P3")))
    assert whole["P3"] == alone


def test_seeds_as_units_see_the_spread_between_seeds():
    rows = [row | {"seed": s} for s in range(5) for row in synthetic.rows(0.5 + 0.1 * s)]
    results = Results.from_rows(rows).select(protocol="P0")
    (by_seed,) = read_csv(tables.scores(results, unit="seed"))
    (by_episode,) = read_csv(tables.scores(results, unit="episode"))
    assert by_seed[_LAST] == by_episode[_LAST]
    assert width(by_seed, _LAST) > 2 * width(by_episode, _LAST)
    means = [results.select(seed=s).scores(_LAST).mean() for s in range(5)]
    known = stats.t.interval(0.95, 4, np.mean(means), stats.sem(means))
    found = tables.estimates(results, _LAST, unit="seed")
    assert [(e.low, e.high) for e in found.values()] == [pytest.approx(known)]
    with pytest.raises(InvalidValueError, match=r"unknown unit 'run'.*episode, seed"):
        results.table(unit="run")


def test_infinite_scores_are_shown_by_their_median():
    times = [1.0, 2.0, 3.0, np.inf, np.inf]
    results = Results.from_rows(
        row(task="t", episode=i, **{"score:time_to_success": t}) for i, t in enumerate(times)
    )
    scores, all_of_them = tables.scores(results), tables.aggregates(results, "time_to_success")
    (shown,), (total,) = read_csv(scores), read_csv(all_of_them)
    assert float(shown["time_to_success"]) == 3.0
    assert shown["time_to_success_statistic"] == total["mean_statistic"] == "median"
    assert (float(total["mean"]), float(total["median"])) == (3.0, 3.0), "one rule for both tables"
    assert total["scored"] == "5"
    for table in (scores, all_of_them):
        assert "3.000 [1.000, inf] median" in table.render("markdown")
        assert r"$3.000$ {\scriptsize $[1.000, inf]$ median}" in table.render("latex")
        assert "median, not mean, where a score is infinite" in table.caption


def test_finite_scores_have_no_word_of_medians():
    for table in (tables.scores(synthetic.results()), tables.aggregates(synthetic.results(), _R)):
        assert "not mean" not in table.caption
        assert not any(name.endswith("_statistic") for name in read_csv(table)[0])


def test_an_infinite_score_of_one_seed_leaves_the_median_of_the_seeds():
    times = {0: [1.0, 2.0, 9.0], 1: [4.0, 5.0, np.inf], 2: [7.0, 8.0, 9.0]}
    rows = [row(seed=s, episode=e, **{_R: t}) for s, of in times.items() for e, t in enumerate(of)]
    (found,) = tables.estimates(Results.from_rows(rows), _R).values()
    assert (found.value, found.statistic) == (5.0, "median")
    (total,) = read_csv(tables.aggregates(Results.from_rows(rows), _R))
    assert (float(total["mean"]), total["mean_statistic"]) == (5.0, "median")


def _trained(means=(-5.81, -14.73, -22.80), *, policies=None, episodes=50):
    """Several trainings of one method, each with its own luck; without runs nobody knows more."""
    rng = np.random.default_rng(0)
    rows = [
        row(experiment="ppo", protocol=p, seed=s, episode=e, **{_R: mean + drawn})
        for p in ("P0", "P1")
        for s, mean in enumerate(means)
        for e, drawn in enumerate(rng.normal(size=episodes))
    ]
    runs = [{"experiment": "ppo", "task": rows[0]["task"], "policy": p} for p in policies or ()]
    return Results.from_rows(rows, {"runs": runs} if runs else {})


def test_several_trainings_have_intervals_over_their_seeds():
    results = _trained(policies=("a", "b", "c"))
    table = tables.scores(results)
    means = [results.select(seed=s, protocol="P0").scores(_R).mean() for s in range(3)]
    known = stats.t.interval(0.95, 2, np.mean(means), stats.sem(means))
    first = read_csv(table)[0]
    assert ends(first, _R) == pytest.approx(known)
    assert first["by"] == "seed (3)"
    assert "over seeds, Student's t" in table.caption
    assert "over the scored episodes" not in table.caption
    assert results.table("csv") == results.table("csv", unit="seed")
    total = tables.aggregates(results, _R)
    (shown,) = read_csv(total)
    means = [results.select(seed=s).scores(_R).mean() for s in range(3)]
    known = stats.t.interval(0.95, 2, np.mean(means), stats.sem(means))
    assert ends(shown, "mean") == pytest.approx(known)
    assert width(shown, "median") > 20
    assert "over seeds, Student's t" in total.caption


def test_one_policy_with_several_seeds_stays_with_episodes():
    results = _trained(policies=("a",))
    (shown, _), table = read_csv(tables.scores(results)), tables.scores(results)
    assert width(shown, _R) < 5
    assert "by" not in shown
    assert "over the scored episodes" in table.caption


def test_a_table_of_both_says_whose_intervals_are_over_what():
    alone = _trained((-3.0,), policies=("d",)).named("random")
    table = tables.scores(Results.concat([_trained(policies=("a", "b", "c")), alone]))
    assert {row["experiment"]: row["by"] for row in read_csv(table)} == {
        "ppo": "seed (3)",
        "random": "episode",
    }
    assert "random: mean [" in table.caption
    assert "ppo: mean of the seeds' means [" in table.caption


def test_generalisation_errors_of_trainings_are_over_seeds():
    rows = [
        row(protocol=p, seed=s, episode=e, **{_R: mean * share + 0.01 * e})
        for s, (mean, kept) in enumerate([(90.0, 0.9), (80.0, 0.5), (100.0, 0.2)])
        for p, share in (("P0", 1.0), ("P1", kept))
        for e in range(20)
    ]
    table = tables.generalisation_errors(Results.from_rows(rows), _R)
    (shown,) = read_csv(table)
    told = "three trainings that keep 90%, 50% and 20% tell little"
    assert width(shown, "generalisation error") > 1, told
    assert "over seeds" in table.caption


def _scored(protocol, scores, experiment="policy"):
    about = {"protocol": protocol, "experiment": experiment}
    return [
        row(episode=i, trace=f"{protocol}{i}", **about, **{_R: s}) for i, s in enumerate(scores)
    ]


@pytest.mark.parametrize("format", ["rich", "markdown"])
def test_equal_scores_have_no_interval_and_the_table_says_so(format):
    """Twenty looks of one start, and a policy that sees none: one return, twenty times."""
    said = "no interval where all scores are equal"
    rows = _scored("none", [704.3] * 20) + _scored("looks", [704.3] * 20)
    other = _scored("none", [700.3] * 20, "other") + _scored("looks", [650.3] * 20, "other")
    results = Results.from_rows(rows + other)
    made = [
        tables.scores(results),
        tables.aggregates(results, _R),
        tables.generalisation_errors(results, _R),
        comparisons(results, _R),
    ]
    assert all("rough below some 20" in table.caption for table in made[:3])
    for table in made:
        text = " ".join(table.render(format).split())
        assert said in text
        assert not any(isinstance(c, Estimate) and c.low == c.high for r in table.rows for c in r)
        assert "[704.3" not in text
    spread = Results.from_rows(_scored("none", np.linspace(1.0, 9.0, 20)))
    assert said not in tables.scores(spread).render(format)


@pytest.mark.parametrize("format", ["rich", "markdown", "latex", "csv"])
def test_every_format_names_protocols_and_refusals(format):
    text = synthetic.results().table(format)
    assert isinstance(text, str)
    assert repr(text) == text
    for word in ("P0", "P10", "refused", "19"):
        assert word in text


def test_rich_fits_the_table_to_the_console():
    text = synthetic.results().table()
    console = Console(file=io.StringIO(), width=60)
    console.print(text)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 60 < max(map(len, text.splitlines()))
    first = text[text.index("P0") :].split()
    assert all(word.strip("[],") in printed for word in first[:5])


def test_latex_and_markdown_escape_what_they_must():
    table = TextTable(header=("a_b", "c"), rows=(("50% & more|", Estimate(0.5, 0.4, 0.6)),))
    latex = table.render("latex")
    assert r"a\_b & c \\" in latex
    assert r"50\% \& more| & $0.500$ {\scriptsize $[0.400, 0.600]$} \\" in latex
    assert latex.count(r"\begin{tabular}{lr}") == latex.count(r"\end{tabular}") == 1
    assert r"| 50% & more\| | 0.500 [0.400, 0.600] |" in table.render("markdown")


def test_unknown_formats_and_metrics_are_refused():
    with pytest.raises(InvalidValueError, match=r"unknown table format 'html'.*rich, markdown"):
        synthetic.results().table("html")
    with pytest.raises(UnknownNameError, match="unknown metric 'sucess'"):
        synthetic.results().table(metrics=["sucess"])


def test_one_episode_has_no_interval_and_none_no_number():
    results = synthetic.results(episodes=1, refuse=(0,))
    rows = {row["protocol"]: row for row in read_csv(tables.scores(results))}
    assert rows["P0"]["last_fractional_success_low"] == ""
    assert rows["P2"][_LAST] == ""
    assert "\N{EN DASH}" in results.table("markdown")


def test_aggregates_are_over_all_protocols():
    results = synthetic.results(episodes=40, refuse=())
    (row,) = read_csv(tables.aggregates(results, _LAST))
    scores = results.scores(_LAST)
    assert float(row["IQM"]) == pytest.approx(stats.trim_mean(scores, 0.25))
    assert float(row["mean_low"]) < scores.mean() < float(row["mean_high"])
    assert float(row["optimality gap"]) == pytest.approx(1 - scores.mean())


def test_comparisons_pair_the_same_episodes():
    better, worse = synthetic.results(0.9, refuse=(1,)), synthetic.results(0.8, refuse=(2,))
    both = Results.concat([better.named("a"), worse.named("b")])
    rows = {row["protocol"]: row for row in read_csv(comparisons(both, _LAST))}
    assert len(rows) == 5
    assert rows["P2"]["episodes"] == "18"  # without the two that either lacks
    difference = [float(row["last_fractional_success, difference"]) for row in rows.values()]
    assert all(0.04 < d < 0.11 for d in difference)
    assert all(row["p (Holm)"] == "< 0.001" for row in rows.values())
    same = Results.concat([better.named("a"), better.named("b")])
    assert {r["p (Holm)"] for r in read_csv(comparisons(same, _R))} == {"1.000"}


def test_refusals_are_counted_by_reason():
    (row,) = read_csv(tables.refusals(synthetic.results(refuse=(1, 2, 3))))
    assert row["reason"] == "block_0 would touch finger_1"
    assert (row["protocol"], row["episodes"]) == ("P2", "3")


def test_gaps_compare_a_and_b():
    results = synthetic.results(episodes=100)
    (gap,) = read_csv(tables.gaps(results, _LAST))
    assert gap["variable"] == "block_0/mass"
    assert float(gap["difference_low"]) > 0


def test_the_shared_bound_belongs_to_a():
    labels = tables.space_labels(
        np.array([[0.03], [0.045], [0.06], [0.2], [np.nan]]), synthetic.VARIABLES["block_0/mass"]
    )
    assert labels.tolist() == ["A", "A", "B", "", ""]


@pytest.mark.parametrize("successes", [0, 3, 8])
def test_successes_have_wilsons_interval(successes):
    """Against SciPy, and never certain of eight episodes."""
    rows = [row(episode=i, **{"score:success": float(i < successes)}) for i in range(8)]
    found = _only(rows, "success", None)
    known = stats.binomtest(successes, 8).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx(known)
    assert found.high - found.low > 0.3


def test_at_eighty_columns_headings_break_before_tables_do():
    cell = Estimate(0.25, 0.125, 0.375)
    names = [f"{kind}_fractional_success" for kind in ("last", "mean", "last20")]
    header = ("protocol", "scored", "refused", *names, "return", "success")
    rows = tuple((f"P{n}", 2, 0, *[cell] * 5) for n in range(3))
    console = Console(file=io.StringIO(), width=80)
    console.print(TextTable(header=header, rows=rows, caption="mean " * 20))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("P0") == 2
    assert text.count("0.250 [0.125, 0.375]") == 15
    assert "refused" not in text, "a column of zeros makes room"


def _only(rows, metric, unit="episode"):
    (found,) = tables.estimates(Results.from_rows(rows), metric, unit).values()
    return found


def test_repeats_count_in_the_mean_and_widen_the_interval():
    """90 identical failures and 10 distinct successes are a success of 10%, not of 91%."""
    rows = [row(episode=i, trace="same", **{"score:success": 0.0}) for i in range(90)]
    rows += [row(episode=90 + i, trace=f"{i}", **{"score:success": 1.0}) for i in range(10)]
    (shown,) = read_csv(tables.scores(Results.from_rows(rows)))
    assert (float(shown["success"]), shown["repeats"]) == (0.1, "89")
    apart = [row | {"trace": str(row["episode"])} for row in rows]
    for name in ("success", _R):  # one has Wilson's interval, the other a bootstrap's
        wide, narrow = (
            _only([row | {_R: row["score:success"]} for row in some], name)
            for some in (rows, apart)
        )
        assert wide.value == narrow.value == pytest.approx(0.1)
        assert wide.low < narrow.low < narrow.high < wide.high
    low, high = stats.binomtest(1, 10).proportion_ci(method="wilson")
    ten = [row | {"trace": str(row["episode"] % 10)} for row in rows]
    found = _only(ten, "success")
    assert (found.low, found.high) == pytest.approx((low, high))
    alone = _only(rows[:90], "success")
    assert (alone.value, np.isnan(alone.low)) == (0.0, True)


def test_repeats_count_in_every_table():
    rows = []
    for p, mass, score in (("A", 0.0, 4.0), ("B", 1.0, 2.0)):
        same = {"protocol": p, "value:mass": mass}
        rows += [row(episode=i, trace="a", **same, **{_R: 1.0}) for i in range(30)]
        more = (row(episode=30 + i, trace=f"{i}", **{_R: score + 0.01 * i}) for i in range(10))
        rows += [one | same for one in more]
    about = {"mass": {"space_a": [0.0, 0.4], "space_b": [0.6, 1.0]}}
    results = Results.from_rows(rows, {"variables": about})
    a, b = (results.select(protocol=p).scores(_R).mean() for p in "AB")
    (total,) = read_csv(tables.aggregates(results, _R))
    assert float(total["mean"]) == pytest.approx((a + b) / 2)
    (lost,) = read_csv(tables.generalisation_errors(results, "return", base="A"))
    assert float(lost["generalisation error"]) == pytest.approx((a - b) / a)
    (gap,) = read_csv(tables.gaps(results, _R))
    assert float(gap["difference"]) == pytest.approx(a - b)
    apart = Results.from_rows(
        [r | {"trace": f"{r['episode']}"} for r in rows], {"variables": about}
    )
    for make, name in ((tables.aggregates, "mean"), (tables.gaps, "difference")):
        both = [read_csv(make(some, _R))[0] for some in (results, apart)]
        assert width(both[0], name) > 1.3 * width(both[1], name)


def test_seeds_that_fail_alike_stay_apart():
    rows = [
        row(seed=s, episode=e, trace=f"{e}" if s else f"s{e}", **{_R: 0.0 if s else 1.0})
        for s in range(5)
        for e in range(4)
    ]
    (shown,) = read_csv(tables.scores(Results.from_rows(rows), unit="seed"))
    assert float(shown["return"]) == pytest.approx(0.2)
    assert float(shown["return_low"]) < 0.2 < float(shown["return_high"])


def test_every_table_has_the_same_mean():
    rows = [row(seed=0, episode=e, **{_R: 1 + 0.01 * e}) for e in range(2)]
    rows += [row(seed=1, episode=e, **{_R: 101 + 0.01 * e}) for e in range(38)]
    rows += [
        row(protocol="P1", seed=s, episode=e, **{_R: 51 + 0.01 * e})
        for s in range(2)
        for e in range(20)
    ]
    results = Results.from_rows(rows)
    train, test = (results.select(protocol=p).scores(_R).mean() for p in ("P0", "P1"))
    shown = [float(row["return"]) for row in read_csv(tables.scores(results, unit="episode"))]
    assert shown == pytest.approx([train, test])
    (lost,) = read_csv(tables.generalisation_errors(results, "return", unit="episode"))
    assert float(lost["generalisation error"]) == pytest.approx((train - test) / train)
    by_seed = [float(row["return"]) for row in read_csv(tables.scores(results, unit="seed"))]
    assert by_seed == pytest.approx([51.095, 51.095])


@pytest.mark.parametrize("best", [1.0, 0.999])
def test_the_mean_does_not_hang_on_whether_scores_are_successes(best):
    name = _LAST
    rows = [row(**{name: 0.0})]
    rows += [row(seed=1, episode=e, **{name: 1.0 if e else best}) for e in range(99)]
    assert _only(rows, name).value == pytest.approx(0.99, abs=1e-4)
    assert _only(rows, name, "seed").value == pytest.approx(0.5, abs=1e-4)
    moved = [row | {"protocol": f"P{row['seed']}"} for row in rows]
    (total,) = read_csv(tables.aggregates(Results.from_rows(moved), name, unit="episode"))
    assert float(total["mean"]) == pytest.approx(0.99, abs=1e-4)
    assert float(total["optimality gap"]) == pytest.approx(0.01, abs=1e-4)


def test_a_seed_with_one_episode_is_not_certain():
    rng = np.random.default_rng(0)
    name, scores = _LAST, rng.uniform(size=10).tolist()
    rows = [row(seed=s, **{name: score}) for s, score in enumerate(scores)]
    found = _only(rows, name)
    assert found.high - found.low > 2 * np.std(scores) / np.sqrt(10)
    more = _only([*rows, row(episode=1, **{name: scores[0] + 0.001})], name)
    assert more.high - more.low > 2 * np.std(scores) / np.sqrt(11)
    covered = 0
    for _ in range(100):
        drawn = [
            row(seed=s, episode=e, **{name: float(rng.uniform())})
            for s, n in enumerate([1, 1, 1, 1, 5])
            for e in range(n)
        ]
        found = _only(drawn, name)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 84  # 95% asked; nine episodes are few for a bootstrap


def test_a_protocol_with_one_episode_leaves_the_aggregates_without_an_interval():
    rows = [row(protocol=f"P{p}", **{_R: float(p)}) for p in range(10)]
    rows.append(row(episode=1, **{_R: 0.001}))
    (total,) = read_csv(tables.aggregates(Results.from_rows(rows), _R))
    assert float(total["mean"]) == pytest.approx(45.001 / 11)
    assert total["mean_low"] == ""


def _three_seeds(metric, scores):
    """Returns rows of three seeds from (protocol, seed) -> score; None is a refused episode."""
    rows = []
    for (protocol, seed), score in scores.items():
        told = {"refused": True, "reason": "no room"} if score is None else {metric: score}
        rows.append(row(protocol=protocol, seed=seed, **told))
    return Results.from_rows(rows)


def test_seeds_are_counted_that_have_a_score():
    results = _three_seeds("return", {("P0", 0): 1.0, ("P0", 1): None, ("P0", 2): 2.0})
    (row,) = read_csv(tables.scores(results))
    assert row["by"] == "seed (2)"


def test_intervals_over_seeds_stay_within_what_scores_can_be():
    name = _LAST
    results = _three_seeds(name, {("P0", 0): 0.1, ("P0", 1): 0.9, ("P0", 2): 0.2})
    (shown,) = read_csv(tables.scores(results))
    assert ends(shown, name) == (0.0, 1.0)
    (total,) = read_csv(tables.aggregates(results, name))
    assert {ends(total, c) for c in ("mean", "median", "IQM", "optimality gap")} == {(0.0, 1.0)}


def test_an_error_is_left_out_where_the_seeds_that_have_both_scores_earn_nothing():
    scores = {("P0", 0): -1.0, ("P0", 1): -2.0, ("P0", 2): 9.0, ("P1", 0): 1.0, ("P1", 1): 1.0}
    assert tables.generalisation_errors(_three_seeds("return", scores), _R).rows == ()


def test_aggregates_say_who_lacks_a_protocol():
    rows = [row(protocol=p, experiment="a", **{_R: 1.0}) for p in ("P0", "P1")]
    rows.append(row(experiment="b", **{_R: 2.0}))
    caption = tables.aggregates(Results.from_rows(rows), _R).caption
    assert "NOT OVER THE SAME PROTOCOLS: b lacks P1" in caption
    assert "LACKS" not in tables.aggregates(Results.from_rows(rows[:2]), _R).caption.upper()
    seeds = _three_seeds("return", {("P0", 0): 1.0, ("P0", 1): 2.0, ("P1", 0): 3.0})
    assert "seed 1 of policy lacks P1" in tables.aggregates(seeds, _R).caption


def test_comparisons_say_who_shares_no_episode():
    rows = [row(experiment=e, seed=s, **{_R: 1.0}) for s, e in enumerate("ab")]
    table = comparisons(Results.from_rows(rows), _R)
    assert table.rows == ()
    assert "a and b share no scored episode" in table.caption
