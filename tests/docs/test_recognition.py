"""The results on the page of recognition are what the rows say."""

from __future__ import annotations

from tools import recognition_page


def test_the_page_of_recognition_is_printed_from_the_rows():
    assert recognition_page.main(["--check"]) == 0, "run: python tools/recognition_page.py"
