"""Ten kills at random moments: what is started again ends as what was never killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

KILLS = 10
EVALUATE = """
import sys, interverse as iv
iv.evaluate("random", "tutorial/slider-v1", "P0-P5", episodes=100, max_steps=40, workers={workers},
            out=sys.argv[1])
"""
COLLECT = """
import sys
from pathlib import Path
from interverse.data.generate import Collect, collect
out = Path(sys.argv[1]) / "data.h5"
collect(Collect(id="blocks/observed-3-v1", out=out, episodes=600, steps=100, images={images}))
"""
TRAIN = """
import sys
from pathlib import Path
from interverse.agents.train import Train, train
train(Train(task="trifinger/reaching-v1", out=Path(sys.argv[1]), steps=512, num_envs=2,
            checkpoint_every=64, options={{"max_steps": 20}}))
"""
CASES = {
    "evaluate": (EVALUATE.format(workers=1), ("results.parquet", "index.json")),
    "evaluate, two workers": (EVALUATE.format(workers=2), ("results.parquet", "index.json")),
    "collect": (COLLECT.format(images=False), ("data.h5",)),
    "collect pictures": (COLLECT.format(images=True), ("data.h5",)),
    "train": (TRAIN.format(), ("policy/policy.safetensors", "policy/policy.json")),
}


def run(code: str, folder: Path, kill_after: float | None = None) -> bool:
    """Runs a script; returns whether it ended by itself. A killed one takes its children along."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], start_new_session=True, stderr=subprocess.PIPE
    )
    try:
        _, told = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0, told.decode()[-2000:]
    return True


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
def test_ten_kills_change_nothing(tmp_path, name):
    code, files = CASES[name]
    if name == "train":
        pytest.importorskip("stable_baselines3")
    started = time.monotonic()
    assert run(code, tmp_path / "whole")
    whole = time.monotonic() - started
    rng = np.random.default_rng(sorted(CASES).index(name))
    killed = 0
    for trial in range(KILLS):
        folder = tmp_path / f"killed-{trial}"
        killed += not run(code, folder, rng.uniform(0.1, 1.0) * whole)
        assert run(code, folder)
        for file in files:
            ours, theirs = folder / file, tmp_path / "whole" / file
            assert ours.read_bytes() == theirs.read_bytes(), f"{file} after kill {trial}"
        assert [p.name for p in folder.rglob("*") if ".partial" in p.name] == []
    assert killed > KILLS // 2
    print(f"{name}: {killed} kills of {KILLS} runs, equal ends")
