"""Local causal graphs: the edges of a step against contact sensors and recorded pushes."""

import json

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from interverse.data.episodes import CollectEpisodes, TwinFolder, collect_episodes
from interverse.data.exports import DATA_FILE, export_parquet, export_worldmodel
from interverse.envs import make, make_vec
from interverse.rollouts.episode import Episode, EpisodeFolder
from interverse.rollouts.runner import rollout
from tools import fidelity


def _columns(env):
    return {edge: k for k, edge in enumerate(env.world.contact_edges)}


def test_edges_are_what_the_contact_sensors_read_before_a_substep():
    env = make_vec("trifinger/stacking2-v1", num_envs=3, skip_frame=1, active_edges=True)
    env.reset(seed=0)
    env.action_space.seed(0)
    seen = set()
    for _ in range(60):
        before = [np.asarray(env.world.contact(a, b)) for a, b in env.world.contact_edges]
        *_, info = env.step(env.action_space.sample())
        assert np.array_equal(info["active_edges"], np.stack(before, axis=1))
        seen |= {k for k in np.flatnonzero(info["active_edges"].any(axis=0))}
    names = {env.world.contact_edges[k] for k in seen}
    assert ("floor", "block_0") in names
    assert any(cause.startswith("finger") and effect.startswith("block") for cause, effect in names)


def test_a_finger_acts_on_the_block_from_the_step_in_which_it_starts_to_move():
    recorded = fidelity.load("pick_and_place")
    env = fidelity.make("pick_and_place", "exact", recorded.state(0), active_edges=True)
    place = _columns(env)
    fingers = [place[f"finger_{i}", "block_0"] for i in range(3)]
    touched = np.zeros(len(recorded.actions), dtype=np.int64)
    start = fidelity.position(env)
    for step in range(1, 12):
        *_, info = env.step(recorded.actions[:, step - 1].astype(np.float32))
        assert info["active_edges"][:, place["floor", "block_0"]].any()
        pushed = info["active_edges"][:, fingers].any(axis=1)
        moved = np.linalg.norm(fidelity.position(env) - start, axis=1) > fidelity.TOUCHED
        touched[pushed & (touched == 0)] = step
        assert not (moved & (touched == 0)).any()
    moving = fidelity.matched_starts("pick_and_place", "exact", steps=12).touched_here
    assert np.abs(touched - moving).max() <= 1


def test_an_edge_between_moving_things_goes_both_ways():
    env = make_vec("trifinger/pushing-v1", num_envs=2, active_edges=True)
    place = _columns(env)
    assert ("block_0", "finger_1") in place
    assert ("block_0", "floor") not in place


def test_a_step_of_ten_substeps_has_every_edge_of_its_substeps():
    whole = make_vec("trifinger/pushing-v1", num_envs=2, skip_frame=10, active_edges=True)
    parts = make_vec("trifinger/pushing-v1", num_envs=2, skip_frame=1, active_edges=True)
    action = np.tile(np.float32([0.2, 0.8, -0.6]), (2, 3))
    for env in (whole, parts):
        env.reset(seed=0)
    for _ in range(8):
        *_, info = whole.step(action)
        each = [parts.step(action)[-1]["active_edges"] for _ in range(10)]
        assert np.array_equal(info["active_edges"], np.any(each, axis=0))


def test_there_are_no_edges_unless_asked():
    env = make_vec("trifinger/pushing-v1", num_envs=1)
    env.reset(seed=0)
    assert "active_edges" not in env.step(env.action_space.sample())[-1]


@pytest.mark.parametrize("drag", ["exact", "joint_damping"])
def test_asking_changes_no_motion(drag):
    ends = []
    for asked in (False, True):
        env = make_vec("trifinger/pushing-v1", num_envs=2, drag=drag, active_edges=asked)
        env.reset(seed=0)
        env.action_space.seed(1)
        for _ in range(10):
            seen, *_ = env.step(env.action_space.sample())
        ends.append(seen)
    assert np.array_equal(*ends)


def test_data_sets_hold_the_edges_of_every_step(tmp_path):
    options = {"active_edges": True, "skip_frame": 3}
    config = CollectEpisodes(
        id="trifinger/pushing-v1", out=tmp_path / "set", episodes=2, steps=15, options=options
    )
    stored = EpisodeFolder(collect_episodes(config))
    env = make(config.id, **options)
    for seed, episode in enumerate(stored):
        played = rollout(env, "random", seed=seed, max_steps=15)
        edges = episode.info["active_edges"]
        assert edges.shape == (15, len(env.unwrapped.world.contact_edges))
        assert edges.any()
        assert not edges.all()
        assert np.array_equal(edges, played.info["active_edges"])


def test_edges_and_contacts_have_names_in_every_file(tmp_path):
    options = {"active_edges": True, "skip_frame": 3}
    task, twins = "trifinger/pushing-v1", ({"block_0/mass": 0.03},)
    config = CollectEpisodes(
        id=task, out=tmp_path / "set", episodes=1, steps=9, options=options, twins=twins
    )
    folder = collect_episodes(config)
    data, env = TwinFolder(folder), make(task, **options)
    names = tuple(f"{a} -> {b}" for a, b in env.unwrapped.world.contact_edges)
    assert "finger_0 -> block_0" in names
    assert data.facts[0].columns == data.twin(0).columns == {"active_edges": names}
    with h5py.File(data.facts.file_of(0)) as file:  # as any other program reads it
        assert list(file["0/info/active_edges"].attrs["columns"]) == list(names)
    played = rollout(env, "random", seed=0, max_steps=9).save(tmp_path / "one.h5")
    assert Episode.load(played).columns == {"active_edges": names}
    table = pq.read_table(export_parquet(folder) / DATA_FILE)
    k = names.index("floor -> block_0")
    for prefix, episode in (("", data.facts[0]), ("twin_0.", data.twin(0))):
        column = table.column(f"{prefix}active_edges.floor -> block_0").to_pylist()
        assert column == [*episode.info["active_edges"][:, k].tolist(), None]
    with h5py.File(export_worldmodel(folder)) as file:
        contact = json.loads(file.attrs["options"])["contact"]
        for name, episode in (("", data.facts[0]), ("twin_0_", data.twin(0))):
            assert list(file[f"{name}active_edges"].attrs["columns"]) == list(names)
            assert np.array_equal(file[f"{name}active_edges"][:], episode.info["active_edges"])
    assert contact == env.unwrapped.world.options.contact
    assert json.loads((folder / "collect.json").read_text())["engine"]["contact"] == contact
    assert data.facts[0].options["contact"] == contact
    assert f'"contact": "{contact}"' in (tmp_path / "set_hub" / "README.md").read_text()
