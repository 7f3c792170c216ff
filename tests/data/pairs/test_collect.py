"""Collection: exact pairs, the same bytes after a kill, in processes, when continued."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from interverse.core.errors import FileFormatError, InterverseError, InvalidValueError
from interverse.data.pairs import CollectPairs, PairHeader, collect_pairs, open_pairs
from interverse.worlds.rooms.pair import Address
from tests.data.pairs.factory import SIZE, Nothing, Source, make_pair

ROOT = Path(__file__).parents[3]


def config(out: Path, **changes) -> CollectPairs:
    return CollectPairs(**{"id": "rooms/multi-v1", "out": out, "pairs": 10, **changes})


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_what_is_read_is_what_was_made(tmp_path):
    collect_pairs(config(tmp_path / "a", depth=True), Source(depth=True))
    data = open_pairs(tmp_path / "a")
    assert len(data) == 10
    for row in range(10):
        address = Address(*data.address[row].tolist())
        pair = make_pair(address, depth=True)
        for kind in data.pictures.kinds:
            (found,) = data.images(kind, row)
            expected = getattr(pair, kind)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(data.box_after[row], pair.box_after)
        for name, value in pair.factors_after.items():
            np.testing.assert_array_equal(data.factors_after[name][row], value)
            assert data.factors_after[name].dtype == value.dtype
        np.testing.assert_array_equal(
            data.factors_before["object/state"][row], pair.factors_before["object/state"]
        )
        assert data.nuisance["room/seed"][row] == (address.index == 1)
        assert not data.nuisance["object/state"][row]
        assert data.scene[row] == f"house_{address.house:05d}"
    assert len(data.pictures.kinds) == 8


def test_pairs_are_the_first_of_the_houses_in_order(tmp_path):
    collect_pairs(config(tmp_path / "a", pairs=14), Source())
    data = open_pairs(tmp_path / "a")
    # House 4 is empty, so the 13th and 14th pair are of house 5.
    assert data.address[:, 1].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [5] * 2
    assert data.address[:, 3].tolist() == [0, 1, 2] * 4 + [0, 1]


def test_acceptance_and_reasons_are_told(tmp_path):
    collect_pairs(config(tmp_path / "a", pairs=12), Source())
    header = PairHeader.load(tmp_path / "a")
    assert (header.tries, header.acceptance) == (24, 0.5)
    assert header.rejected == {"hidden": 4, "small": 8}
    told = json.loads((tmp_path / "a" / "collect.json").read_text())
    assert told["acceptance"] == 0.5
    assert told["variables"]["object/state"] == {"shape": [4], "whole": False}


_ENDLESS = """
from pathlib import Path
from interverse.data.pairs import CollectPairs, collect_pairs
from tests.data.pairs.factory import Source
if __name__ == "__main__":
    config = CollectPairs(id="rooms/multi-v1", out=Path("out"), pairs=10**6, workers=2)
    collect_pairs(config, Source(slow=0.05))
"""


def test_processes_end_with_the_one_that_started_them(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(_ENDLESS)
    paths = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=paths, start_new_session=True
    )
    try:
        _wait(lambda: (tmp_path / "out" / "house_00003.h5").exists())
        run.kill()
        run.wait()
        _wait(lambda: not _alive(run.pid))
        with pytest.raises(FileFormatError, match=r"out is half-made.*what is finished is kept"):
            open_pairs(tmp_path / "out")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    collect_pairs(config(tmp_path / "out"), Source())
    collect_pairs(config(tmp_path / "whole"), Source())
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def _wait(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _alive(group: int) -> bool:
    """Returns whether a process of a group is left; one that nobody waits for does not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = status.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False


def test_a_process_that_dies_is_told_and_nothing_finished_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("interverse.rollouts.executors.TRIES", 1)  # a process takes a second
    with pytest.raises(InterverseError, match=r"ended by itself 1 times.*what is finished is kept"):
        collect_pairs(config(tmp_path / "a", workers=2), Source(die_in=3))
    assert list((tmp_path / "a").glob("house_*.h5"))
    collect_pairs(config(tmp_path / "a"), Source())
    collect_pairs(config(tmp_path / "b"), Source())
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_folder_from_before_there_was_a_manifest_is_read(tmp_path):
    collect_pairs(config(tmp_path), Source())
    told = json.loads((tmp_path / "collect.json").read_text())
    lines = (tmp_path / "shards.jsonl").read_text().splitlines()
    shards = [
        {"file": line["file"], "fingerprint": line["hash"], **line["held"]}
        for line in map(json.loads, lines)
    ]
    index = told | {"format": "interverse-pairs-1", "shards": shards}
    (tmp_path / "index.json").write_text(json.dumps(index))
    for name in ("collect.json", "shards.jsonl"):
        (tmp_path / name).unlink()
    assert len(open_pairs(tmp_path)) == 10
    with pytest.raises(InvalidValueError, match="is of an earlier version"):
        collect_pairs(config(tmp_path), Source())


def test_options_that_accept_nothing_end(tmp_path):
    with pytest.raises(InvalidValueError, match=r"60 houses in a row gave no pair.*hidden"):
        collect_pairs(config(tmp_path / "a"), Nothing())


@pytest.mark.parametrize("name", ["pairs", "workers"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_numbers_are_checked(tmp_path, name, value):
    with pytest.raises(InvalidValueError, match=f"{name} is "):
        config(tmp_path, **{name: value})


def test_a_foreign_index_is_refused(tmp_path):
    (tmp_path / "index.json").write_text('{"format": "other"}')
    with pytest.raises(FileFormatError, match=r"index\.json is no header of pairs.*'other'"):
        open_pairs(tmp_path)


def test_a_mask_of_another_size_is_refused(tmp_path):
    from dataclasses import replace

    class Wrong(Source):
        def __call__(self, house):
            pair = make_pair(Address(0, house, 0, 0))
            yield replace(pair, mask_after=np.zeros((SIZE, SIZE - 1), dtype=bool))

    with pytest.raises(InvalidValueError, match=r"mask_after of pair \(0, 0, 0, 0\) is \(32, 31\)"):
        collect_pairs(config(tmp_path / "a"), Wrong())
    assert not list((tmp_path / "a").glob("*.h5"))


def test_pictures_can_be_read_without_this_library(tmp_path):
    import io

    from PIL import Image

    collect_pairs(config(tmp_path / "a"), Source())
    with h5py.File(tmp_path / "a" / "house_00000.h5") as file:
        group = file["pictures/after"]
        data = group["bytes"][: group["offsets"][1]].tobytes()
    picture = np.asarray(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(picture, make_pair(Address(0, 0, 0, 0)).after)
