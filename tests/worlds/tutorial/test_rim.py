"""The slider's box stays in its declared domain, however long it is pushed."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.envs.values import to_numpy


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


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_no_intervention_drives_the_box_out_of_its_domain(device):
    extremes = [
        {"push": 20.0, "box/mass": 0.01, "box/friction": 0.0},
        {"gravity": 0.0, "box/velocity": [0.0, 0.0, 10.0]},
        {"gravity": -20.0, "box/velocity": [10.0, -10.0, 10.0], "box/mass": 10.0},
        {"gravity": 0.0, "push": 20.0, "box/mass": 0.01, "box/velocity": [-10.0, 0.0, 10.0]},
    ]
    venv = iv.make_vec("tutorial/slider-v1", len(extremes), device=device)
    venv.reset(seed=0)
    for world, values in enumerate(extremes):
        assert venv.do(values, worlds=[world], check=False).applied[world]
    push = np.array([[1, -1], [0, 0], [1, 1], [-1, 1]], dtype=np.float32)
    edges = set()
    for _ in range(40):
        venv.step(push)
        for name in ("box/position", "box/velocity"):
            values = to_numpy(venv.values[name])
            domain = venv.variables[name].domain
            assert domain.inside(values).all(), (name, values)
            edges |= {name} if (np.abs(values) == domain.high).any() else set()
    assert edges == {"box/position", "box/velocity"}  # they do try to leave
