"""No path of the package unpickles, evaluates text or loads Torch files that may hold code."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import interverse
from interverse.cli import main

SOURCES = sorted(Path(interverse.__file__).parent.rglob("*.py"))
SPOKEN = re.compile(
    r"(?<![\w.])(pickle\.loads?|pickle\.Unpickler|cloudpickle\.loads?|joblib\.load|dill\.|marshal\."
    r"|eval|exec|torch\.load|jit\.load|allow_pickle=True|yaml\.(?:unsafe_)?load)\s*\(?"
)
# Between processes of one run: bytes that the first one made and sent, never a file's.
ALLOWED = {
    ("rollouts/executors.py", "cloudpickle.loads("),
    ("rollouts/executors.py", "pickle.loads("),
}


def test_no_source_calls_what_could_run_a_files_code():
    root = Path(interverse.__file__).parent
    found = set()
    for source in SOURCES:
        for line in source.read_text().splitlines():
            code = line.partition("#")[0]
            for match in SPOKEN.finditer(code):
                spoken = match.group()
                if spoken.startswith("torch.load") and "weights_only=True" in code:
                    continue
                if not spoken.endswith("(") and not spoken.startswith("allow"):
                    continue  # a word of a text
                found.add((source.relative_to(root).as_posix(), spoken))
    assert found <= ALLOWED


HOOK = """
import builtins, pickle, sys
import interverse.agents.train, interverse.cli.report, interverse.viewer.server  # what they import
import torch, stable_baselines3, matplotlib.pyplot, imageio.v3

def forbid(name):
    def called(*args, **kwargs):
        raise AssertionError(f"{name} was called")
    return called

pickle.load = pickle.loads = forbid("pickle")
class Unpickler(pickle._Unpickler):  # still a class: libraries derive theirs when imported
    load = forbid("Unpickler")
pickle.Unpickler = pickle._Unpickler = Unpickler
load = torch.load
def only_weights(*args, weights_only=None, **kwargs):
    assert weights_only is True, "torch.load without weights_only"
    return load(*args, weights_only=True, **kwargs)
torch.load = only_weights
"""

WORK = """
import pathlib
import interverse as iv
from interverse.cli import main
from interverse.viewer.server import Viewer
from interverse.viewer.session import Session

folder = pathlib.Path(sys.argv[1])
task = "trifinger/pushing-v1"
model = stable_baselines3.PPO("MlpPolicy", iv.make(task), device="cpu")
model.save(folder / "model.zip")
words = ["--task", task, "--option", "max_steps=3", "--protocols", "P0", "--episodes", "1"]
saved = str(folder / "model.zip")
for _ in range(2):
    assert main(["evaluate", *words, "--policy", saved, "--out", str(folder / "e")]) == 0
assert main(["report", str(folder / "e")]) == 0
named = ["--policy", f"model={saved}", "--out", str(folder / "r")]
assert main(["report", str(folder / "e"), *named]) == 0
train = ["train", "--task", task, "--out", str(folder / "t"), "--checkpoint-every", "8"]
train += ["--num-envs", "2", "--evaluate-episodes", "0", "--option", "max_steps=3"]
assert main([*train, "--steps", "16"]) == 0
assert main([*train, "--steps", "32"]) == 0
sweep = folder / "sweep.yaml"
flags = "steps: 16, num_envs: 2, evaluate_episodes: 0, option: {max_steps: 3}"
sweep.write_text(f"tasks: [{task}]\\ntrain: {{{flags}}}\\nevaluate: {{protocols: P0, episodes: 1}}")
for _ in range(2):
    assert main(["sweep", str(sweep), "--out", str(folder / "s")]) == 0
session = Session(task, policy=saved, max_steps=3)
session.step()
session.close()
"""


@pytest.mark.slow
def test_nothing_is_unpickled_on_any_path(tmp_path):
    pytest.importorskip("stable_baselines3")
    done = subprocess.run(
        [sys.executable, "-c", HOOK + WORK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_evaluate_report_and_resume_unpickle_nothing(tmp_path, monkeypatch):
    def forbidden(*_args, **_kwargs):
        pytest.fail("unpickled")

    out = str(tmp_path / "e")
    words = ["--task", "tutorial/slider-v1", "--protocols", "P0", "--episodes", "2"]
    assert main(["evaluate", *words, "--option", "max_steps=3", "--out", out]) == 0
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    assert main(["evaluate", *words, "--option", "max_steps=3", "--out", out]) == 0
    assert main(["report", out, "--no-episodes"]) == 0


def test_a_report_opens_no_policy_that_results_name(tmp_path, monkeypatch):
    """Neither an archive nor any other path: the reader must name it."""
    from dataclasses import replace

    import interverse as iv
    from interverse.rollouts import policy

    results = iv.evaluate("random", "tutorial/slider-v1", "P0", episodes=2, max_steps=3)
    (run,) = results.provenance["runs"]
    trap = tmp_path / "evil.zip"
    trap.write_bytes(b"PK")
    runs = [{**run, "source": str(trap), "policy": None}]
    (tmp_path / "e").mkdir()
    named = replace(results, provenance={**results.provenance, "runs": runs})
    named.to_parquet(tmp_path / "e" / "results.parquet")
    monkeypatch.setattr(policy, "load_policy", lambda path: pytest.fail(f"opened {path}"))
    assert main(["report", str(tmp_path / "e")]) == 0
    page = (tmp_path / "e" / "report" / "index.html").read_text()
    assert "its policy is not where it was, or has changed; pass --policy" in page
