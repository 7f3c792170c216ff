"""Policies and metrics that a script defines, without a guard, work in other processes."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import numpy as np
import interverse as iv

GAIN = 0.5

class Still:
    def __call__(self, seen):
        return np.full((len(seen), 2), GAIN, np.float32)

def effort(steps):
    return float(np.abs(steps.actions).sum())

settings = dict(task="tutorial/slider-v1", protocols="P0", episodes=60, max_steps=3)
one = iv.evaluate(Still(), metrics=[effort], **settings)
inner = lambda seen: Still()(seen)
two = iv.evaluate(POLICY, metrics=[effort], workers=2, experiment="Still", **settings)
assert one.data.equals(two.data)
print("ran")
"""


def test_a_script_without_a_guard_uses_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("POLICY", "Still()"))
    for words in ([str(script)], ["-c", SCRIPT.replace("POLICY", "inner")]):
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=140)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout == "ran\n", "the script ran once"
