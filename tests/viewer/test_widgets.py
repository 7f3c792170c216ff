"""Controls follow from declarations, and a control that nobody touched changes no bit."""

import functools

import gymnasium as gym
import numpy as np
import pytest

from interverse.envs import make
from interverse.viewer.controls import TOP, shown, value_from, widget_of, widgets

WORLDS = (
    "blocks/observed-3-v1",
    "chemistry/chain-v1",
    "control/cheetah_run-v1",
    "rooms/single-v1",
    "trifinger/pushing-v1",
    "trifinger/towers-v1",
    "tutorial/slider-v1",
)


@functools.cache
def made(world):
    env = make(world)
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module", params=WORLDS)
def env(request):
    return made(request.param)


def widget(env, name):
    return widget_of(env.variables[name], env.values[name])


def test_every_variable_has_a_control(env):
    folders = widgets(env.variables, env.values)
    names = [w.name for group in folders.values() for w in group]
    assert sorted(names) == sorted(env.variables)
    for folder, group in folders.items():
        for w in group:
            assert w.name == (w.label if folder == TOP else f"{folder}/{w.label}")
            assert w.read_only == env.variables[w.name].read_only


def test_an_untouched_control_means_the_present_value_to_the_last_bit(env):
    for name, value in env.values.items():
        w = widget(env, name)
        again = value_from(w, value, shown(w, value))
        assert again.shape == value.shape
        assert np.array_equal(again, value), name


def test_ranges_hold_the_value_and_the_spaces(env):
    for name, variable in env.variables.items():
        w = widget(env, name)
        value = np.ravel(env.values[name])
        assert np.all(np.array(w.low) <= value), name
        assert np.all(value <= np.array(w.high)), name
        if w.kind == "slider":
            assert w.bounded
            assert w.step > 0
            for space in (variable.space_a, variable.space_b):
                if space is not None:
                    assert w.low[0] <= space.low <= space.high <= w.high[0], name


def test_every_whole_number_and_every_action_of_a_list_has_a_name(env):
    for variable in env.variables.values():
        if variable.labels:
            numbers = int(variable.domain.high - variable.domain.low) + 1
            assert len(set(variable.labels)) == len(variable.labels) == numbers, variable.name
    names, space = env.world.action_names(0), env.action_space
    if isinstance(space, gym.spaces.Box):
        assert names == ()
        return
    sizes = [space.n] if isinstance(space, gym.spaces.Discrete) else space.nvec.tolist()
    assert [len(set(part)) for part in names] == sizes


@pytest.mark.parametrize(
    ("world", "name", "kind"),
    [
        ("trifinger/pushing-v1", "gravity", "slider"),
        ("trifinger/pushing-v1", "robot/action_delay", "slider"),
        ("trifinger/pushing-v1", "block_0/color", "color"),
        ("trifinger/pushing-v1", "block_0/orientation", "rotation"),
        ("trifinger/pushing-v1", "block_0/cartesian_position", "vector"),
        ("trifinger/pushing-v1", "joint_positions", "parts"),
        ("chemistry/chain-v1", "object_0/color", "choice"),
        ("rooms/single-v1", "object/class", "choice"),
        ("chemistry/chain-v1", "object_0/position", "vector"),
        ("chemistry/chain-v1", "edge_0_1", "switch"),
        ("chemistry/chain-v1", "palette", "text"),
        ("control/cheetah_run-v1", "visual_seed", "number"),
        ("control/cheetah_run-v1", "body/color", "color"),
        ("control/cheetah_run-v1", "light/ambient", "vector"),
        ("control/cheetah_run-v1", "qpos", "parts"),
    ],
)
def test_the_kind_follows_from_the_declaration(world, name, kind):
    assert widget(made(world), name).kind == kind


def test_a_and_b_are_marked_and_a_bit_more_is_shown():
    mass = widget(made("tutorial/slider-v1"), "box/mass")
    assert mass.marks == ((0.3, "A"), (0.6, "A|B"), (0.9, "B"))
    assert mass.low[0] == pytest.approx(0.15)  # where a do is refused
    assert mass.high[0] == pytest.approx(1.05)
    assert mass.step == 0.002
    assert "unit kg" in mass.hint
    assert "A 0.3 to 0.6" in mass.hint


def test_only_what_was_touched_is_changed():
    env, name = made("trifinger/pushing-v1"), "block_0/cartesian_position"
    env.do({name: [0.012345678912, -0.1, 0.0325]})
    w, now = widget(env, name), env.values[name]
    given = (*shown(w, now)[:1], 0.05, *shown(w, now)[2:])
    assert value_from(w, now, given).tolist() == [now[0], 0.05, now[2]]


def test_rotations_are_angles_in_degrees():
    env = made("trifinger/pushing-v1")
    w = widget(env, "block_0/orientation")
    turned = value_from(w, env.values["block_0/orientation"], (0.0, 0.0, 90.0))
    assert turned == pytest.approx([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    assert shown(w, turned) == pytest.approx((0.0, 0.0, 90.0))


def test_text_that_is_no_json_says_what_is_wanted():
    env = made("chemistry/chain-v1")
    w = widget(env, "palette")
    with pytest.raises(ValueError, match=r"palette is 'half \[1'.*shape \[5, 3\]"):
        value_from(w, env.values["palette"], "half [1")
