"""The results on the page of recognition are what the rows say."""

from __future__ import annotations

import pytest

from tools import recognition_page


def test_the_page_of_recognition_is_printed_from_the_rows():
    assert recognition_page.main(["--check"]) == 0, "run: python tools/recognition_page.py"


def test_a_row_that_says_otherwise_than_its_table_is_noticed(monkeypatch):
    read = recognition_page._read

    def changed(folder):
        rows = read(folder)
        for row in rows if folder.parent.name == "lite0-both" else ():
            if row["variant"] == "single.compositional.vanilla":
                row["selection"]["best_valid"]["test_ood"] -= 0.1
        return rows

    monkeypatch.setattr(recognition_page, "_read", changed)
    with pytest.raises(ValueError, match="lite0-both: the table says"):
        recognition_page.printed()
