"""Random interventions by the thousand: nothing breaks, escapes, or changes when refused."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.worlds.trifinger.tasks import TASKS

HEAVY = ("creative_stacked_blocks", "stacked_blocks", "general")


def values_for(variable, count, rng):
    """Returns one value per world: from A, B, the domain, or nowhere near it."""
    kind = rng.integers(4)
    spaces = (variable.space_a, variable.space_b, variable.domain)
    space = spaces[kind] if kind < 3 and spaces[kind] is not None else variable.domain
    u = rng.random((count, space.draws))
    out = np.asarray(space.from_uniform(u))
    if kind == 3 and not variable.domain.integral:
        out = out + rng.normal(0.0, 0.3, out.shape)
    return out


def meddle(task, *, worlds, rounds, seed):
    """Plays with random interventions; returns how many were applied and how many refused."""
    rng = np.random.default_rng(seed)
    venv = iv.make_vec(f"trifinger/{task}-v1", num_envs=worlds, skip_frame=2)
    venv.reset(seed=seed)
    env = venv.unwrapped
    names = [n for n, v in env.variables.items() if not v.read_only]
    applied = refused = 0
    for turn in range(rounds):
        chosen = rng.choice(names, size=rng.integers(1, 4), replace=False)
        variables = env.variables
        given = {str(n): values_for(variables[n], worlds, rng) for n in chosen}
        before = env.snapshot().arrays
        outcome = env.do(given, check=bool(rng.integers(2)))
        after = env.snapshot().arrays
        for world in np.flatnonzero(~outcome.applied):
            assert outcome.reasons[world]
            for name, rows in before.items():
                assert rows[world].tobytes() == after[name][world].tobytes(), name
        applied += int(outcome.applied.sum())
        refused += int((~outcome.applied).sum())
        observation, reward, *_ = venv.step(rng.uniform(-1, 1, (worlds, 9)).astype(np.float32))
        assert np.all(np.isfinite(observation))
        assert np.all(np.isfinite(reward))
        check_inside(env.world)
        if turn % 10 == 9:
            venv.reset(seed=seed + turn)
    venv.close()
    return applied, refused


def check_inside(world):
    """No block's centre may be beyond the wall or below the floor."""
    place, used = world._store.rows["block/position"], world._store.rows["block/used"]
    if used.any():
        radius = np.hypot(place[..., 0], place[..., 1])[used]
        assert radius.max() < 0.245
        assert place[..., 2][used].min() > -0.01


@pytest.mark.parametrize("task", [t for t in TASKS if t not in HEAVY])
def test_a_few_hundred_interventions(task):
    applied, refused = meddle(task, worlds=8, rounds=40, seed=1)
    assert applied > 50
    assert refused > 20


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_ten_thousand_interventions(task):
    worlds = 16 if task in HEAVY else 50
    applied, refused = meddle(task, worlds=worlds, rounds=10_000 // worlds, seed=2)
    assert applied + refused >= 10_000
    assert min(applied, refused) > 1000
