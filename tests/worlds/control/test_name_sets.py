"""Where the values of a control world's variables come from: every name has one place."""

from __future__ import annotations

import pytest

import interverse as iv
from interverse.worlds import WORLDS
from interverse.worlds.control.names import ELSEWHERE, SEEDS, control_names, given_values
from interverse.worlds.control.options import ControlOptions

CONTROL = [name for name in WORLDS if name.startswith("control/")]


@pytest.mark.parametrize("distraction", [None, "easy"])
@pytest.mark.parametrize("task", CONTROL)
def test_every_variable_comes_from_one_place(task, distraction):
    world = iv.make(task, observation="state", distraction=distraction).unwrapped.world
    options, declared = world.options, tuple(world.variables)
    moving = [name for name in declared if name.startswith("distraction/")]
    assert bool(moving) == (distraction is not None)
    names = control_names(options, declared, moving)
    look = [name for name in names.look if name in declared]
    kinds = [name for name in ELSEWHERE if name in declared and name not in names.state]
    every = [*names.state, *look, *names.kept, *options.dynamics_names, *kinds]
    assert sorted(every) == sorted(declared)
    for seed, drawn in names.drawn.items():
        assert set(drawn) & set(declared) <= set(world.graph.successors(seed))


def test_what_is_given_holds_in_every_episode():
    options = ControlOptions(visual_seed=(1, 9), dynamics_seed=3, defaults={"reflectance": 0.5})
    assert given_values(options) == {"dynamics_seed": 3, "reflectance": 0.5}
    options = ControlOptions(defaults={"visual_seed": 7})
    assert given_values(options) == {"visual_seed": 7}, "a default goes before the option's"
    assert tuple(ControlOptions(visual_seed=2).defaults) == ()
    assert SEEDS == ("visual_seed", "dynamics_seed")
