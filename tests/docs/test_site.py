"""The documentation site builds without a warning, and its gallery shows every world."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from interverse.worlds import WORLDS
from tests.docs.test_pages import ROOT


@pytest.mark.timeout(600)
def test_the_site_builds_in_strict_mode(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    gallery = (tmp_path / "gallery.html").read_text()
    own = [n for n in WORLDS if WORLDS[n].target.startswith("interverse.") and n[:4] != "lab/"]
    assert all(name in gallery for name in own)
    assert len(list((tmp_path / "gallery").glob("*.png"))) >= len(own)
    assert len(list((tmp_path / "gallery").glob("*.svg"))) >= len(own)
    assert "mermaid" not in gallery, "the browser would fetch its script from elsewhere"
    api = (tmp_path / "api.html").read_text()
    assert all(f"interverse.{name}" in api for name in ("envs.make.make", "scm.Variable"))
