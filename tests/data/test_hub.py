"""Collected episodes as Parquet: the same numbers, twins as columns, pictures as pictures."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from interverse.data import CollectEpisodes, TwinFolder, collect_episodes, export_parquet
from interverse.data.hub import CARD_FILE, DATA_FILE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "twins"
    twins = ({"gravity": -5.0}, {"box/mass": "B"})
    sizes = {"episodes": 2, "steps": 4}
    return collect_episodes(CollectEpisodes(id="tutorial/slider-v1", out=out, twins=twins, **sizes))


def test_rows_are_moments_and_twins_are_columns(folder):
    out = export_parquet(folder)
    table = pq.read_table(out / DATA_FILE)
    data = TwinFolder(folder)
    assert table.num_rows == 2 * 5
    rows = table.to_pylist()
    for row in rows:
        fact, step = data.facts[row["episode_index"]], row["frame_index"]
        twin = data.twin(row["episode_index"], 1)
        assert row["observation"] == fact.observations[step].tolist()
        assert row["twin_1.observation"] == twin.observations[step].tolist()
        assert row["twin_1.value.box/mass"] == twin.values["box/mass"][step]
        assert row["twin_0.value.gravity"] == -5.0
        assert row["twin_0.refused"] is None
        if step < 4:
            assert row["action"] == row["twin_1.action"] == fact.actions[step].tolist()
            assert row["next.reward"] == fact.rewards[step]
        else:
            assert row["action"] is None


def test_the_library_of_the_hub_reads_the_folder(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    out = export_parquet(folder, tmp_path / "hub")
    read = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert read.num_rows == 10
    first = TwinFolder(folder).facts[0]
    assert np.array_equal(read[0]["observation"], first.observations[0])


def test_pictures_are_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    import io

    config = CollectEpisodes(id="chemistry/chain-v1", out=tmp_path / "c", episodes=1, steps=2)
    out = export_parquet(collect_episodes(config), tmp_path / "hub")
    table = pq.read_table(out / DATA_FILE)
    known = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert known["observation.image"] == {"_type": "Image"}
    stored = table["observation.image"][0].as_py()["bytes"]
    fact = TwinFolder(tmp_path / "c").facts[0]
    assert np.array_equal(image.open(io.BytesIO(stored)), fact.observations["image"][0])
    assert "chemistry/chain-v1" in (out / CARD_FILE).read_text()
