"""Episodes recorded in files of so many, read back, replayed bit for bit, filmed."""

import dataclasses

import h5py
import imageio.v3 as iio
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.rollouts import EpisodeFolder, EpisodeWriter, RecordEpisodes, replay
from interverse.rollouts.video import episode_frames, record_episode, write_video
from tests.envs.toy import ID, ensure_registered

ensure_registered()
TASK = "trifinger/pushing-v1"


def short(seed, **more):
    return iv.rollout(ID, "random", seed=seed, max_steps=3, **more)


def test_files_of_so_many_and_on_from_there(tmp_path):
    with EpisodeWriter(tmp_path, every=2) as writer:
        for seed in range(3):
            writer.add(short(seed))
        assert len(writer) == 3
    names = ["episodes_00000000_00000001.h5", "episodes_00000002_00000002.h5"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    with EpisodeWriter(tmp_path, every=2) as writer:
        writer.add(short(3))
    folder = EpisodeFolder(tmp_path)
    assert [e.seed for e in folder] == [0, 1, 2, 3]
    assert folder[-1].fingerprint == short(3).fingerprint
    assert [e.seed for e in folder[1:3]] == [1, 2]
    with pytest.raises(IndexError, match="no episode 4"):
        folder[4]


def test_a_writer_that_dies_loses_what_is_pending_only(tmp_path):
    writer = EpisodeWriter(tmp_path, every=2)
    for seed in range(3):
        writer.add(short(seed))
    del writer  # never closed
    assert len(EpisodeFolder(tmp_path)) == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_gap_and_a_torn_file_are_named(tmp_path):
    with EpisodeWriter(tmp_path, every=1) as writer:
        for seed in range(3):
            writer.add(short(seed))
    middle = tmp_path / "episodes_00000001_00000001.h5"
    with h5py.File(middle, "a") as file:
        file["1/rewards"][0] += 1.0
    with pytest.raises(FileFormatError, match=r"episode 1 .*fingerprint"):
        EpisodeFolder(tmp_path)[1]
    middle.unlink()
    with pytest.raises(FileFormatError, match="starts at 2 where 1"):
        EpisodeFolder(tmp_path)
    with pytest.raises(FileNotFoundError):
        EpisodeFolder(tmp_path / "nowhere")
    with pytest.raises(InvalidValueError, match="every"):
        EpisodeWriter(tmp_path, every=0)


def test_a_played_environment_is_recorded(tmp_path):
    env = RecordEpisodes(iv.make(ID, max_steps=4), EpisodeWriter(tmp_path))
    rng = np.random.default_rng(0)
    env.reset(seed=5, options={"do": {"gain": 1.3}})
    for _ in range(4):
        env.step(rng.uniform(-1, 1, 2).astype(np.float32))
    env.reset()
    env.step(np.zeros(2, dtype=np.float32))
    moment = env.unwrapped.snapshot()
    env.unwrapped.do({"gain": 1.1})
    env.step(np.zeros(2, dtype=np.float32))
    env.reset(options={"snapshot": moment})
    env.step(np.ones(2, dtype=np.float32))
    env.close()
    whole, cut, later = EpisodeFolder(tmp_path)
    assert (len(whole), len(cut), len(later)) == (4, 2, 1)
    assert (cut.seed, cut.episode) == (5, 1)
    assert cut.interventions[0].step == 1
    for episode in (whole, cut, later):
        assert replay(episode).fingerprint == episode.fingerprint


def test_an_episode_with_physics_replays_bit_for_bit():
    env = iv.make(TASK)
    episode = iv.rollout(env, "random", seed=1, do={"block_0/mass": 0.04}, max_steps=30)
    env.close()
    assert replay(episode).fingerprint == episode.fingerprint
    rewards = episode.rewards.copy()
    rewards[3] += 1e-12
    with pytest.raises(InvalidValueError, match="differs from the record in rewards"):
        replay(dataclasses.replace(episode, rewards=rewards))


def test_a_video_shows_the_episode(tmp_path):
    env = iv.make(TASK)
    episode = iv.rollout(env, "scripted", seed=0, max_steps=12)
    env.close()
    path = record_episode(episode, tmp_path / "push.mp4", every=4)
    film = iio.imread(path)
    assert film.shape == (4, 720, 960, 3)
    frames = list(episode_frames(episode, every=4))
    for shown, drawn in zip(film, frames, strict=True):
        assert np.abs(shown.astype(float) - drawn).mean() < 8  # lossy, but the same picture
    assert np.abs(frames[0].astype(float) - frames[-1]).max() > 60
    with pytest.raises(InvalidValueError, match="every"):
        record_episode(episode, path, every=0)


def test_a_whole_episode_in_a_new_folder_and_what_is_refused(tmp_path):
    episode = iv.rollout("chemistry/chain-v1", "random", seed=0, max_steps=5)
    path = record_episode(episode, tmp_path / "deep" / "film.mp4")
    assert len(iio.imread(path)) == 6
    with pytest.raises(InvalidValueError, match=r"\*\.mp4"):
        write_video([], tmp_path / "film.gif", fps=25)
    with pytest.raises(InvalidValueError, match="fps"):
        write_video([], tmp_path / "film.mp4", fps=0)
    with pytest.raises(InvalidValueError, match="no pictures"):
        write_video([], tmp_path / "film.mp4", fps=25)
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]


def test_a_folder_stands_for_its_writer(tmp_path):
    env = RecordEpisodes(iv.make(ID, max_steps=2), tmp_path / "kept")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.close()
    (episode,) = EpisodeFolder(tmp_path / "kept")
    assert repr(episode).startswith(f"Episode({ID}, seed 0, episode 0, 1 steps, return ")
    assert len(repr(episode)) < 200


def test_a_program_that_is_run_twice_does_not_double_its_folder(tmp_path):
    def program(writer):
        env = RecordEpisodes(iv.make(ID, max_steps=2), writer)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        env.close()

    program(tmp_path)
    with pytest.raises(InvalidValueError, match=r"holds 1 episodes already.*EpisodeWriter"):
        program(tmp_path)
    assert len(EpisodeFolder(tmp_path)) == 1
    program(EpisodeWriter(tmp_path))
    assert len(EpisodeFolder(tmp_path)) == 2
