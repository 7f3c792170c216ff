"""The printed numbers are all there, and what is asked for is understood."""

from __future__ import annotations

import math

import pytest

from interverse.benchmarks.causalmbrl.settings import TABLES, Settings, deviation, printed
from interverse.core.errors import InvalidValueError, UnknownNameError


def test_every_number_of_the_sixteen_tables_is_there():
    assert sum(len(printed(number)) for number in TABLES) == 1404
    assert all(entry["world"] in TABLES[n][1] for n in TABLES for entry in printed(n))


def test_a_printed_spread_is_a_deviation_but_for_chemistry_where_it_is_a_variance():
    assert all(deviation(3, entry) == entry.spread for entry in printed(3))
    for number in (17, 18):
        for entry in printed(number):
            if entry.spread is not None:
                assert deviation(number, entry) == pytest.approx(math.sqrt(entry.spread))


def test_read_as_deviations_a_chemistry_spread_would_be_impossible():
    # Three non-negative numbers of mean m have a population deviation of at most m * sqrt(2).
    mrr = [e for e in printed(17) if e["metric"] == "MRR"]
    impossible = [e for e in mrr if e.spread > e.value * math.sqrt(2)]
    assert impossible
    assert all(deviation(17, e) <= e.value * math.sqrt(2) for e in impossible)


def test_tables_share_the_models_of_their_world():
    together = Settings(table=(3, 9, 15))
    assert together.rows() == Settings(table=(3,)).rows()
    assert together.kinds("blocks/observed-3-v1") == ("planning", "ranking", "zero_shot")
    assert len(together.rows()) == 7


def test_rows_can_be_chosen():
    chosen = Settings(table=(17, 18), graphs=("chain",), models=("ae", "modular"))
    assert [(row.world, row.model, row.loss) for row in chosen.rows()] == [
        ("chemistry/chain-v1", "ae", "nll"),
        ("chemistry/chain-v1", "modular", "nll"),
    ]


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"table": (2,)}, UnknownNameError, "unknown table '?2"),
        ({"models": ("rim",)}, UnknownNameError, "rim"),
        ({"losses": ("mse",)}, UnknownNameError, "mse"),
        ({"table": (17,), "graphs": ("tree",)}, UnknownNameError, "tree"),
        ({"table": ()}, InvalidValueError, "at least one table"),
        ({"seeds": 0}, InvalidValueError, "seeds is 0"),
        ({"models": ("vae",), "losses": ("contrastive",)}, InvalidValueError, "no row"),
    ],
)
def test_what_cannot_be_had_is_refused(wrong, error, told):
    with pytest.raises(error, match=told):
        Settings(**wrong)


def test_an_unknown_table_names_the_known_ones():
    with pytest.raises(UnknownNameError, match="18"):
        printed(19)
