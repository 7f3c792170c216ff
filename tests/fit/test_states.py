"""`interverse fit` of worlds with continuous actions: scores, ceilings, one page, resumable."""

import numpy as np
import pytest

from interverse.cli.fit import FitCommand, fit
from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.fit import states as module
from interverse.fit.states import FitStates, fit_states
from interverse.models.states import StateEpisodes, collect_states, fit_state_network
from interverse.worlds.tutorial.world import Slider

ID = "tutorial/slider-v1"


def test_the_slider_becomes_a_page_with_ceilings_and_goes_on_where_it_stopped(
    tmp_path, monkeypatch, capsys
):
    tiny = {"episodes": 64, "steps": 10, "epochs": 3, "trials": 8}
    monkeypatch.setattr(module, "SIZES", {"smoke": tiny})
    found = fit_states(FitStates(id=ID, out=tmp_path))
    assert found["complete"]
    (record,) = found["seeds"]
    scores = record["scores"]["model"]
    assert scores["planning"]["the target's own actions"] == 0.0
    assert scores["planning"]["random plan"] > 0.0
    for by_model in scores["causes"].values():
        assert max(by_model["true world"]["effect_errors"].values()) == 0.0
    moved = scores["causes"]["box/friction"]["true world"]["moved"]
    assert moved == {"box/position": True, "box/velocity": True}
    assert not any(scores["causes"]["box/color"]["true world"]["moved"].values())
    assert "What would have happened" in (tmp_path / "index.html").read_text()
    monkeypatch.setattr(module, "fit_state_network", None)  # nothing is trained again
    assert fit_states(FitStates(id=ID, out=tmp_path))["seeds"] == found["seeds"]
    assert "other code" not in capsys.readouterr().err + (tmp_path / "summary.md").read_text()
    record["runs"][0] |= {"commit": "b" * 40, "source": "0" * 16}
    write_json(tmp_path / "seed-1.json", record, sort_keys=False)
    assert fit_states(FitStates(id=ID, out=tmp_path))["seeds"] == [record]  # kept, and told
    for text in (capsys.readouterr().err, (tmp_path / "summary.md").read_text()):
        assert "1 of 1 results are kept from other code" in text
        assert "seed-1.json (commit bbbbbbbbbbbb;" in text


def test_a_network_learns_a_world_of_one_line_and_leaves_constants_alone():
    rng = np.random.default_rng(0)
    start, push = rng.normal(size=(200, 1)), rng.uniform(-1, 1, (200, 10, 1))
    gain = rng.choice([0.5, 2.0], (200, 1))
    x = np.concatenate([np.zeros((200, 1, 1)), np.cumsum(gain[:, None] * push, axis=1)], axis=1)
    states = np.concatenate([x + start[:, None], np.repeat(gain[:, None], 11, axis=1)], axis=2)
    data = StateEpisodes(
        moving=("x",),
        constant=("gain",),
        columns={"x": slice(0, 1), "gain": slice(1, 2)},
        states=states,
        actions=push,
    )
    network, losses = fit_state_network(data, epochs=20, seed=0)
    assert losses[-1] < 0.02 < losses[0]
    found = network.rollout(states[:, 0], push)
    assert np.array_equal(found[:, 1], states[:, -1, 1])
    still = np.abs(states[:, -1, 0] - states[:, 0, 0]).mean()
    assert np.abs(found[:, 0] - states[:, -1, 0]).mean() < 0.1 * still


def test_options_of_pictures_and_worlds_without_real_actions_are_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="--model gnn belongs to models of pictures"):
        fit(FitCommand(id=ID, model="gnn", out=tmp_path))
    with pytest.raises(InvalidValueError, match="actions of blocks/observed-3-v1"):
        collect_states("blocks/observed-3-v1", episodes=2, steps=2, seed=0, options={})


def test_episodes_that_are_too_short_are_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(InvalidValueError, match=r"has 8 steps, 20 are needed.*max_steps=20"):
        fit_states(FitStates(id=ID, epochs=2, out=tmp_path, options={"max_steps": 8}))
    assert not list(tmp_path.rglob("*.safetensors"))
    with pytest.raises(InvalidValueError, match="has 4 steps, 5 are needed"):
        collect_states(ID, episodes=2, steps=2, seed=0, options={"max_steps": 4})


def test_no_transition_crosses_the_end_of_an_episode(monkeypatch):
    data = collect_states(ID, episodes=16, steps=14, seed=0, options={})
    assert data.taken.all()
    score = Slider.score

    def ends(self):
        far = np.abs(np.array(self.read("box/position")).reshape(self.num_worlds, -1)[:, 0])
        return score(self)._replace(terminated=far > 0.15)

    monkeypatch.setattr(Slider, "score", ends)
    cut = collect_states(ID, episodes=16, steps=14, seed=0, options={})
    constants = cut.states[:, :, cut.width :]
    assert (constants == constants[:, :1]).all()  # a reset would have undone what was drawn
    assert np.array_equal(cut.states, data.states)
    assert 16 < cut.taken.sum() < 16 * 14
    x = np.abs(cut.states[:, :-1, 0])
    x[:, 0] = 0.0  # only a step ends an episode
    assert np.array_equal(cut.taken, np.cumsum(x > 0.15, axis=1) == 0)
    assert len(cut.lived) == 16 + cut.taken.sum()
    cut.states[:, 1:][~cut.taken] = np.nan
    assert np.isfinite(fit_state_network(cut, epochs=1, seed=0)[1]).all()  # nothing behind is used
