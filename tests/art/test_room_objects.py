"""The 24 families: what they are made of, how their states move and look, that they vary."""

import numpy as np
import pytest

from interverse.art.meshes import bevelled_box
from interverse.art.rooms.item import Item, Part, Surface, is_seen, surface_key
from interverse.art.rooms.objects import CLASSES, build_item
from interverse.worlds.rooms.scene import Palette, item_spec
from tests.worlds.rooms.preview import Look, Studio, shown

TRAITS = {cls: traits for cls, (_, traits) in CLASSES.items()}
PAIRS = [(cls, prop) for cls in CLASSES for prop in TRAITS[cls]]
MOST_FACES = 5000


def item_of(cls: str, seed: int = 0) -> Item:
    return build_item(cls, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def items() -> dict[str, list[Item]]:
    return {cls: [item_of(cls, seed) for seed in range(8)] for cls in CLASSES}


def test_there_are_24_classes_in_order_and_57_verbs_on_them():
    assert list(CLASSES) == sorted(CLASSES)
    assert len(CLASSES) == 24
    verbs = {"open": 2, "on": 2, "dirty": 2, "broken": 1}
    assert sum(verbs[prop] for _, prop in PAIRS) == 57
    having = {prop: sum(prop in traits for traits in TRAITS.values()) for prop in verbs}
    assert having == {"open": 11, "on": 8, "dirty": 6, "broken": 7}


@pytest.mark.parametrize("cls", CLASSES)
def test_items_stand_where_they_should_and_are_as_large_as_they_say(cls, items):
    for item in items[cls]:
        low, high = item.bounds()
        np.testing.assert_allclose(high - low, item.size, atol=1e-9)
        if item.stand == "wall":
            assert high[1] == pytest.approx(0)
            np.testing.assert_allclose((low + high)[[0, 2]], 0, atol=1e-9)
        else:
            assert low[2] == pytest.approx(0)
            np.testing.assert_allclose((low + high)[:2], 0, atol=1e-9)
        assert max(item.size) < 2.6
        assert item.faces <= MOST_FACES
        assert item.properties == TRAITS[cls]


@pytest.mark.parametrize("cls", CLASSES)
def test_meshes_are_sound(cls, items):
    for item in items[cls]:
        for part in item.parts:
            mesh = part.mesh
            assert np.isfinite(mesh.texcoords).all()
            np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-3)
            a, b, c = (mesh.vertices[mesh.faces[:, corner]] for corner in range(3))
            out = (np.cross(b - a, c - a) * mesh.normals[mesh.faces].mean(axis=1)).sum(axis=1)
            assert (out < -1e-9).mean() < 0.02, part.name  # a crumpled blanket folds over


@pytest.mark.parametrize("cls", CLASSES)
def test_the_same_generator_gives_the_same_item_and_others_differ(cls, items):
    first, again = items[cls][0], item_of(cls, 0)
    for part, same in zip(first.parts, again.parts, strict=True):
        np.testing.assert_array_equal(part.mesh.vertices, same.mesh.vertices)
        assert (part.surface, part.alternate) == (same.surface, same.alternate)
    assert len({item.size for item in items[cls]}) == len(items[cls])
    assert len({part.surface for item in items[cls] for part in item.parts}) > 5


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if "open" in TRAITS[cls]])
def test_opening_moves_parts_but_not_far(cls, items):
    for item in items[cls]:
        (low, high), (low_open, high_open) = item.bounds(), item.bounds({"open": 0.8})
        reach = max(item.size)
        assert (low_open > low - 1.05 * reach).all()
        assert (high_open < high + 1.05 * reach).all()
        moved = {p.name for p in item.parts if not np.allclose(item.poses(0.8)[p.name], np.eye(4))}
        assert moved
        if item.stand != "wall":
            assert low_open[2] > -0.002  # nothing opens into the floor


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if "broken" in TRAITS[cls]])
def test_what_breaks_stays_near_its_place(cls, items):
    for item in items[cls]:
        low, high = item.bounds({"broken": 1.0})
        assert low[2] >= item.bounds()[0][2] - 1e-6
        assert (high - low)[:2].max() < 2.9 * max(item.size[:2])


@pytest.mark.parametrize(("cls", "prop"), PAIRS)
def test_every_change_of_state_is_seen(cls, prop):
    """More than 1000 pixels change where the item's box is 100 pixels wide or high."""
    studio = Studio(item_of(cls, 3), Look(near=2.0))
    before, after = (studio.draw(state, 160) for state in shown(cls, prop))
    changed = (before != after).any(axis=-1).sum()
    rows, columns = np.nonzero(studio.mask(size=160))
    assert max(np.ptp(rows), np.ptp(columns)) >= 100
    assert changed > 1000


def test_light_grows_with_the_state():
    studio = Studio(item_of("FloorLamp", 1))
    means = [studio.draw({"on": on}).mean() for on in (0.0, 0.5, 0.7, 0.9, 1.0)]
    assert means == sorted(means)
    assert len(set(means)) == len(means)


def test_a_door_half_open_is_neither_open_nor_closed():
    studio = Studio(item_of("Fridge", 1))
    masks = [studio.mask({"open": openness}).sum() for openness in (0.0, 0.4, 0.8)]
    assert len(set(masks)) == 3


def test_a_broken_laptop_still_glows_in_its_own_way():
    studio = Studio(item_of("Laptop", 2))
    shots = [
        studio.draw({"open": 0.8, "on": on, "broken": broken})
        for on in (0.0, 1.0)
        for broken in (0.0, 1.0)
    ]
    for number, shot in enumerate(shots):
        for other in shots[number + 1 :]:
            assert (shot != other).any(axis=-1).sum() > 300


def test_the_longest_key_that_holds_names_the_surface():
    part = Part(
        name="pane",
        mesh=bevelled_box((1, 1, 1)),
        surface=Surface(),
        alternate={name: Surface() for name in ("on", "broken", "on+broken")},
        hidden_when="dirty",
    )
    assert surface_key(part, {}) == ""
    assert surface_key(part, {"on": 0.5}) == "on"
    assert surface_key(part, {"on": 0.49, "broken": 1.0}) == "broken"
    assert surface_key(part, {"on": 1.0, "broken": 1.0}) == "on+broken"
    assert is_seen(part, {"on": 1.0})
    assert not is_seen(part, {"dirty": 0.5})


def test_assembling_names_everything_under_the_prefix_and_shares_textures():
    import mujoco

    spec = mujoco.MjSpec()
    palette = Palette(spec)
    item = item_of("Microwave", 0)
    placed = [item_spec(palette, item, name) for name in "ab"]
    model = spec.compile()
    for assembled in placed:
        assert all(skin.geom.startswith(f"{assembled.body}/") for skin in assembled.skins)
        positions = assembled.positions({"open": 0.5})
        assert positions == {f"{assembled.body}/door": 0.5 * item.parts[-3].joint.travel}
        looks = assembled.looks({"on": 1.0})
        window = looks[f"{assembled.body}/window"]
        assert window.emission == pytest.approx(0.75)
        assert model.mat(window.material).id >= 0
    surfaces = [s for part in item.parts for s in (part.surface, *part.alternate.values())]
    assert model.ntex == len({s.texture for s in surfaces if s.texture is not None})
    assert model.ngeom == 2 * len(item.parts)
