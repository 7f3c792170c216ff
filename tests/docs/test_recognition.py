"""The results on the page of recognition are what the rows say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_page_of_recognition_is_printed_from_the_rows():
    tool = ROOT / "tools" / "recognition_page.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python tools/recognition_page.py"
