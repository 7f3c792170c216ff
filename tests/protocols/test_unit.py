"""Units of an evaluation: a seed per episode, ended rows count no more, divergence is a row."""

import numpy as np
import pytest

from interverse.protocols import unit as units
from interverse.protocols.protocol import Protocol
from interverse.protocols.unit import EpisodeScorer
from interverse.sim import SimulationError

TASK = "tutorial/slider-v1"


def unit(**changes):
    given = {"options": {"max_steps": 5}, "protocol": Protocol(name="P0"), "seed": 3} | changes
    return units.Unit(task=TASK, number=0, episodes=4, **given)


def test_every_episode_gives_its_policy_a_seed_of_its_own():
    class Seeds:
        def __init__(self):
            self.given = []

        def reset(self, mask, seeds):
            self.given += np.asarray(seeds).tolist()

        def __call__(self, observations):
            return np.zeros((len(observations), 2), dtype=np.float32)

    policy = Seeds()
    units.run_unit(unit(), policy)
    mine = [s for s in policy.given if s]
    assert len(set(mine[:4])) == 4
    assert mine[:4] == [3 + (i << 32) for i in range(4)]


def test_an_episode_is_that_of_its_seed_and_number():
    import interverse as iv

    def rest(observations):
        return np.zeros((len(observations), 2), dtype=np.float32)

    returns = {}
    for seed in (0, 3):
        rows = units.run_unit(unit(seed=seed), rest)
        env = iv.make(TASK, max_steps=5)
        for row in rows:
            env.reset(seed=seed, options={"episode": row["episode"]})
            steps = [env.step(np.zeros(2, dtype=np.float32)) for _ in range(5)]
            assert row["return"] == sum(step[1] for step in steps)
        assert [row["seed"] for row in rows] == [seed] * 4
        returns[seed] = [row["return"] for row in rows]
    assert not set(returns[0]) & set(returns[3])


def test_random_episodes_of_a_unit_act_differently():
    rows = units.run_unit(unit(protocol=Protocol(name="P0")), "random")
    assert len({row["return"] for row in rows}) == 4


def test_rows_that_have_ended_count_no_more_steps():
    import interverse as iv

    venv = iv.make_vec(TASK, 2, autoreset_mode="disabled")
    venv.reset(seed=0)
    scorer = EpisodeScorer(venv.driver, (), {})
    none, first = np.zeros(2, dtype=bool), np.array([True, False])
    for terminated, success in ((none, none), (first, first), (none, none), (none, none)):
        scorer.after(np.array([-1.0, -1.0]), terminated, none, {"success": success})
    one, other = scorer.rows(TASK, Protocol(name="P0"), 0, np.arange(2))
    assert (one["length"], one["return"], one["score:success"]) == (2, -2.0, 1.0)
    assert (other["length"], other["return"], other["score:success"]) == (4, -4.0, 0.0)


def break_world_2(monkeypatch):
    """Lets the physics of world 2 break down at its fourth step."""
    driver = units.Driver

    class Breaking(driver):
        def __init__(self, id, world):
            super().__init__(id, world)
            inner = world.step

            def step(actions, worlds, noise):
                if 2 in worlds and self.steps[2] == 3:
                    raise SimulationError("the physics of world 2 broke down", [2])
                inner(actions, worlds, noise)

            world.step = step

    monkeypatch.setattr(units, "Driver", Breaking)


# The later intervention must leave the world that broke down alone.
@pytest.mark.parametrize("at", [(0,), (4,)])
def test_one_diverged_episode_is_a_row_and_the_others_go_on(monkeypatch, at):
    heavy = Protocol(name="heavy", variables={"box/mass": "B"}, at=at)
    plain = units.run_unit(unit(protocol=heavy), "random")
    break_world_2(monkeypatch)
    rows = units.run_unit(unit(protocol=heavy), "random")
    assert [row["refused"] for row in rows] == [False, False, True, False]
    assert rows[2]["reason"].startswith("diverged: the physics of world 2 broke down")
    assert [rows[i] for i in (0, 1, 3)] == [plain[i] for i in (0, 1, 3)]


def test_a_policy_sees_what_an_intervention_within_the_episode_changed():
    seen = []

    def policy(observations):
        seen.append(np.array(observations[0]))
        return np.zeros((len(observations), 2), dtype=np.float32)

    late = Protocol(name="late", variables={"box/position": "B"}, at=(2,))
    shown = []

    def look(world, step):
        shown.append(np.array(world.observe()[0]))

    units.play(unit(protocol=late), policy, np.arange(1), look)
    assert not np.allclose(seen[1], seen[2], atol=1e-3)
    assert all(np.array_equal(a, b) for a, b in zip(seen, shown, strict=False))


@pytest.mark.parametrize("number", [0, 2])
def test_units_of_one_seed_play_other_episodes(number):
    rows = units.run_unit(unit(), "random")
    other = units.Unit(
        task=TASK,
        options={"max_steps": 5},
        protocol=Protocol(name="P0"),
        seed=3,
        number=number + 1,
        episodes=4,
    )
    again = units.run_unit(other, "random")
    assert not {r["return"] for r in rows} & {r["return"] for r in again}
