"""Laws of worlds on Torch tensors and on Warp's CPU device; `device_laws` runs them on a GPU."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.sim.device_laws import GRIDS, IDS, LAWS, check

BROKEN: dict[str, str] = dict.fromkeys(LAWS, "")


@pytest.mark.parametrize("name", GRIDS)
def test_grids_on_tensors_keep_the_laws(name: str) -> None:
    assert check(name, "torch") == BROKEN


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in IDS if name not in GRIDS])
def test_worlds_on_warp_keep_the_laws(name: str) -> None:
    pytest.importorskip("mujoco_warp")
    assert check(name, "warp") == BROKEN
