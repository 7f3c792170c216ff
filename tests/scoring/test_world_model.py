"""`score_world_model`: models that know nothing score nothing, one that knows all scores all."""

import numpy as np
import pytest
import torch
from torch import nn

import interverse as iv
from interverse.core.files.tensor_files import write_safetensors
from interverse.errors import InvalidValueError
from interverse.models import WorldModel, WorldModelConfig
from interverse.models.counterfactual import KnownChances
from interverse.models.source import to_float
from interverse.scoring import grid, states
from interverse.scoring.grid import GridBench, GridSizes
from interverse.scoring.outside import Abducting, build_model
from interverse.scoring.states import StateSizes

TINY = GridSizes(
    episodes=60,
    epochs=4,
    references=150,
    scenes=40,
    trials=300,
    counterfactuals=120,
    planned={1: 80, 5: 60, 10: 30},
)
BLOCKS, CHEMISTRY = "blocks/observed-3-v1", "chemistry/chain-v1"


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = StateSizes(references=60, scenes=16, actions=6, planned=32, plans=16)
    monkeypatch.setitem(grid.SIZES, "small", TINY)
    monkeypatch.setitem(states.SIZES, "small", sizes)
    monkeypatch.setitem(states.PICTURES, "small", sizes)


def _flat(observations):
    shown = np.asarray(observations)
    shown = shown[:, 3::5, 3::5] if shown.ndim == 4 else shown  # four places of every cell
    return shown.reshape(len(shown), -1).astype(np.float32)


def _kept(latents, actions):
    return np.repeat(latents[:, None], actions.shape[1], axis=1)


class Identity:
    """Sees all, predicts nothing."""

    def encode(self, observations):
        return _flat(observations)

    def rollout(self, latents, actions):
        return _kept(latents, actions)


class Collapsed(Identity):
    """Everything is one point."""

    def encode(self, observations):
        return np.zeros((len(observations), 4))


class Index(Identity):
    """Answers with the place in the batch, whatever is shown there."""

    def encode(self, observations):
        return np.arange(len(observations), dtype=float)[:, None]


class Memoriser(Identity):
    """Knows by heart what followed in episodes that were played before; elsewhere nothing."""

    def __init__(self, id):
        env = iv.make_vec(id, 50)
        now = np.array(env.reset(seed=0)[0]["image"])
        rng, self.known = np.random.default_rng(0), {}
        for _ in range(20):
            actions = rng.integers(env.single_action_space.n, size=50)
            then = np.array(env.step(actions)[0]["image"])
            for before, action, after in zip(now, actions, then, strict=True):
                self.known[_flat(before[None]).tobytes(), int(action)] = _flat(after[None])[0]
            now = then

    def rollout(self, latents, actions):
        rows = [
            self.known.get((latent.tobytes(), int(chosen[0])), latent)
            for latent, chosen in zip(latents, actions, strict=True)
        ]
        return _kept(np.stack(rows), actions)


class Clairvoyant(Memoriser):
    """Was told what every action leads to in the scenes of the test."""

    def __init__(self, id):
        scenes = GridBench(id, sizes=TINY, seed=0, options={})._in_scene
        starts = _flat(scenes.start)
        self.known = {
            (starts[s].tobytes(), a): _flat(scenes.outcomes[s])[a]
            for s in range(len(starts))
            for a in range(scenes.outcomes.shape[1])
        }

    def rollout(self, latents, actions):
        noise = 0.01 * np.random.default_rng(0).normal(size=latents.shape)
        return super().rollout(latents, actions) + noise[:, None]


class Own(nn.Module):
    """A world model of fifteen lines."""

    def __init__(self, actions=15, width=16):
        super().__init__()
        self.eyes = nn.Sequential(nn.Conv2d(3, 8, 10, 10), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(200, width)
        self.step = nn.Sequential(nn.Linear(width + actions, 64), nn.ReLU(), nn.Linear(64, width))
        self.actions = actions

    def encode(self, images):
        return self.head(self.eyes(images.movedim(-1, 1).float() / 255))

    def rollout(self, latents, actions):
        seen = []
        for action in actions.unbind(1):
            told = nn.functional.one_hot(action, self.actions).float()
            latents = latents + self.step(torch.cat([latents, told], dim=1))
            seen.append(latents)
        return torch.stack(seen, dim=1)


@pytest.mark.parametrize(
    ("id", "model"),
    [
        (BLOCKS, Collapsed),
        (CHEMISTRY, Collapsed),
        (BLOCKS, Identity),
        (CHEMISTRY, Identity),
        (BLOCKS, Index),
        (CHEMISTRY, Index),
        # Not in chemistry: it has 3,125 pictures, and who has seen them all knows what follows.
        (BLOCKS, lambda: Memoriser(BLOCKS)),
    ],
)
def test_a_model_that_knows_nothing_scores_nothing(id, model):
    found = iv.score_world_model(model(), id).to_dict()
    assert found["in_scene"]["value"] <= found["in_scene"]["chance"] + 5
    assert found["in_scene"]["nothing_predicted"] == 0
    for steps in ("1", "5", "10"):
        ranked = found["ranking"][steps]
        assert ranked["value"] <= max(ranked["nothing_predicted"], 5)
        for column in ("latent_open", "latent_closed", "reward_open", "reward_closed"):
            planned = found["planning"][column][steps]
            assert planned["success"] <= max(planned["chance"], planned["do_nothing"]) + 0.15
    assert 40 <= found["effects"]["value"] <= 60
    assert 40 <= found["graph"]["value"] <= 60
    told = found["counterfactual"]
    assert told["value"] <= max(told["nothing_predicted"], 5)


@pytest.mark.parametrize("id", [BLOCKS, CHEMISTRY])
def test_who_knows_all_has_all_in_every_scene(id):
    found = iv.score_world_model(Clairvoyant(id), id).to_dict()["in_scene"]
    assert found["value"] >= 99
    if id == BLOCKS:  # chemistry has few pictures: two scenes may look alike and end otherwise
        assert all(one["value"] >= 99 for one in found["strata"].values())
        assert list(found["strata"]) == ["still", "move", "blocked", "push"]


def test_a_copy_in_two_methods_has_the_models_own_numbers():
    config = WorldModelConfig.named(
        "reference", model="modular", objects=3, encoder="small", embedding=8, hidden=32
    )
    model = WorldModel.seeded(config, 1)

    class Wrapped:
        def encode(self, observations):
            return model.encode(to_float(torch.as_tensor(observations)))

        def rollout(self, latents, actions):
            return model.rollout(latents, actions).transpose(0, 1)

    model.eval()
    own, copy = (iv.score_world_model(one, BLOCKS).to_dict() for one in (model, Wrapped()))
    for kind in ("ranking", "in_scene", "effects", "graph", "counterfactual"):
        assert copy[kind]["value"] == pytest.approx(own[kind]["value"], abs=1e-6)
    for column in ("reward_open", "reward_closed", "reward_true", "latent_open", "latent_closed"):
        for steps, entry in own["planning"][column].items():
            assert copy["planning"][column][steps]["success"] == entry["success"]


def test_a_module_of_fifteen_lines_is_scored_and_left_as_it_was():
    model = Own()
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scores = iv.score_world_model(model, BLOCKS)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    found = scores.to_dict()
    kinds = ["ranking", "in_scene", "effects", "graph", "counterfactual", "planning"]
    assert list(found) == [*kinds, "about"]
    for kind in kinds[:-1]:
        low, high = found[kind]["interval"]
        assert low <= found[kind]["value"] <= high
        assert found[kind].keys() >= {"nothing_predicted", "do_nothing", "chance", "true_world"}
        assert "untrained" in found[kind]
    assert "planning latent_closed" in scores.table()
    assert len(scores.rows()) > 20


class Leaks(Own):
    """A model whose latents follow from more than their rows, in one of several ways."""

    def __init__(self, how):
        super().__init__()
        self.how, self.held = how, None

    def encode(self, pictures):
        latents = super().encode(pictures)
        if self.how == "mean over rows":
            return latents - latents.mean(0)
        return latents + torch.randn_like(latents) if self.how == "draws" else latents

    def rollout(self, latents, actions):
        if self.how == "state" and self.held is not None and len(self.held) == len(latents):
            latents = latents + self.held
        self.held = latents
        return super().rollout(latents, actions)


@pytest.mark.parametrize("how", ["mean over rows", "draws", "state"])
def test_latents_that_follow_from_more_than_their_row_are_refused(how):
    method = "rollout" if how == "state" else "encode"
    with pytest.raises(InvalidValueError, match=f"{method} gives other latents when the same rows"):
        iv.score_world_model(Leaks(how), BLOCKS)


def test_a_model_that_takes_tensors_alone_is_given_tensors():
    class Tensors:
        """No module, and no arrays."""

        def encode(self, observations):
            return observations.flatten(1)[:, ::50].double()

        def rollout(self, latents, actions):
            return latents.unsqueeze(1).expand(-1, actions.size(1), -1)

    class Arrays(Identity):
        def encode(self, observations):
            return observations.reshape(len(observations), -1)[:, ::50].astype(float)

    one, other = (
        iv.score_world_model(m, "tutorial/slider-v1").to_dict() for m in (Tensors(), Arrays())
    )
    assert one["ranking"] == other["ranking"]
    assert one["in_scene"] == other["in_scene"]


def test_only_the_two_methods_are_asked_for():
    asked = set()

    class Watched(Identity):
        def __getattribute__(self, name):
            if not name.startswith("__"):
                asked.add(name)
            return object.__getattribute__(self, name)

    iv.score_world_model(Watched(), BLOCKS)
    assert asked <= {"encode", "rollout", "abduct"}


def test_a_world_of_real_actions_scores_what_is_defined():
    found = iv.score_world_model(Identity(), "tutorial/slider-v1").to_dict()
    assert found["in_scene"]["value"] == 0
    assert found["in_scene"]["true_world"] == 100
    assert found["graph"]["value"] is None
    assert found["graph"]["absent"]
    assert found["ranking"]["1"]["value"] == found["ranking"]["1"]["nothing_predicted"]
    planned = found["planning"]["latent_open"]["5"]
    assert planned["success"] <= planned["true_world"] == 1
    assert found["planning"]["latent_closed"]["absent"]


def test_a_world_of_other_observations_is_refused_by_name():
    with pytest.raises(InvalidValueError, match=r"rooms/single-v1 has observations Dict"):
        iv.score_world_model(Identity(), "rooms/single-v1")


class _Bad(Identity):
    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (object(), "has no encode"),
        (_Bad(encode=lambda x: np.full((len(x), 2), np.nan)), "not numbers"),
        (_Bad(encode=lambda x: np.full((len(x), 2), 1e200)), "beyond"),
        (_Bad(encode=lambda x: np.zeros((3, 2))), "encode gave latents"),
        (_Bad(encode=lambda x: "text"), "gave a str"),
        (_Bad(rollout=lambda z, a: np.swapaxes(_kept(z, a), 0, 1)), "Swap its first two axes"),
        (_Bad(rollout=lambda z, a: z), "rollout gave latents"),
        (_Bad(encode=lambda x: nn.Conv2d(3, 1, 3)(x)), "cannot take"),
    ],
)
def test_what_a_model_gives_is_told_where_it_does_not_fit(model, match):
    with pytest.raises(InvalidValueError, match=match):
        iv.score_world_model(model, BLOCKS)


def test_a_counterfactual_uses_what_abduct_tells():
    trials = GridBench(CHEMISTRY, sizes=TINY, seed=0, options={})._counterfactuals
    truth = _flat(trials.worlds.images(trials.truth))

    class Abducts(Identity):
        def abduct(self, fact):
            assert len(fact.observations) == len(fact.actions) == len(fact.outcomes)

            class Known:
                def rollout(self, latents, actions):
                    return truth[:, None]

            return Known()

    found = iv.score_world_model(Abducts(), CHEMISTRY).to_dict()["counterfactual"]
    assert found["abducts"]
    assert found["value"] == 100
    assert found["mode"] < found["exact_posterior"] < 100


def test_the_mode_and_the_posterior_are_the_exact_chances():
    bench = GridBench("chemistry/full-v1", sizes=TINY, seed=3, options={})
    trials = bench._counterfactuals
    chances = KnownChances(trials)
    counted, agree = np.zeros(5), 0
    for noise in range(2, 402):
        ends = trials.worlds.after(trials.twins, trials.twin_actions, step=noise)
        counted += np.eye(5)[ends[0, 4]]
    prior = chances.prior(0)
    exact = np.eye(5)[prior.states[:, 4]].T @ prior.weights
    assert np.abs(counted / 400 - exact).max() < 0.1
    for row in range(len(trials.truth)):
        told = chances.posterior(row)
        assert told.weights.sum() == pytest.approx(1)
        agree += (told.states == trials.truth[row]).all(1).any()
    assert agree == len(trials.truth)  # what happened is always possible


def test_a_residual_is_carried_over_and_knowing_nothing_is_not_enough():
    model = Own(actions=25)
    plain, carried = (
        iv.score_world_model(one, CHEMISTRY).to_dict()["counterfactual"]
        for one in (model, Abducting(model))
    )
    assert carried["abducts"]
    assert not plain["abducts"]
    assert carried["value"] == pytest.approx(plain["with_residual"]["value"], abs=1e-6)
    still = iv.score_world_model(Identity(), CHEMISTRY).to_dict()["counterfactual"]
    assert still["with_residual"]["value"] < still["mode"]
    assert still["with_residual"]["value"] == still["with_residual"]["nothing_predicted"]


def test_a_name_or_weights_that_do_not_fit_are_told(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidValueError, match=r"no module 'mine.py'"):
        build_model("mine.py:Own", BLOCKS, options={})
    write_safetensors(tmp_path / "other.safetensors", nn.Linear(3, 2).state_dict())
    with pytest.raises(InvalidValueError, match="weights of another model than"):
        build_model(f"{__name__}:Own", BLOCKS, options={}, weights=tmp_path / "other.safetensors")
