"""Imports point one way, and `import interverse` is light and leaves no trace but its ids."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.outcomes import Skipped

from interverse.core.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[1]
HEAVY = [
    "dm_control",
    "h5py",
    "imageio",
    "matplotlib",
    "mujoco",
    "mujoco_warp",
    "networkx",
    "pandas",
    "pyarrow",
    "ray",
    "rich",
    "scipy",
    "stable_baselines3",
    "tensorboard",
    "torch",
    "tyro",
    "viser",
    "warp",
]

TRACES = """
import contextlib, io, json, logging, os, sys, warnings
import gymnasium, numpy
def traces():
    return {
        "environment": dict(os.environ),
        "filters": [str(entry) for entry in warnings.filters],
        "handlers": [str(handler) for handler in logging.getLogger().handlers],
        "random": str(numpy.random.get_state()),
        "path": list(sys.path),
    }
before, ids, said = traces(), set(gymnasium.registry), io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    import interverse
after = traces()
print(json.dumps({
    "changed": [name for name in before if before[name] != after[name]],
    "said": said.getvalue(),
    "lost": sorted(ids - set(gymnasium.registry)),
    "added": {i: str(gymnasium.registry[i].entry_point) for i in set(gymnasium.registry) - ids},
}))
"""


def _run(code: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


def test_import_loads_nothing_heavy() -> None:
    code = "import json, sys, interverse; print(json.dumps(sorted(sys.modules)))"
    loaded = _run(code)
    assert isinstance(loaded, list)
    assert "interverse" in loaded
    assert sorted(set(HEAVY).intersection(loaded)) == []


def test_import_leaves_no_trace_but_lazy_ids() -> None:
    report = _run(TRACES)
    assert isinstance(report, dict)
    assert (report["changed"], report["said"], report["lost"]) == ([], "", [])
    assert report["added"]
    assert {target.partition(".")[0] for target in report["added"].values()} == {"interverse"}


@pytest.mark.parametrize(
    "module", ["interverse.core.errors", "interverse.scm", "interverse.worlds"]
)
def test_lower_layers_load_no_simulator(module: str) -> None:
    loaded = _run(f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))")
    assert isinstance(loaded, list)
    assert {"mujoco", "torch", "ray", "warp"}.isdisjoint(loaded)


def test_every_test_file_can_be_imported(request):
    """A file that cannot is skipped in silence, for doctests allow for missing extras."""
    collected, broken = {item.path for item in request.session.items}, []
    for path in sorted(set(Path(__file__).parent.rglob("test_*.py")) - collected):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        sys.modules.pop(name, None)  # pytest leaves a module there that broke off half-way
        try:
            importlib.import_module(name)
        except ImportError as error:
            if not isinstance(error, MissingExtraError):
                broken.append(f"{name}: {error}")
        except Skipped:
            continue  # of pytest.importorskip
    assert not broken
