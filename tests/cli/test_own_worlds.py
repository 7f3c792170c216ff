"""Worlds of one's own on the command line: `new`, `check`, `module:id`, entry points."""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.wrappers import CurriculumVectorEnv
from interverse.cli import main
from interverse.core import registry
from interverse.core.code import code_hash
from interverse.core.registry import Entry, Registry
from interverse.protocols.verify import verify
from interverse.rollouts import laws
from interverse.worlds import WORLDS
from interverse.worlds.own_code import data_code, own_code
from interverse.worlds.tutorial.world import Slider

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """An empty folder that is the present one; what is imported from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    monkeypatch.setattr(WORLDS, "_rows", dict(WORLDS._rows))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("tank_a", "tank_b", "task_a", "cart_a", "own_world"):
            del sys.modules[name]


def test_a_new_world_passes_the_laws_at_once(workshop, capsys):
    assert main(["new", "world", "tank_a"]) == 0
    assert "interverse check tank_a:lab/tank_a-v1" in capsys.readouterr().out
    assert main(["check", "tank_a:lab/tank_a-v1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(laws.LAWS)
    assert all(row["passed"] for row in rows)


def test_a_new_task_runs_and_declares_what_moves(workshop):
    assert main(["new", "task", "task_a"]) == 0
    env = iv.make("task_a:lab/task_a-v1")
    env.reset(seed=0)
    changed = env.do({"block_0/size": [0.07, 0.07, 0.07]}).changed
    assert set(changed) <= {"block_0/size"} | env.graph.effects_now("block_0/size")
    assert "block_0/cartesian_position" in changed
    *_, info = env.step(env.action_space.sample())
    assert 0.0 <= info["fractional_success"] <= 1.0


def test_a_world_in_one_file_and_one_row_passes_the_laws(workshop, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    assert main(["check", "own_world:lab/leaky_tank-v1"]) == 0


def forget(name: str) -> None:
    """Leaves a module to be imported anew, as by the next command."""
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]
    WORLDS._rows.pop(f"lab/{name}-v1")
    importlib.invalidate_caches()


def edited(workshop: Path, name: str) -> None:
    """Doubles the reward of a new world."""
    file = workshop / name / "dynamics.py"
    text = file.read_text().replace("return -", "return -2.0 * ")
    assert text != file.read_text()
    file.write_text(text)
    forget(name)


@pytest.mark.parametrize(
    "command",
    [
        "evaluate --policy random --task TASK --protocols P0 --episodes 2 --option max_steps=3",
        "train --task TASK --steps 4 --num-envs 2 --evaluate-episodes 0 --hyper n_steps=2"
        " batch_size=4",
    ],
    ids=["evaluate", "train"],
)
def test_a_folder_of_an_edited_world_is_other_code(workshop, capsys, command):
    if command.startswith("train"):
        pytest.importorskip("stable_baselines3")
    assert main(["new", "world", "tank_a"]) == 0
    words = [*command.replace("TASK", "tank_a:lab/tank_a-v1").split(), "--out", "run"]
    assert main(words) == 0
    forget("tank_a")
    assert main(words) == 0, "the same files are the same code"
    edited(workshop, "tank_a")
    capsys.readouterr()
    assert main(words) == 0
    assert "run was begun with other code (world)" in capsys.readouterr().err


CART = """import interverse as iv
world, options = "interverse.worlds.control.world:ControlWorld", {"domain": "cartpole"}
iv.register("lab/cart_a-v1", world, **options, task="balance", max_steps=4)
"""


def test_a_pixel_run_in_an_edited_world_is_other_code(workshop, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("dm_control")
    (workshop / "cart_a.py").write_text(CART)
    asked = "--algorithm sac_aug --steps 8 --evaluate-episodes 1 --hyper warm_up=4 batch=2"
    words = ["train", "--task", "cart_a:lab/cart_a-v1", *asked.split(), "--out", "run"]
    assert main(words) == 0, capsys.readouterr().err
    (workshop / "cart_a.py").write_text(CART.replace("balance", "swingup"))
    forget("cart_a")
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "run was begun with other code (world)" in said
    assert "the snapshot's options is" in said, "another task is another setting"


def test_episodes_of_an_edited_world_are_another_data_set(workshop, capsys):
    assert main(["new", "world", "tank_a"]) == 0
    asked = "--episodes 1 --steps 2 --out data"
    words = ["collect", "tank_a:lab/tank_a-v1", *asked.split()]
    assert main(words) == 0
    forget("tank_a")
    assert main(words) == 0
    edited(workshop, "tank_a")
    capsys.readouterr()
    assert main(words) == 2
    assert "data holds another data set; it differs in code" in capsys.readouterr().err


def test_the_file_of_a_task_of_ones_own_is_code_of_its_world(workshop):
    assert main(["new", "task", "task_a"]) == 0
    first = own_code("task_a:lab/task_a-v1", {})
    forget("task_a")
    assert own_code("task_a:lab/task_a-v1", {}) == first != {}
    file = workshop / "task_a.py"
    file.write_text(file.read_text().replace("mass=0.06", "mass=0.05"))
    forget("task_a")
    iv.register(
        "lab/other-v1", "interverse.worlds.trifinger.world:TriFinger", task="task_a:FarPush"
    )
    assert own_code("lab/other-v1", {}) != first, "by its options alone"
    assert own_code("trifinger/pushing-v1", {"device": "cuda:0"}) == {}
    both = code_hash() + "+" + own_code("lab/other-v1", {})["world"]
    assert data_code("lab/other-v1", {}) == both, "data sets are tied to it too"
    assert data_code("trifinger/pushing-v1", {}) == data_code("no/world-v1", {}) == code_hash()


def test_verify_knows_the_code_of_ones_own_world(workshop, capsys):
    assert main(["new", "world", "tank_a"]) == 0
    asked = {"protocols": "P0", "episodes": 2, "max_steps": 3, "out": "run"}
    iv.evaluate("random", "tank_a:lab/tank_a-v1", **asked)
    assert verify("run").notes == ()
    forget("tank_a")
    (workshop / "tank_a" / "more.py").write_text("# not there before\n")
    assert verify("run", trust=True).notes == ("played with other code than the results: world",)


@pytest.mark.slow
def test_a_new_task_passes_the_laws_at_once(workshop):
    assert main(["new", "task", "task_a"]) == 0
    assert main(["check", "task_a:lab/task_a-v1"]) == 0


def test_a_broken_world_is_told(workshop, capsys):
    assert main(["new", "world", "tank_b"]) == 0
    file = workshop / "tank_b" / "variables.py"
    broken = file.read_text().replace('("box/size", "box/position"),', "")
    assert broken != file.read_text()
    file.write_text(broken)
    assert main(["check", "tank_b:lab/tank_b-v1"]) == 2
    said = capsys.readouterr()
    assert "changes" in said.out
    assert "do sets its variable and changes effects only" in said.err


@pytest.mark.parametrize("kind", ["actor", "metric"])
def test_a_new_file_can_be_imported(workshop, kind):
    assert main(["new", kind, f"my_{kind}"]) == 0
    assert importlib.import_module(f"my_{kind}").__doc__


def test_a_new_actor_takes_variables_of_any_shape(workshop):
    assert main(["new", "actor", "my_turns"]) == 0
    actor = importlib.import_module("my_turns").InTurn(names=("box/mass", "box/color"))
    envs = CurriculumVectorEnv(
        iv.make_vec("tutorial/slider-v1", num_envs=3), Curriculum(stages=(Stage(actor=actor),))
    )
    first = envs.reset(seed=0)[1]
    assert "refused_interventions" not in first
    envs.close()


def test_what_exists_is_not_overwritten(workshop, capsys):
    assert main(["new", "metric", "mine"]) == 0
    assert main(["new", "metric", "mine"]) == 2
    assert "exists" in capsys.readouterr().err


def test_installed_packages_add_rows(monkeypatch):
    point = EntryPoint("lab/sqrt-v1", "math:sqrt", "somewhere.things")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    table = Registry("thing", {"here-v1": Entry("math:floor")}, group="somewhere.things")
    assert table.load("lab/sqrt-v1")(9.0) == 3.0
    with pytest.raises(iv.InterverseError, match="unknown thing"):
        table["lab/none-v1"]


def test_a_batch_that_parts_from_its_worlds_after_a_step_breaks_a_law(monkeypatch):
    whole = Slider.step

    def weaker(self, actions, worlds, noise):
        late_in_a_batch = self.num_worlds == 2 and int(noise.steps.max()) > 2
        whole(self, actions * (0.5 if late_in_a_batch else 1.0), worlds, noise)

    monkeypatch.setattr(Slider, "step", weaker)
    found = {row.law: row.passed for row in laws.check_laws("tutorial/slider-v1")}
    assert not found["a batch equals its single worlds"]


def test_a_layout_whose_names_are_swapped_breaks_a_law(monkeypatch):
    env = iv.make("tutorial/slider-v1")
    places = dict(env.layout)
    places["box/size"], places["box/position"] = places["box/position"], places["box/size"]
    monkeypatch.setattr(
        Slider, "layout", property(lambda self: places, lambda self, new: None), raising=False
    )
    (found,) = (row for row in laws.check_laws("tutorial/slider-v1") if "layout" in row.law)
    assert not found.passed
    assert "do(box/" in found.detail


def test_a_world_that_no_trial_can_be_made_in_breaks_laws(monkeypatch):
    score = Slider.score
    broken = lambda self: score(self)._replace(terminated=np.zeros((1, 1), bool))  # noqa: E731
    monkeypatch.setattr(Slider, "score", broken)
    assert not all(row.passed for row in laws.check_laws("tutorial/slider-v1"))
