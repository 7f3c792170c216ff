"""A Torch module acts in eval mode, is left as it was, and draws by the episodes' addresses."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError

torch = pytest.importorskip("torch")
nn = torch.nn
SLIDER = "tutorial/slider-v1"
WIDTH = iv.make(SLIDER).observation_space.shape[0]


class Noisy(nn.Module):
    """Draws its actions anew in every call."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(WIDTH, 2)

    def forward(self, seen):
        return torch.tanh(self.mean(seen) + torch.randn(len(seen), 2))


class Alternating(nn.Module):
    """Keeps a count of its calls in a buffer, and acts by it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, seen):
        self.count += 1
        return (self.count % 2 - 0.5).expand(len(seen), 2)


class Restarted(Alternating):
    """The same, from 0 at the start of every episode."""

    def reset(self, mask, seeds):
        self.count.zero_()


def network(*layers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 8), *layers, nn.Linear(8, 2), nn.Tanh())


def scored(module, episodes=10, protocols="P0,P3", **given):
    return iv.evaluate(
        module, task=SLIDER, protocols=protocols, episodes=episodes, max_steps=5, **given
    )


def first_ten(results):
    return [results.select(protocol=p).scores("return")[:10].tolist() for p in results.protocols]


MODULES = {
    "batch norm": lambda: network(nn.BatchNorm1d(8)),
    "dropout": lambda: network(nn.Dropout(0.5)),
    "draws": Noisy,
    "torchscript": lambda: torch.jit.script(network(nn.BatchNorm1d(8), nn.Dropout(0.5))),
}


@pytest.mark.parametrize("kind", MODULES)
def test_scores_depend_on_the_address_alone(kind, tmp_path):
    module = MODULES[kind]()
    module.train()
    before = {name: held.clone() for name, held in module.state_dict().items()}
    state = torch.get_rng_state()
    many, few = scored(module, 60), scored(module, 10)
    assert first_ten(many) == first_ten(few) == first_ten(scored(module, 10))
    assert torch.equal(torch.get_rng_state(), state), "torch's generator is left as it was"
    assert all(torch.equal(held, before[name]) for name, held in module.state_dict().items())
    assert all(part.training for part in module.modules())
    out = {"out": tmp_path / "a"} | ({"version": "1"} if kind == "torchscript" else {})
    one = scored(module, **out)
    module.eval()
    assert one.data.equals(scored(module, **out).data), "the mode is no part of the policy"


def test_draws_differ_between_episodes_units_and_steps():
    module = Noisy()
    found = scored(module, 60, "P0").scores("return")
    assert len(np.unique(found)) == 60
    actions = iv.rollout(SLIDER, module, seed=3, max_steps=4).actions
    assert len(np.unique(actions)) == actions.size
    assert np.array_equal(actions, iv.rollout(SLIDER, module, seed=3, max_steps=4).actions)


def test_parts_keep_their_own_modes():
    module = network(nn.BatchNorm1d(8), nn.Dropout(0.5))
    module[1].eval()
    scored(module, 2)
    assert [part.training for part in module] == [True, False, True, True, True]


def test_a_module_that_looks_at_other_worlds_is_refused():
    mixing = network(nn.BatchNorm1d(8, track_running_stats=False))
    with pytest.raises(InvalidValueError, match="acts otherwise when episode 9 is played again"):
        scored(mixing)


def test_a_module_that_remembers_needs_a_reset():
    with pytest.raises(InvalidValueError, match=r"acts otherwise .* reset\(mask, seeds\)"):
        scored(Alternating())
    alternating = iv.rollout(SLIDER, Restarted(), max_steps=3).actions[:, 0]
    assert alternating.tolist() == [0.5, -0.5, 0.5]
    assert first_ten(scored(Restarted(), 60)) == first_ten(scored(Restarted(), 10))


class Chooser(nn.Module):
    """Takes the parts of a Dict."""

    def forward(self, seen):
        return seen["state"].flatten(1)[:, 0].long() % 3


def test_a_module_sees_a_dict_of_tensors():
    task = "blocks/observed-3-v1"
    results = iv.evaluate(Chooser(), task=task, protocols="P0", episodes=2, max_steps=2)
    assert len(results) == 2


@pytest.mark.parametrize(
    ("module", "task", "match"),
    [
        (nn.Linear(3, 15), "blocks/observed-3-v1", r"failed on \{image: float32 \(50, 50, 50, 3\)"),
        (nn.Linear(WIDTH, 2).double(), SLIDER, rf"failed on float32 \(50, {WIDTH}\)"),
        (nn.Linear(3, 2), SLIDER, rf"failed on float32 \(50, {WIDTH}\): mat1 and mat2"),
        (nn.LSTM(WIDTH, 2), SLIDER, "returned a tuple"),
    ],
)
def test_a_module_that_fails_says_what_it_was_given(module, task, match):
    with pytest.raises(InvalidValueError, match=match):
        iv.evaluate(module, task=task, protocols="P0", episodes=1, max_steps=2)


def test_a_model_of_stable_baselines_keeps_its_mode():
    sb3 = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MlpPolicy", iv.make(SLIDER), n_steps=4, batch_size=4, device="cpu")
    model.policy.train()
    scored(model, 2)
    assert model.policy.training
