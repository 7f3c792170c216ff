"""Scores of predictions: against scikit-learn and SciPy, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import interverse as iv
from interverse.core.errors import InvalidValueError


def table(seeds=4, rows=200):
    rng = np.random.default_rng(0)
    verb = rng.integers(0, 7, seeds * rows)
    guess = np.where(rng.random(len(verb)) < 0.7, verb, rng.integers(0, 7, len(verb)))
    return {
        "verb": verb,
        "prediction": guess,
        "set": np.where(rng.random(len(verb)) < 0.5, "ID", "OOD"),
        "seed": np.repeat(np.arange(seeds), rows),
    }


def test_scores_are_those_of_scikit_learn_and_scipy():
    given = table()
    found = iv.score_pairs(pd.DataFrame(given))
    for name in ("ID", "OOD"):
        rows = given["set"] == name
        verb, guess = given["verb"][rows], given["prediction"][rows]
        assert found[name]["balanced"] == pytest.approx(balanced_accuracy_score(verb, guess))
        runs = [
            accuracy_score(verb[given["seed"][rows] == s], guess[given["seed"][rows] == s])
            for s in range(4)
        ]
        assert found[name]["accuracy"] == pytest.approx(np.mean(runs))
        ends = stats.t.interval(0.95, 3, np.mean(runs), stats.sem(runs))
        assert (found[name]["low"], found[name]["high"]) == pytest.approx(ends)
        assert found[name]["pairs"] == max(rows[given["seed"] == s].sum() for s in range(4))
        assert found[name]["seeds"] == 4


def test_seeds_do_not_multiply_pairs_and_equal_ones_have_no_interval():
    one = {"prediction": ["a", "b", "a", "b"], "verb": ["a", "b", "b", "b"], "set": ["ID"] * 4}
    three = {name: column * 3 for name, column in one.items()}
    found = iv.score_pairs(three | {"seed": np.repeat([0, 1, 2], 4)})["ID"]
    alone = iv.score_pairs(one)["ID"]
    assert alone == {
        "pairs": 4,
        "accuracy": 0.75,
        "balanced": pytest.approx(5 / 6),
        "constant": 0.75,
    }
    assert found == alone | {"seeds": 3}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"verb": ["open"]}, "shapes"),
        ({"prediction": ["open", None]}, "no value in row 1"),
        ({"prediction": ["open", float("nan")]}, "no value|names"),
        ({"prediction": np.array(["open", 1], dtype=object)}, "names and numbers"),
        ({"prediction": ["Open", "close"]}, "Write 'open'"),
        ({"prediction": [0, 1]}, "names in one, numbers in the other"),
        ({"prediction": [0.0, np.nan], "verb": [0, 1]}, "no value in row 1"),
        ({"seed": [0, np.nan]}, "seed has no value in row 1"),
        ({"set": ["ID", None]}, "set has no value in row 1"),
    ],
)
def test_gaps_and_misspelt_actions_are_told_not_counted_as_wrong(changed, told):
    table = {"prediction": ["open", "close"], "verb": ["open", "close"], "set": ["ID", "OOD"]}
    with pytest.raises(InvalidValueError, match=told):
        iv.score_pairs(table | changed)


@pytest.mark.parametrize("table", [5, None, [{"verb": 1}], {"verb": [], "prediction": []}])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(InvalidValueError, match=r"columns by name|lacks set"):
        iv.score_pairs(table)
