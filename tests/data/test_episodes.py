"""Data sets of episodes: any world, any policy, counterfactual twins, folders made by workers."""

import json
from dataclasses import replace

import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import FileFormatError, InterverseError, InvalidValueError
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
from interverse.data.episodes import _header
from interverse.data.pairs import CollectPairs, collect_pairs, open_pairs
from interverse.rollouts import EpisodeFolder, EpisodeWriter, Refusal
from tests.data.pairs.factory import Source

WORLD = "tutorial/slider-v1"


def config(out, **more):
    return CollectEpisodes(id=WORLD, out=out, episodes=3, every=2, steps=4, seed=5, **more)


def test_facts_are_rollouts_and_twins_their_counterfactuals(tmp_path):
    twins = ({"gravity": -5.0}, {"box/mass": "B"})
    folder = TwinFolder(collect_episodes(config(tmp_path / "set", twins=twins)))
    assert len(folder) == 3
    for i, fact in enumerate(folder.facts):
        played = iv.rollout(WORLD, "random", seed=5, episode=i, max_steps=4)
        assert (fact.fingerprint, fact.episode) == (played.fingerprint, i)
        twin = folder.twin(i, 0)
        assert twin.fingerprint == iv.counterfactual(fact, {"gravity": -5.0}).fingerprint
        mass = folder.twin(i, 1).values["box/mass"][0]
        assert iv.make(WORLD).variables["box/mass"].space_b.contains(mass)
    assert folder.twin(0, 1).values["box/mass"][0] != folder.twin(1, 1).values["box/mass"][0]


def test_two_seeds_share_no_episode_and_evaluate_plays_the_same(tmp_path):
    def returns(seed):
        asked = CollectEpisodes(id=WORLD, out=tmp_path / str(seed), episodes=4, seed=seed)
        facts = TwinFolder(collect_episodes(asked)).facts
        return [fact.rewards.sum() for fact in facts], {fact.actions.tobytes() for fact in facts}

    (first, acted), (second, others) = returns(0), returns(1)
    assert len(acted | others) == 8
    for seed, told in enumerate((first, second)):
        scored = iv.evaluate("random", WORLD, "P0", episodes=4, seed=seed)
        assert told == pytest.approx(scored.scores("return").tolist())


def test_an_old_folder_says_what_it_is(tmp_path):
    collect_episodes(config(tmp_path))
    told = json.loads((tmp_path / "collect.json").read_text())
    (tmp_path / "collect.json").write_text(json.dumps(told | {"format": "interverse-episodes-1"}))
    with pytest.warns(UserWarning, match="its episodes have the seeds 5 to 7"):
        assert len(TwinFolder(tmp_path)) == 3
    with pytest.raises(InvalidValueError, match="is from an earlier version"):
        collect_episodes(config(tmp_path))


def test_a_refused_twin_is_kept_as_refused(tmp_path):
    folder = TwinFolder(collect_episodes(config(tmp_path, twins=({"box/mass": 99.0},))))
    refused = folder.twin(2)
    assert isinstance(refused, Refusal)
    assert refused.variables == ("box/mass",)
    assert "99" in refused.reason


def test_a_twin_wins_over_the_curriculum_of_its_fact(tmp_path):
    world, size = "trifinger/towers-v1", [0.05, 0.05, 0.05]
    actors, twins = ("uniform:patterns=tower/dims",), ({"block_0/size": size},)
    asked = CollectEpisodes(
        id=world,
        out=tmp_path,
        seed=0,
        episodes=1,
        steps=1,
        actors=actors,
        twins=twins,
        options={"skip_frame": 1},
    )
    folder = TwinFolder(collect_episodes(asked))
    assert folder.twin(0).values["block_0/size"][0].tolist() == size


def test_what_something_else_recorded_is_let_be(tmp_path):
    with EpisodeWriter(tmp_path / "recorded") as writer:
        writer.add(iv.rollout(WORLD, "random", seed=0, max_steps=2))
    with pytest.raises(InvalidValueError, match="which `interverse collect` did not write"):
        collect_episodes(replace(config(tmp_path / "recorded"), overwrite=True))
    assert len(EpisodeFolder(tmp_path / "recorded")) == 1
    collect_episodes(config(tmp_path / "set"))
    with EpisodeWriter(tmp_path / "set") as writer:  # goes on with the folder's numbers
        writer.add(iv.rollout(WORLD, "random", seed=0, max_steps=2))
    collect_episodes(config(tmp_path / "set"))
    assert len(EpisodeFolder(tmp_path / "set")) == 4


def test_a_policy_whose_files_changed_is_another(tmp_path):
    def save(number):
        (tmp_path / "policy").mkdir(exist_ok=True)
        (tmp_path / "policy" / "weights").write_text(str(number))

    seen = []
    for number in (1, 1, 2):
        save(number)
        asked = replace(config(tmp_path / "set"), policy=tmp_path / "policy")
        seen.append(_header(asked, {}))
    assert seen[0] == seen[1] != seen[2]


def test_episodes_that_are_asked_for_beyond_their_end_are_told(tmp_path, capsys):
    longest = iv.make(WORLD).unwrapped.world.max_steps
    with pytest.raises(InvalidValueError, match=f"ends after {longest}"):
        collect_episodes(replace(config(tmp_path / "set"), steps=longest + 1))
    words = ["collect", "rooms/single-v1", "--policy", "random", "--episodes", "1", "--out"]
    assert main([*words, str(tmp_path / "short")]) == 0  # shorter than the default of 100
    assert main([*words, str(tmp_path / "long"), "--steps", "500"]) == 2
    assert "steps is 500, but an episode of rooms/single-v1 ends after" in capsys.readouterr().err


def test_a_twin_that_changes_nothing_is_told(tmp_path, capsys):
    gravity = float(iv.make(WORLD).variables["gravity"].default)
    words = ["collect", WORLD, "--episodes", "3", "--steps", "2", "--out", str(tmp_path / "set")]
    assert main([*words, "--twin", f"gravity={gravity}", "box/mass=B"]) == 0
    assert TwinFolder(tmp_path / "set").unchanged() == [3, 0]
    told = capsys.readouterr().err
    assert "is the same as its fact in 3 of 3 episodes (100%): there it changed nothing" in told
    assert told.count("changed nothing") == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"twins": ({"box/velocity": "B"},)}, "space B, which it has not"),
        ({"twins": ({"box/mas": "A"},)}, "box/mas"),
        ({"workers": 0}, "workers is 0"),
    ],
)
def test_mistakes_are_told_before_anything_is_played(tmp_path, more, message):
    with pytest.raises(InterverseError, match=message):
        collect_episodes(config(tmp_path / "set", **more))
    assert not (tmp_path / "set").exists()


def test_another_data_set_is_not_mixed_in(tmp_path):
    collect_episodes(config(tmp_path))
    with pytest.raises(InvalidValueError, match="differs in twins"):
        collect_episodes(config(tmp_path, twins=({"gravity": -5.0},)))
    with pytest.raises(InvalidValueError, match="differs in actors"):
        collect_episodes(config(tmp_path, actors=("uniform:patterns=gravity",)))


def test_the_command_line_collects_any_world(tmp_path, capsys):
    out = tmp_path / "set"
    words = ["collect", "control/cartpole_balance-v1", "--out", str(out), "--episodes", "1"]
    more = ["--steps", "2", "--option", "observation=state", "--twin", "visual_seed=7"]
    assert main([*words, *more]) == 0
    folder = TwinFolder(out)
    assert folder.facts[0].observations.shape[0] == 3
    assert folder.twin(0).values["visual_seed"][0] == 7
    assert main([*words, "--pairs", "5"]) == 2
    assert "--pairs has no meaning" in capsys.readouterr().err


def test_two_values_of_a_variable_are_two_twins(tmp_path):
    words = ["collect", WORLD, "--out", str(tmp_path / "set"), "--episodes", "1", "--steps", "2"]
    assert main([*words, "--twin", "gravity=-5.0", "gravity=-7.0", "gravity=B"]) == 0
    folder = TwinFolder(tmp_path / "set")
    assert folder.twins == [{"gravity": -5.0}, {"gravity": -7.0}, {"gravity": "B"}]
    found = [float(folder.twin(0, k).values["gravity"][0]) for k in range(2)]
    assert found == pytest.approx([-5.0, -7.0])


def test_a_curriculum_acts_in_its_episodes_whoever_plays(tmp_path):
    more = {"actors": ("uniform:patterns=gravity@first=1",), "twins": ({"box/mass": "B"},)}
    folder = TwinFolder(collect_episodes(config(tmp_path / "set", **more)))
    gravity = [fact.values["gravity"][0] for fact in folder.facts]
    default = float(iv.make(WORLD).variables["gravity"].default)
    assert gravity[0] == default
    assert len({default, *gravity}) == 3
    assert [folder.twin(e).values["gravity"][0] for e in range(3)] == gravity
    assert all(iv.counterfactual(f, {}).fingerprint == f.fingerprint for f in folder.facts)
    again = TwinFolder(collect_episodes(config(tmp_path / "again", workers=2, **more)))
    assert [f.fingerprint for f in again.facts] == [f.fingerprint for f in folder.facts]


@pytest.mark.parametrize(
    ("world", "twin"),
    [("blocks/observed-3-v1", "block_0/shape=B"), ("rooms/single-v1", "light/brightness=1.2")],
)
def test_grids_and_rooms_give_episodes_with_twins_too(world, twin, tmp_path, capsys):
    out = tmp_path / "set"
    words = [world, "--episodes", "1", "--twin", twin, "--out", str(out)]
    assert main(["collect", *words, "--to", "parquet"]) == 0
    assert "parquet" in capsys.readouterr().err
    twins = TwinFolder(out)
    assert twins.twin(0).fingerprint != twins.facts[0].fingerprint
    assert (tmp_path / "set_hub" / "README.md").exists()


def test_twins_are_found_like_facts_and_those_there_are_are_named(tmp_path):
    data = TwinFolder(collect_episodes(config(tmp_path / "d", twins=({"box/mass": 0.4},))))
    same = {data.twin(*address).fingerprint for address in ((-1,), (2,), (2, -1))}
    assert len(same) == 1
    with pytest.raises(InvalidValueError, match=r"no twin 7 of an episode\. Allowed: 0: \{'box"):
        data.twin(0, 7)
    with pytest.raises(IndexError, match="no episode"):
        data.twin(len(data))


def test_twins_go_on_without_what_their_world_refuses_of_the_fact(tmp_path, capsys):
    """A curriculum puts block 1 close beside block 0, which is larger in the twin."""
    words = ["collect", "trifinger/stacking2-v1", "--out", str(tmp_path / "set"), "--steps", "2"]
    words += ["--episodes", "12", "--option", "skip_frame=1", "--json"]
    actor = "uniform:patterns=block_1/cylindrical_position@step=1"
    assert main([*words, "--actor", actor, "--twin", "block_0/size=[0.085,0.085,0.085]"]) == 0
    told, folder = capsys.readouterr(), TwinFolder(tmp_path / "set")
    twins = [folder.twin(i) for i in range(12)]
    pairs = zip(twins, folder.facts, strict=True)
    fewer = [set(twin.refusals) - set(fact.refusals) for twin, fact in pairs]
    fewer = [refusal for refusals in fewer for refusal in refusals]
    assert fewer
    assert all(len(twin) == 2 for twin in twins)
    assert all("deep in block_1" in refusal.reason for refusal in fewer)
    (held,) = json.loads(told.out)["twins"]
    assert held["skipped"] == sum(folder.skipped()[0].values()) == len(fewer)
    assert held["refused"] == 0
    assert f"goes on in {len(fewer)} of 12 episodes ({len(fewer) / 12:.0%})" in told.err


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


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: data[:-30] + b"\xe5"])
def test_a_line_that_a_power_cut_tore_costs_its_shard_alone(kind, tmp_path, damage):
    whole = content(make(kind, tmp_path))
    manifest = tmp_path / "shards.jsonl"
    manifest.write_bytes(damage(manifest.read_bytes()))
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
