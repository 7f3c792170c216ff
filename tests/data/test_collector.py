"""Laws of a folder of episodes, grids or pairs: whole after kills and damage, never a mixture."""

from __future__ import annotations

import pytest

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.data import (
    Collect,
    CollectEpisodes,
    TwinFolder,
    collect,
    collect_episodes,
    collector,
    generate,
    open_dataset,
)
from interverse.data.pairs import CollectPairs, collect_pairs, open_pairs
from tests.data.pairs.factory import Source

OPENED = {"episodes": TwinFolder, "grid": open_dataset, "pairs": open_pairs}


@pytest.fixture(params=OPENED)
def kind(request, monkeypatch):
    monkeypatch.setattr(generate, "_UNIT_FRAMES", 12)  # two episodes a shard
    return request.param


def make(kind, out, count=5, seed=5, **more):
    """Collects so many episodes, two a shard, or pairs, three a shard; returns the folder."""
    shared = {"out": out, "seed": seed, **more}
    if kind == "pairs":
        asked = CollectPairs(id="rooms/multi-v1", pairs=count, **shared)
        return collect_pairs(asked, Source(seed=seed))
    if kind == "grid":
        return collect(Collect(id="blocks/observed-3-v1", episodes=count, steps=5, **shared))
    asked = CollectEpisodes(id="tutorial/slider-v1", episodes=count, every=2, steps=4, **shared)
    return collect_episodes(asked)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def shards(folder):
    return sorted(folder.glob("*.h5"))


def test_workers_write_the_same_folder_where_they_are_and_where_they_see_none(
    kind, tmp_path, monkeypatch
):
    one, two = make(kind, tmp_path / "one"), make(kind, tmp_path / "two", workers=2)
    monkeypatch.setattr(collector, "_sees", lambda work: False)  # as a machine far away
    assert content(one) == content(two) == content(make(kind, tmp_path / "far"))
    assert len(OPENED[kind](one)) == 5


@pytest.mark.parametrize("damage", [None, lambda data: data[:900], lambda data: data[:-1] + b"x"])
def test_what_is_missing_or_damaged_is_made_again_and_nothing_else(kind, tmp_path, damage):
    whole = content(make(kind, tmp_path))
    first, *others = shards(tmp_path)
    kept = [path.stat().st_mtime_ns for path in others]
    if damage is None:
        first.unlink()
    else:
        first.write_bytes(damage(first.read_bytes()))
    if damage is None or first.stat().st_size == 900:
        with pytest.raises(FileFormatError, match=f"{first.name} is missing|where 0 is next"):
            OPENED[kind](tmp_path)
    assert content(make(kind, tmp_path)) == whole
    assert [path.stat().st_mtime_ns for path in others] == kept


def test_a_line_that_a_power_cut_tore_costs_its_shard_alone(kind, tmp_path):
    whole = content(make(kind, tmp_path))
    manifest = tmp_path / "shards.jsonl"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    with pytest.raises(FileFormatError, match=r"half-made, or its shards\.jsonl was changed"):
        OPENED[kind](tmp_path)
    kept = shards(tmp_path)[0].stat().st_mtime_ns
    assert content(make(kind, tmp_path)) == whole
    assert shards(tmp_path)[0].stat().st_mtime_ns == kept


def test_more_go_on_with_a_folder_and_fewer_or_others_are_another(kind, tmp_path, monkeypatch):
    grown = make(kind, tmp_path / "grown", count=6)
    kept = shards(grown)[0].stat().st_mtime_ns
    make(kind, grown, count=8)
    assert shards(grown)[0].stat().st_mtime_ns == kept
    assert content(grown) == content(make(kind, tmp_path / "whole", count=8))
    name = "pairs" if kind == "pairs" else "episodes"
    with pytest.raises(InvalidValueError, match=f"another data set; it differs in {name}"):
        make(kind, grown, count=5)
    with pytest.raises(InvalidValueError, match="another data set; it differs in seed"):
        make(kind, grown, count=8, seed=6)
    assert len(OPENED[kind](make(kind, grown, count=3, seed=6, overwrite=True))) == 3
    monkeypatch.setattr("interverse.core.code.code_hash", lambda: "edited")
    monkeypatch.setattr("interverse.worlds.own_code.code_hash", lambda: "edited", raising=False)
    with pytest.raises(InvalidValueError, match="another data set; it differs in code"):
        make(kind, grown, count=4, seed=6)
    assert len(OPENED[kind](grown)) == 3
