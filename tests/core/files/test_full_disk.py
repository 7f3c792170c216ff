"""A full disk: long work ends with one typed error and goes on when there is room again."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import contextmanager

import numpy as np
import pytest

from interverse.cli import main
from interverse.core.errors import StorageError
from interverse.core.files.hdf5 import new_hdf5, open_hdf5


@contextmanager
def room_for(size):
    """Lets no file grow beyond so many bytes: EFBIG, which a full quota looks like too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [100, 4_000, 30_000])
def test_hdf5_gives_a_file_up_that_it_cannot_write(tmp_path, capfd, size):
    def write():
        with new_hdf5(tmp_path / "a.h5") as file:
            for name in "abc":
                group = file.create_group(name)
                group.attrs["note"] = "x" * 500
                group["x"] = np.random.default_rng(0).normal(size=3_000)

    with room_for(size), pytest.raises(StorageError, match="no space is left"):
        write()
    assert os.listdir(tmp_path) == []
    assert capfd.readouterr() == ("", "")  # h5py would complain of every object, and crash
    write()
    with open_hdf5(tmp_path / "a.h5") as file:
        assert sorted(file) == ["a", "b", "c"]


@pytest.mark.parametrize("size", [200, 20_000])
@pytest.mark.parametrize("verb", ["train", "collect"])
def test_a_verb_tells_it_in_one_line_and_goes_on_later(tmp_path, capfd, verb, size):
    words = {
        "train": "--task tutorial/slider-v1 --steps 4 --num-envs 1 --evaluate-episodes 0",
        "collect": "blocks/observed-3-v1 --episodes 30",
    }[verb].split()
    if verb == "train":
        pytest.importorskip("stable_baselines3")
        words += ["--option", "max_steps=4"]
    command = [verb, *words, "--out", str(tmp_path / "out.h5")]
    with room_for(size):
        assert main(command) == 2
    told = capfd.readouterr().err
    assert "no space is left to write" in told.splitlines()[-1]
    assert "Traceback" not in told
    assert [path for path in tmp_path.rglob("*") if ".partial" in path.name] == []
    assert main(command) == 0
