"""Causal discovery on true states finds the skeleton of a chain."""

import importlib
import importlib.util
import sys

import numpy as np
import pytest

from interverse.core.errors import InvalidValueError, MissingExtraError
from interverse.data import load_dataset

installed = pytest.mark.skipif(
    importlib.util.find_spec("causallearn") is None, reason="causal-learn is an extra"
)
CHAIN = np.eye(5, k=-1, dtype=np.int64)


@pytest.mark.skipif(
    importlib.util.find_spec("causallearn") is not None, reason="causal-learn is installed"
)
def test_without_the_library_the_extra_is_named(monkeypatch):
    # Collecting doctests leaves a half-loaded module behind.
    monkeypatch.delitem(sys.modules, "interverse.benchmarks.causalmbrl.discovery", raising=False)
    with pytest.raises(MissingExtraError, match="discovery"):
        importlib.import_module("interverse.benchmarks.causalmbrl.discovery")


@installed
@pytest.mark.parametrize("method", ["pc", "ges"])
def test_the_skeleton_of_a_chain_is_found(method, tmp_path):
    from interverse.benchmarks.causalmbrl.discovery import discovery_scores, start_states

    data = load_dataset("chemistry/chain-v1", "test", folder=tmp_path, episodes=2000)
    score = discovery_scores(start_states(data), CHAIN, method)
    assert score["skeleton_f1"] >= 0.85
    assert score["samples"] == 2000


@installed
def test_a_collider_has_its_directions():
    from interverse.benchmarks.causalmbrl.discovery import discover

    rng = np.random.default_rng(0)
    causes = rng.integers(0, 3, (4000, 2))
    effect = np.where(rng.random(4000) < 0.1, rng.integers(0, 3, 4000), causes.max(1))
    found = discover(np.column_stack([causes, effect]), "pc")
    assert found.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]


@installed
def test_blocks_are_refused(tmp_path):
    from interverse.benchmarks.causalmbrl.discovery import start_states

    data = load_dataset("blocks/observed-3-v1", "test", folder=tmp_path, episodes=4)
    with pytest.raises(InvalidValueError, match="chemistry"):
        start_states(data)
