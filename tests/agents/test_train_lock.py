"""Training holds its folder, gives its threads back, and tells a corrupt record from its own."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("stable_baselines3")

from interverse.agents.train import Train, train
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.atomic import alone_in


def config(out, **other):
    given = dict(task="tutorial/slider-v1", steps=8, num_envs=2, options={"max_steps": 4})
    return Train(out=out, **{**given, **other})


def test_two_trainings_do_not_share_a_folder(tmp_path):
    with (
        alone_in(tmp_path),
        pytest.raises(InvalidValueError, match="another process is at work"),
    ):
        train(config(tmp_path))


def test_pixel_and_device_trainings_hold_their_folder_too(tmp_path):
    from interverse.agents.batch.train import DeviceTrain, train_on_device
    from interverse.agents.pixel.config import PixelTrain
    from interverse.agents.pixel.train import train as train_pixels

    pixels = PixelTrain(task="control/cartpole_balance-v1", out=tmp_path)
    small = dict(num_envs=2, starts=2, curriculum=0, options={"max_steps": 4})
    device = DeviceTrain(task="trifinger/pushing-v1", out=tmp_path, device="torch", **small)
    for start, settings in ((train_pixels, pixels), (train_on_device, device)):
        with alone_in(tmp_path), pytest.raises(InvalidValueError, match="another process"):
            start(settings)


def test_a_training_leaves_no_thread_and_refuses_a_corrupt_record(tmp_path):
    train(config(tmp_path, algorithm="sac"))
    before = threading.active_count()
    for seed in (1, 2):
        train(config(tmp_path / str(seed), algorithm="sac", seed=seed))
    assert threading.active_count() <= before
    (tmp_path / "train.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"train\.json"):
        train(config(tmp_path, algorithm="sac"))
