"""Pictures to train with and pictures held out: spaces, seeds that keep to them, protocols."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.art.pictures import (
    HELD_OUT_KINDS,
    procedural_backgrounds,
    procedural_floors,
    shelf,
)
from interverse.core.errors import InvalidValueError
from interverse.envs import remastered
from tests.conformance.cases import TEXTURES

WALKER = "control/walker_walk-v1"
SETS = {"floor": procedural_floors(), "background": procedural_backgrounds()}


@pytest.mark.parametrize("part", SETS)
def test_a_and_b_share_no_picture_and_b_holds_kinds_never_trained_with(part):
    pictures = SETS[part]
    divided = shelf(pictures)
    assert sorted({*divided.a, *divided.b}) == list(range(pictures.count))
    assert not {*divided.a} & {*divided.b}
    trained = {pictures.kind(i) for i in divided.a}
    held = {pictures.kind(i) for i in divided.b}
    assert trained == held - set(HELD_OUT_KINDS), "held-out pictures of every kind trained with"
    assert held & set(HELD_OUT_KINDS)
    assert 0.25 < len(divided.b) / pictures.count < 0.4


def test_the_variables_say_so():
    env = iv.make(WALKER, observation="state")
    env.reset(seed=0, options={"visual_seed": 5})
    for part in SETS:
        variable = env.variables[f"{part}/texture"]
        assert variable.space("A").contains(-1), "the default surface is a training one"
        assert variable.space("A_B").contains(int(env.values[f"{part}/texture"]))
        number = int(env.values[f"{part}/texture"])
        names = shelf(SETS[part]).kind_names
        assert names[int(env.values[f"{part}/kind"])] == SETS[part].kind(number)
    changed = env.do({"floor/texture": 383}).changed
    assert {"floor/texture", "floor/kind"} <= changed
    assert "background/kind" not in changed
    with pytest.raises(iv.InterventionError):
        env.do({"floor/kind": 1})
    env.close()


@pytest.mark.parametrize("space", ["A", "B"])
def test_a_visual_seed_can_keep_to_one_space(space):
    env = iv.make(WALKER, observation="state", pictures=space)
    for seed in range(1, 40):
        env.reset(seed=0, options={"visual_seed": seed})
        for part in SETS:
            number = int(env.values[f"{part}/texture"])
            assert env.variables[f"{part}/texture"].space(space).contains(number)
    env.close()


def test_a_benchmark_whose_test_shows_no_picture_of_its_training():
    pair = remastered.visual_generalization(
        "cartpole/balance", 50, held_out_pictures=True, observation="state"
    )
    assert [env.world.options.pictures for env in pair] == ["A", "B"]
    with pytest.raises(InvalidValueError, match="shows no pictures"):
        remastered.classic("cartpole/balance", held_out_pictures=True)
    with pytest.raises(InvalidValueError, match="legacy_draws"):
        iv.make(WALKER, pictures="A", legacy_draws=True)


def test_protocols_draw_from_the_spaces():
    options = {"observation": "state", "max_steps": 2}
    asked = ["pictures_a", "pictures_b"]
    results = iv.evaluate("random", WALKER, asked, episodes=12, **options)
    for name, space in zip(asked, "AB", strict=True):
        part = results.select(protocol=name)
        for surface in SETS:
            allowed = part.about(f"{surface}/texture")[f"options_{space.lower()}"]
            assert np.isin(part.values(f"{surface}/texture")[:, 0], allowed).all()


def test_a_folder_of_one_s_own_is_divided_too():
    env = iv.make(WALKER, observation="state", textures=str(TEXTURES))
    variable = env.variables["floor/texture"]
    assert variable.space_a.options == (-1, 0)
    assert variable.space_b.options == (1,)
    env.close()


def test_an_intervention_before_the_first_step_fills_the_whole_stack():
    env = iv.make(WALKER, image_size=24, quality="fast", frame_stack=3)
    env.reset(seed=0)
    seen = env.do({"visual_seed": 7}).observation.reshape(3, 3, 24, 24)
    np.testing.assert_array_equal(seen[0], seen[2])
    env.close()
