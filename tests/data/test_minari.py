"""Export to Minari: the same episodes come back, losslessly; without it, a clear error."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from interverse.core.errors import MissingExtraError
from interverse.data import (
    Collect,
    CollectEpisodes,
    TwinFolder,
    collect,
    collect_episodes,
    open_dataset,
    to_minari,
)


@pytest.fixture
def data(tmp_path):
    config = Collect(id="blocks/observed-3-v1", episodes=3, steps=4, out=tmp_path / "d.h5")
    return open_dataset(collect(config))


def test_without_minari_the_extra_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtraError, match=r"interverse\[minari\]"):
        to_minari(data, "interverse/blocks/test-v0")


def test_episodes_come_back_from_minari(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    minari = pytest.importorskip("minari")
    to_minari(data, "interverse/blocks-observed-3/test-v0", author="nobody")
    back = minari.load_dataset("interverse/blocks-observed-3/test-v0")
    assert back.total_episodes == 3
    for e, episode in enumerate(back.iterate_episodes()):
        np.testing.assert_array_equal(episode.observations["image"], data.images(e)[0])
        np.testing.assert_array_equal(episode.observations["state"], data.states[e])
        np.testing.assert_array_equal(episode.actions, data.actions[e])
        np.testing.assert_array_equal(episode.rewards, data.rewards[e])
        assert episode.truncations.tolist() == [False] * 3 + [True]


def test_every_episode_has_the_columns_of_its_twins(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    minari = pytest.importorskip("minari")
    twins = ({"box/mass": -3.0}, {"gravity": -5.0})  # the first cannot be
    config = CollectEpisodes(
        id="tutorial/slider-v1", out=tmp_path / "t", episodes=2, steps=3, twins=twins
    )
    data = TwinFolder(collect_episodes(config))
    assert [sum(reasons.values()) for reasons in data.refusals()] == [2, 0]
    to_minari(data, "interverse/slider/test-v0", author="nobody")
    for e, episode in enumerate(minari.load_dataset("interverse/slider/test-v0")):
        told, twin = episode.infos, data.twin(e, 1)
        assert told["twin_0.refused"].all()
        np.testing.assert_array_equal(told["twin_0.observations"], data.facts[e].observations)
        assert not told["twin_1.refused"].any()
        np.testing.assert_array_equal(told["twin_1.observations"], twin.observations)
        np.testing.assert_array_equal(
            told["twin_1.value.box.position"], twin.values["box/position"]
        )
        assert (told["twin_1.value.gravity"] == -5.0).all()


def test_collected_episodes_and_twins_come_back_from_minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    minari = pytest.importorskip("minari")
    twins = ({"block_0/mass": 0.03},)
    config = CollectEpisodes(
        id="trifinger/pushing-v1", out=tmp_path / "t", episodes=2, steps=3, twins=twins
    )
    data = TwinFolder(collect_episodes(config))
    to_minari(data, "interverse/pushing/test-v0", author="nobody")
    back = minari.load_dataset("interverse/pushing/test-v0")
    assert back.total_episodes == 2
    for e, episode in enumerate(back.iterate_episodes()):
        fact, twin = data.facts[e], data.twin(e, 0)
        np.testing.assert_array_equal(episode.observations, fact.observations)
        np.testing.assert_array_equal(episode.rewards, fact.rewards)
        mass = episode.infos["value.block_0.mass"]
        np.testing.assert_array_equal(mass, fact.values["block_0/mass"])
        np.testing.assert_array_equal(episode.infos["twin_0.observations"], twin.observations)
