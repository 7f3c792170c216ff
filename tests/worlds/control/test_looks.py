"""Looks: independent streams, signs of seeds, switches, bodies that are seen, held-out pictures."""

import itertools

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

import interverse as iv
from interverse.art.pictures import (
    HELD_OUT_KINDS,
    procedural_backgrounds,
    procedural_floors,
    shelf,
)
from interverse.core.errors import InvalidValueError
from interverse.envs import remastered
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import open_gallery
from interverse.worlds.control.looks import SWITCHES, draw_look, factors, with_switches
from tests.conformance.cases import TEXTURES

FOUR = open_gallery(str(TEXTURES))
SEEDS, LARGEST = 4000, 0.06
LEAST_GAP, SHARE = 25.0, 0.99  # of 255: colour of the body against its surround in the picture


def numbers(look):
    """Every number of a look by name and component."""
    return {
        f"{name}[{i}]": float(value)
        for name, values in look.items()
        for i, value in enumerate(np.ravel(values))
    }


@pytest.mark.parametrize(("domain", "sign"), [("finger", 1), ("pendulum", -1)])
def test_no_two_factors_are_correlated(domain, sign):
    """Channels of one light share a base by design; numbers of different factors share nothing."""
    gallery = open_gallery(None)
    looks = [numbers(draw_look(domain, sign * s, gallery)) for s in range(1, SEEDS + 1)]
    names = [name for name in looks[0] if len({look[name] for look in looks[:50]}) > 1]
    table = np.array([[look[name] for name in names] for look in looks])
    r = np.corrcoef(table.T)
    pairs = [
        (abs(r[i, j]), names[i], names[j])
        for i, j in itertools.combinations(range(len(names)), 2)
        if names[i].split("[")[0] != names[j].split("[")[0]
    ]
    assert len(pairs) > 100
    assert max(pairs)[0] < LARGEST, max(pairs)


def test_signs_of_seeds():
    default, textured, recoloured = (draw_look("walker", seed, FOUR) for seed in (0, 9, -9))
    for factor in factors("walker"):
        assert np.array_equal(default[factor.name], factor.default)
    assert textured["floor/texture"] >= 0
    assert textured["background/texture"] >= 0
    assert np.array_equal(textured["floor/color_1"], default["floor/color_1"])
    assert recoloured["floor/texture"] == recoloured["background/texture"] == -1
    assert not np.array_equal(recoloured["floor/color_1"], default["floor/color_1"])
    assert not np.array_equal(recoloured["body/color"], textured["body/color"])


def test_the_same_seed_means_the_same_in_every_domain():
    shared = ("floor/texture", "light/ambient", "reflectance", "target/color")
    finger, reacher = (draw_look(domain, 77, FOUR) for domain in ("finger", "reacher"))
    assert all(np.array_equal(finger[name], reacher[name]) for name in shared)


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_changes_its_own_factors_alone(switch):
    look = draw_look("finger", 5, FOUR)
    alone = with_switches(look, "finger", (switch,))
    others = with_switches(look, "finger", [s for s in SWITCHES if s != switch])
    for factor in factors("finger"):
        mine = factor.switch == switch
        assert np.array_equal(alone[factor.name], look[factor.name] if mine else factor.default)
        assert np.array_equal(others[factor.name], factor.default if mine else look[factor.name])


def body_gap(env):
    """Distance of the body's mean colour from that of a ring around it, of 255.

    None where the body is out of sight: some starts are at the edge of the picture.
    """
    seen = env.observe()
    model = env.world._stages[0].physics.model
    materials = [model.name2id(name, "material") for name in ("self", "effector")]
    geoms = [g for g in range(model.ngeom) if model.geom_matid[g] in materials]
    body = np.isin(seen["segmentation"][0], geoms)
    if body.sum() < 5:
        return None
    ring = binary_dilation(body, iterations=3) & ~binary_dilation(body)
    pixels = seen["pixels"].transpose(1, 2, 0).astype(float)
    return float(np.linalg.norm(pixels[body].mean(axis=0) - pixels[ring].mean(axis=0)))


def gaps(domain, seeds, **options):
    env = iv.make(
        f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1",
        observation=("pixels", "segmentation"),
        frame_stack=1,
        quality="fast",
        **options,
    )
    found = []
    for seed in seeds:
        env.reset(seed=abs(seed), options={"visual_seed": seed})
        found.append(body_gap(env))
    env.close()
    seen = [gap for gap in found if gap is not None]
    assert len(seen) >= SHARE * len(found)
    return np.array(seen)


def test_the_body_stays_visible():
    """A few looks of one domain; the slow test has all ten and the generated pictures."""
    assert gaps("cartpole", range(1, 31), textures=str(TEXTURES)).min() > LEAST_GAP


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("domain", DOMAINS)
def test_the_body_stays_visible_in_nearly_every_look(domain):
    found = gaps(domain, [*range(1, 201), *range(-100, 0)])
    assert np.mean(found > LEAST_GAP) >= SHARE, np.sort(found)[:5]


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
