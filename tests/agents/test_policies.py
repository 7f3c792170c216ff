"""The policies that come with the package: they load, and they solve what they were trained for."""

from __future__ import annotations

import pytest

import interverse as iv
from interverse.agents.policies import TRAINED, trained_policy
from interverse.cli.evaluate import known_policy
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError

pytest.importorskip("torch")

from interverse.agents.batch.starts import make_arena
from interverse.protocols.on_device import play, starts_of
from interverse.protocols.protocol import select_protocols
from interverse.rollouts.exported import ExportedPolicy
from tests.sim.device_parity import spread


@pytest.mark.parametrize("name", TRAINED)
def test_policies_load_and_say_what_trained_them(name: str) -> None:
    card = ExportedPolicy.load(trained_policy(name)).card
    task, _, curriculum = name.rpartition("_")
    assert card.trained["config"]["task"] == f"trifinger/{task}-v1"
    assert card.trained["config"]["curriculum"] == int(curriculum)


def test_commands_know_a_policy_of_the_package_by_its_name() -> None:
    assert known_policy("cartpole_balance_small", None).task == "control/cartpole_balance-v1"
    with pytest.raises(InvalidValueError, match=r"or one of .*cartpole_balance_small"):
        known_policy("cartpole_balance_large", None)


def test_an_unknown_policy_names_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match="pushing_2"):
        trained_policy("pushing_9")


def scores_of_its_gpu(name: str) -> dict[str, float]:
    """Returns the scores of a policy where it was trained, by protocol."""
    there = ExportedPolicy.load(trained_policy(name)).card.trained["scores"]
    assert (there["engine"], there["contact"]) == ("mujoco_warp", "convex")
    found: dict[str, float] = there["last_fractional_success"]
    return found


@pytest.mark.parametrize("name", [name for name in TRAINED if name != "pick_and_place_2"])
def test_policies_score_on_the_cpu_as_on_the_gpu_that_trained_them(name: str) -> None:
    """P0 with the CPU's default contacts, which are not the GPU's."""
    task = f"trifinger/{name.rpartition('_')[0]}-v1"
    results = iv.evaluate(trained_policy(name), task, protocols="P0", episodes=1, skip_frame=3)
    here = results.scores("last_fractional_success").mean()
    assert here == pytest.approx(scores_of_its_gpu(name)["P0"], abs=0.05)


@pytest.mark.slow
def test_pick_and_place_scores_on_the_cpu_as_on_the_gpu_that_trained_it() -> None:
    """P0 is one path, whose end is chance where a block is tossed: it starts moved a little."""
    task, options = "trifinger/pick_and_place-v1", {"skip_frame": 3, "contact": "exact"}
    starts = spread(starts_of(task, select_protocols(task, "P0"), episodes=32, options=options))
    arena = make_arena(task, starts, num_worlds=32, device="torch", groups=1, options=options)
    policy = ExportedPolicy.load(trained_policy("pick_and_place_2")).on(arena.device)
    here = play(policy, arena)["last_fractional_success"].mean()
    arena.close()
    assert here == pytest.approx(scores_of_its_gpu("pick_and_place_2")["P0"], abs=0.05)


def test_another_task_than_it_was_trained_for_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for task in ("trifinger/pushing-v1", "trifinger/picking-v1"):
        iv.evaluate(trained_policy("picking_2"), task, "P0", episodes=1, max_steps=2)
    said = capsys.readouterr().err
    assert said.count("Trained for trifinger/picking-v1, plays trifinger/pushing-v1") == 1
    assert "plays trifinger/picking-v1" not in said


def test_policies_of_the_package_are_known_by_name(tmp_path):
    task = "trifinger/pushing-v1"
    given = {"task": task, "protocols": "P0", "episodes": 1, "max_steps": 3}
    named = iv.evaluate("pushing_1", **given, out=tmp_path / "a")
    by_path = iv.evaluate(trained_policy("pushing_1"), **given, out=tmp_path / "a")
    assert named.data.equals(by_path.data), "one policy, one folder"
    assert named.experiments == ["pushing_1"]
    assert named.provenance["options"]["skip_frame"] == 3, "with the options of its world"
    episode = iv.rollout(task, "pushing_1", max_steps=2)
    assert episode.options["skip_frame"] == 3
    with pytest.raises(InvalidValueError, match="trained in trifinger/pushing-v1"):
        iv.rollout("tutorial/slider-v1", "pushing_1")
    with pytest.raises(UnknownNameError, match="Did you mean 'pushing_1'"):
        iv.evaluate("pushin_1", **given)


def test_a_path_of_that_name_comes_first(tmp_path, monkeypatch):
    (tmp_path / "pushing_1").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError):
        iv.rollout("trifinger/pushing-v1", "pushing_1", max_steps=2)
