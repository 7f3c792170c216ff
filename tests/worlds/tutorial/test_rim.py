"""The slider's box stays in its declared domain, however long it is pushed."""

from __future__ import annotations

import numpy as np

import interverse as iv


def test_a_pushed_box_stays_on_the_table():
    venv = iv.make_vec("tutorial/slider-v1", 4, max_steps=400)
    venv.reset(seed=0)
    strongest = {"push": 8.0, "box/mass": 0.3, "box/friction": 0.2}
    venv.do(strongest, worlds=[2, 3])
    push = np.array([[1, 0], [-1, 1], [1, 1], [0, -1]], dtype=np.float32)
    for _ in range(300):
        venv.step(push)
        for name in ("box/position", "box/velocity"):
            inside = venv.variables[name].domain.inside(venv.values[name])
            assert inside.all(), (name, venv.values[name])
    assert np.abs(venv.values["box/position"]).max() > 0.55
