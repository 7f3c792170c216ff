"""Laws 1 to 7 of the design, on every registered world."""

from __future__ import annotations

import contextlib
import warnings

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.envs.snapshot import Snapshot
from interverse.envs.values import to_numpy
from tests.conformance.cases import (
    CASES,
    Case,
    as_numpy,
    chosen,
    leaves,
    play,
    same,
    same_play,
    some_action,
    some_value,
    state,
    writable,
)

SEEDS = st.integers(0, 2**32 - 1)
few = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
HEAVY = ("control/", "rooms/", "trifinger/stacked_", "trifinger/creative", "trifinger/general")
every_world = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(scope="module")
def worlds():
    """One environment per case, made once: laws must hold whatever was done before a reset."""
    made: dict[str, object] = {}

    def get(case: Case):
        if str(case) not in made:
            made[str(case)] = case.make()
        return made[str(case)]

    yield get
    for env in made.values():
        env.close()


def try_do(env, name, rng):
    """Returns the outcome of a do on one variable, or None where it was refused."""
    variable = env.unwrapped.variables[name]
    value = some_value(variable, env.unwrapped.values[name], rng)
    try:
        return env.unwrapped.do({name: value})
    except iv.InterventionError:
        return None


@every_world
@few
@given(seed=SEEDS)
def test_same_seed_and_actions_give_the_same_bits(worlds, case, seed):
    env = worlds(case)
    first = env.reset(seed=seed)[0], *play(env, seed, case.steps)
    second = env.reset(seed=seed)[0], *play(env, seed, case.steps)
    assert same(first[0], second[0])
    assert same_play(list(first[1:]), list(second[1:]))


@every_world
def test_a_batch_equals_its_single_worlds(worlds, case):
    """Of so many worlds that a processor takes some of their numbers at a time, some apart."""
    seed, n = 11, 3 if case.id.startswith(HEAVY) else 17
    env = worlds(case)
    venv = case.make_vec(n, threads=2)
    name = writable(env)[-1]
    batch_obs, _ = venv.reset(seed=seed)
    rng = np.random.default_rng(0)
    env.reset(seed=seed)
    value = some_value(env.unwrapped.variables[name], env.unwrapped.values[name], rng)
    outcome = None
    rows = [batch_obs]
    rewards = []
    for t in range(case.steps):
        if t == 2:
            outcome = venv.unwrapped.do({name: value}, worlds=[0, 2])
        actions = np.stack([some_action(env, seed + i, t) for i in range(n)])
        observation, reward, *_ = venv.step(actions)
        rows.append(observation)
        rewards.append(reward)
    for i in range(n):
        observation, _ = env.reset(seed=seed + i)
        assert all(same(x, y[i]) for x, y in zip(leaves(observation), leaves(rows[0]), strict=True))
        for t in range(case.steps):
            if t == 2 and outcome.applied[i]:
                env.unwrapped.do({name: value})
            observation, reward, *_ = env.step(some_action(env, seed + i, t))
            mine, theirs = leaves(observation), leaves(rows[t + 1])
            assert all(same(x, y[i]) for x, y in zip(mine, theirs, strict=True)), (i, t)
            assert reward == rewards[t][i]
    venv.close()


@every_world
@few
@given(seed=SEEDS)
def test_doing_what_holds_changes_nothing(worlds, case, seed):
    env = worlds(case)
    env.reset(seed=seed)
    play(env, seed, 2)
    before = state(env)
    for name in writable(env):
        outcome = env.unwrapped.do({name: env.unwrapped.values[name]})
        assert bool(outcome.applied)
        assert outcome.changed == frozenset(), name
    assert same(before, state(env))


@every_world
@few
@given(seed=SEEDS)
def test_do_sets_its_variable_and_changes_only_effects(worlds, case, seed):
    env = worlds(case)
    rng = np.random.default_rng(seed)
    applied = 0
    for name in chosen(writable(env)):
        env.reset(seed=seed)
        before = dict(env.unwrapped.values)
        outcome = try_do(env, name, rng)
        if outcome is None:
            assert all(same(before[n], v) for n, v in env.unwrapped.values.items())
            continue
        applied += 1
        after = dict(env.unwrapped.values)
        changed = {n for n in after if not np.array_equal(after[n], before[n])}
        assert changed == set(outcome.changed)
        assert changed <= {name} | env.unwrapped.graph.effects_now(name), name
    assert applied > 0


@every_world
@few
@given(seed=SEEDS)
def test_do_moves_only_descendants_later(worlds, case, seed):
    """The same noise and actions: whatever differs later is an effect in the graph."""
    env = worlds(case)
    rng = np.random.default_rng(seed)
    names = writable(env)
    for name in [names[i] for i in rng.choice(len(names), size=min(4, len(names)), replace=False)]:
        env.reset(seed=seed)
        graph = env.unwrapped.graph
        play(env, seed, case.steps)
        fact = dict(env.unwrapped.values)
        env.reset(seed=seed)
        if try_do(env, name, rng) is None:
            continue
        play(env, seed, case.steps)
        acted = dict(env.unwrapped.values)
        changed = {n for n in fact if not np.array_equal(fact[n], acted[n])}
        assert changed <= {name} | graph.effects_later(name) | env.unwrapped.graph.effects_later(
            name
        ), name


@every_world
@few
@given(seed=SEEDS)
def test_interventions_commute_unless_one_causes_the_other(worlds, case, seed):
    env = worlds(case)
    rng = np.random.default_rng(seed)
    names = writable(env)
    a, b = (names[i] for i in rng.choice(len(names), size=2, replace=False))
    graph = env.unwrapped.graph
    if b in graph.effects_now(a) or a in graph.effects_now(b):
        return
    env.reset(seed=seed)
    values = {
        n: some_value(env.unwrapped.variables[n], env.unwrapped.values[n], rng) for n in (a, b)
    }
    results = []
    for first, second in ((a, b), (b, a)):
        env.reset(seed=seed)
        try:
            env.unwrapped.do({first: values[first]})
            env.unwrapped.do({second: values[second]})
        except iv.InterventionError:
            continue
        results.append((dict(env.unwrapped.values), play(env, seed, 2)))
    if len(results) == 2:
        assert same(results[0][0], results[1][0])
        assert same_play(results[0][1], results[1][1])


@every_world
def test_do_at_the_reset_is_do_after_it(worlds, case):
    """But for what a reset draws or settles from the value set: those follow it in the graph."""
    env = worlds(case).unwrapped
    rng = np.random.default_rng(7)
    checked = 0
    for name in chosen(writable(env)):
        env.reset(seed=5)
        value = some_value(env.variables[name], env.values[name], rng)
        try:
            after = env.do({name: value}).observation
            held, later = dict(env.values), play(env, 5, 1)
            at_reset, _ = env.reset(seed=5, options={"do": {name: value}})
        except iv.InterventionError:
            continue
        checked += 1
        moved = {n for n, v in env.values.items() if not np.array_equal(v, held[n])}
        states = {n for n in env.graph.effects_later(name) if env.variables[n].kind == "state"}
        assert moved <= (env.graph.effects_now(name) | states) - {name}, (name, moved)
        if not moved:
            assert same(after, at_reset), name
            assert same_play(later, play(env, 5, 1)), name
    assert checked > 0


@every_world
@few
@given(seed=SEEDS)
def test_a_and_b_do_not_meet(worlds, case, seed):
    env = worlds(case)
    env.reset(seed=0)
    rng = np.random.default_rng(seed)
    for name, variable in env.unwrapped.variables.items():
        assert variable.domain.contains(variable.default), name
        assert variable.domain.contains(env.unwrapped.values[name]), name
        assert variable.domain.contains(variable.domain.sample(rng)), name
        if variable.space_a is None:
            assert variable.space_b is None
            continue
        a, b = variable.space_a, variable.space_b
        sample = a.sample(rng)
        assert a.contains(sample), name
        assert variable.domain.contains(sample), name
        if b is not None:
            other = b.sample(rng)
            assert b.contains(other), name
            assert not a.contains(other), name
            assert not b.contains(sample), name
            edge = np.where(a.high == b.low, a.high, np.where(a.low == b.high, a.low, sample))
            assert not (a.contains(edge) and b.contains(edge)), name


@every_world
@few
@given(seed=SEEDS)
def test_snapshot_restore_continue_is_continue(worlds, case, seed):
    env = worlds(case)
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    play(env, seed, 2)
    names = writable(env)
    try_do(env, names[int(rng.integers(len(names)))], rng)
    saved = env.unwrapped.snapshot().to_bytes()
    seen = env.unwrapped.observe()
    ahead = play(env, seed, case.steps, start=2)
    other = case.make()
    back = other.unwrapped.restore(Snapshot.from_bytes(saved))
    assert same(back, seen)
    assert same_play(play(other, seed, case.steps, start=2), ahead)
    env.reset(seed=1, options={"snapshot": Snapshot.from_bytes(saved)})
    assert same_play(play(env, seed, case.steps, start=2), ahead)
    other.close()


@every_world
def test_a_counterfactual_without_change_is_the_fact(worlds, case):
    env = worlds(case)
    name = writable(env)[0]
    rng = np.random.default_rng(1)

    def meddling(observations):
        if env.unwrapped.driver.steps[0] == 2:
            try_do(env, name, rng)
        return np.stack([some_action(env, 4, int(env.unwrapped.driver.steps[0]))])

    fact = iv.rollout(env, meddling, seed=9, max_steps=case.steps)
    twin = iv.counterfactual(fact, {})
    assert same(fact.observations, twin.observations)
    assert same(dict(fact.values), dict(twin.values))
    assert fact.rewards.tobytes() == twin.rewards.tobytes()
    assert fact.fingerprint == twin.fingerprint


@every_world
def test_observations_and_rewards_lie_in_their_spaces(worlds, case):
    env = worlds(case)
    low, high = env.unwrapped.world.reward_range
    observation, _ = env.reset(seed=2)
    assert env.observation_space.contains(as_numpy(observation))
    for observation, reward in play(env, 2, case.steps):
        assert env.observation_space.contains(as_numpy(observation))
        assert low <= reward <= high


@every_world
def test_observations_share_no_memory_with_the_world(worlds, case):
    env = worlds(case)
    first, _ = env.reset(seed=2)
    copy = [leaf.copy() for leaf in leaves(first)]
    play(env, 2, case.steps)
    assert all(same(a, b) for a, b in zip(leaves(first), copy, strict=True))


@pytest.mark.parametrize("case", [c for c in CASES if "device" not in c.options], ids=str)
def test_gymnasium_and_sb3_accept_it(case):
    from stable_baselines3.common.env_checker import check_env as check_env_sb3

    env = gym.make(f"interverse:{case.id}", **case.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)
        check_env_sb3(env.unwrapped, skip_render_check=True)
    assert env.unwrapped.spec is not None
    env.close()


@every_world
def test_every_variable_is_a_node_and_every_node_a_variable(worlds, case):
    env = worlds(case)
    env.reset(seed=0)
    graph, variables = env.unwrapped.graph, env.unwrapped.variables
    names = {n.removesuffix("'") for n in graph.nodes}
    assert names == set(variables)
    for name, value in env.unwrapped.values.items():
        variable = variables[name]
        assert value.shape == variable.shape
        assert value.dtype == variable.dtype


ON_TENSORS = [
    case
    for case in CASES
    if not case.id.startswith(("control/", "rooms/", "toy/")) and "device" not in case.options
]


def told(case, device):
    """Returns all that two worlds give, with a `do` on each variable in one world."""
    venv = case.make_vec(2, device=device, threads=1)
    seen, _ = venv.reset(seed=3)
    first = next(iter(seen.values())) if isinstance(seen, dict) else seen
    assert type(first).__name__ == ("Tensor" if device == "torch" else "ndarray")
    out, rng, env = [seen], np.random.default_rng(4), venv.unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of values that the world refuses
        for name in chosen(writable(venv)):
            value = some_value(env.variables[name], to_numpy(env.values[name])[1], rng)
            out.append(env.do({name: value}, worlds=[1]).applied)
    for t in range(2):
        out += venv.step(np.stack([some_action(venv, i, t) for i in range(2)]))[:2]
    saved = env.snapshot()
    out += [array for _, array in sorted(saved.arrays.items())] + [env.restore(saved)]
    with contextlib.suppress(InvalidValueError):  # of worlds without goals
        everyone = np.arange(2)
        goal = env.world.sample_goal(everyone, Noise(everyone, everyone, everyone), "A")
        out += [rows for _, rows in sorted(goal.items())]
    venv.close()
    return [leaf for part in out for leaf in leaves(part)]


@pytest.mark.parametrize("case", ON_TENSORS, ids=str)
def test_worlds_of_tensors_are_those_of_arrays(case):
    pytest.importorskip("torch")
    for ours, theirs in zip(told(case, "cpu"), told(case, "torch"), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)


@every_world
def test_what_an_env_hands_out_cannot_change_a_world(worlds, case):
    """Envs of a process share graphs and spaces: an edit through one would act in all others."""
    env = worlds(case).unwrapped
    env.reset(seed=0)
    with pytest.raises(nx.NetworkXError):
        env.graph.remove_edges_from(list(env.graph.edges))
    with pytest.raises(TypeError):
        env.layout["another"] = slice(0, 1)
    for variable in env.world.variables.values():
        spaces = [s for s in (variable.domain, variable.space_a, variable.space_b) if s is not None]
        for held in (variable, *spaces):
            for name in ("default", "least", "most", "options"):
                assert not getattr(getattr(held, name, None), "flags", Fixed).writeable, name
                assert not isinstance(getattr(held, name, None), list)


class Fixed:
    writeable = False


@every_world
def test_it_renders_a_picture(case):
    env = case.make(render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.std() > 5, "an empty picture"
    env.close()
