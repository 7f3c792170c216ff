"""One episode of an evaluation is played again among others; another course is refused."""

import itertools
import textwrap

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.protocols import unit as units
from interverse.protocols.protocol import select_protocols

TASK = "tutorial/slider-v1"


def scored(policy, **given):
    settings = {"protocols": "P0-P3", "episodes": 4, "max_steps": 6} | given
    return iv.evaluate(policy, TASK, **settings)


def acts(seen):
    """A stateless function of a row of the observations."""
    return np.tanh(20.0 * np.asarray(seen)[:, :2]).astype(np.float32)


class Remembers:
    """A recurrent policy that forgets where an episode starts."""

    def reset(self, mask, seeds):
        if not hasattr(self, "held") or len(self.held) != len(mask):
            self.held = np.zeros((len(mask), 2), dtype=np.float32)
        self.held[mask] = 0

    def __call__(self, seen):
        self.held = 0.5 * self.held + 0.5 * acts(seen)
        return self.held


class Draws:
    """A policy whose draws follow from the seeds of its episodes."""

    def reset(self, mask, seeds):
        self.dice = [np.random.default_rng(int(seed)) for seed in seeds]

    def __call__(self, seen):
        return np.stack([d.uniform(-1, 1, 2) for d in self.dice]).astype(np.float32)


HONEST = {
    "lambda": lambda seen: acts(seen),
    "recurrent": Remembers(),
    "draws by its seeds": Draws(),
    "random": "random",
}


@pytest.mark.parametrize("policy", HONEST.values(), ids=HONEST)
@pytest.mark.parametrize("episodes", [1, 4])
def test_honest_policies_pass_without_a_word(policy, episodes, capsys):
    assert len(scored(policy, episodes=episodes)) == 4 * episodes
    assert capsys.readouterr().err == ""


def first_for_all(seen):
    return np.repeat(acts(seen)[:1], len(seen), axis=0)


def by_the_batch(seen):
    flat = np.asarray(seen, dtype=np.float64)
    return acts((flat - flat.mean(axis=0)) / (flat.std(axis=0) + 1e-3))


class Counts:
    """Acts by how often it was called, since ever."""

    def __init__(self):
        self.calls = itertools.count()

    def __call__(self, seen):
        return np.full((len(seen), 2), next(self.calls) % 7 / 7, dtype=np.float32)


def draws_globally(seen):
    return np.random.uniform(-1, 1, (len(seen), 2)).astype(np.float32)  # noqa: NPY002


class DrawsOnAndOn:
    """Draws from a generator of its own, which no reset starts again."""

    def __init__(self):
        self.dice = np.random.default_rng(0)

    def __call__(self, seen):
        return self.dice.uniform(-1, 1, (len(seen), 2)).astype(np.float32)


@pytest.mark.parametrize(
    "policy", [first_for_all, by_the_batch, Counts(), draws_globally, DrawsOnAndOn()]
)
def test_a_policy_that_depends_on_more_than_its_episode_is_refused(policy, tmp_path):
    with pytest.raises(InvalidValueError, match="acts otherwise when episode 3 is played again"):
        scored(policy, out=tmp_path)
    assert not list((tmp_path / "units").glob("P1*")), "the unit is not kept"


@pytest.mark.parametrize("policy", [by_the_batch, Counts(), draws_globally])
def test_so_it_is_where_there_is_one_episode(policy):
    with pytest.raises(InvalidValueError, match="acts otherwise when episode 0 is played again"):
        scored(policy, episodes=1)


WORLD = """
    import numpy as np
    from interverse.core.registry import Entry
    from interverse.worlds import WORLDS
    from interverse.worlds.tutorial.world import Slider

    KEPT = {{"episodes": 0}}

    class Leaky(Slider):
        def reset(self, worlds, noise, given):
            KEPT["episodes"] += 1
            return super().reset(worlds, noise, given)

        def {method}
"""
LEAKS = {
    "hidden": "observe(self):\n            return super().observe() + 1e-3 * KEPT['episodes']",
    "global": "observe(self):\n            return super().observe() + np.random.normal()",
    "reward": "score(self):\n            told = super().score()\n"
    "            return told._replace(reward=told.reward + np.random.normal())",
    "coupled": "observe(self):\n            seen = super().observe()\n"
    "            return seen + seen.mean()",
}


BREAKS = {
    "its buffer": "observe(self):\n            if not hasattr(self, 'kept'):\n"
    "                self.kept = super().observe()\n"
    "            self.kept[:] = super().observe()\n            return self.kept",
    "no array of bool": "score(self):\n            told = super().score()\n"
    "            return told._replace(terminated=told.terminated * 0.5)",
    "success is 5, beyond 0 to 1": "score(self):\n            told = super().score()\n"
    "            told.info['success'] = 5.0 * np.ones(self.num_worlds)\n            return told",
    "max_steps is 50, and the option asks for 4": "more(self): pass\n\n"
    "    max_steps = property(lambda self: 50, lambda self, value: None)",
    "reward of one world has shape \\(1, 1\\), not": "score(self):\n"
    "            told = super().score()\n"
    "            return told._replace(reward=told.reward[:, None])",
    "observe\\(\\) gives lies outside": "observe(self):\n"
    "            return np.nan * super().observe()",
    "reward is nan": "score(self):\n            told = super().score()\n"
    "            return told._replace(reward=told.reward * np.nan)",
}


def leaky(tmp_path, monkeypatch, method):
    """Returns the id of a world of one's own with a method of its own."""
    name = f"leaky_{abs(hash(method))}"
    told = f"""
if "lab/{name}-v1" not in WORLDS:
    WORLDS.add("lab/{name}-v1", Entry("{name}:Leaky"))
"""
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(WORLD).format(method=method) + told)
    monkeypatch.syspath_prepend(tmp_path)
    return f"{name}:lab/{name}-v1"


@pytest.mark.parametrize("kind", LEAKS)
def test_a_world_of_ones_own_that_leaks_is_refused(kind, tmp_path, monkeypatch):
    task = leaky(tmp_path, monkeypatch, LEAKS[kind])
    with pytest.raises(InvalidValueError, match="the world goes another way when episode 1"):
        iv.evaluate(acts, task, "P0", episodes=2, max_steps=4)


@pytest.mark.parametrize("told", BREAKS)
def test_a_world_of_ones_own_that_breaks_a_rule_of_scores_is_refused(told, tmp_path, monkeypatch):
    task = leaky(tmp_path, monkeypatch, BREAKS[told])
    with pytest.raises(InvalidValueError, match=told):
        iv.evaluate(acts, task, "P0", episodes=2, max_steps=4)


def test_an_honest_world_of_ones_own_passes(tmp_path, monkeypatch):
    task = leaky(tmp_path, monkeypatch, "more(self):\n            pass")
    assert len(iv.evaluate(acts, task, "P0", episodes=2, max_steps=4)) == 2


def test_a_score_that_some_episodes_lack_says_of_how_many_it_is():
    half = lambda steps: 1.0 if steps.episode % 2 else float("nan")  # noqa: E731
    table = str(scored("random", protocols="P0", metrics=[half]).table("markdown"))
    assert "1.000 (2 of 4)" in table
    assert "(n of m): n of m scored episodes have this score" in table


def test_a_twin_costs_two_of_a_hundred_steps(monkeypatch):
    steps = []
    driver = units.Driver

    class Counting(driver):
        def step(self, actions, index):
            steps.append(len(actions))
            return super().step(actions, index)

    monkeypatch.setattr(units, "Driver", Counting)
    chosen = [p.name for p in select_protocols(TASK) if p.name != "P0"][:4]
    iv.evaluate("random", TASK, chosen, episodes=50, max_steps=40)
    units_of_fifty = len(chosen) * 40
    assert units_of_fifty < len(steps) <= 1.03 * units_of_fifty, "calls of the policy"
    assert sum(steps) <= 1.001 * 50 * units_of_fifty, "steps of worlds"
