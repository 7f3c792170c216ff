"""Pictures of rooms: repeatable, of true depth, and untouched outside the object acted on."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import interverse as iv
from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.kit import VARIANTS, cracked, soiled
from interverse.art.rooms.textures import BUILDING, KINDS, pixels
from interverse.core.errors import RenderError, UnknownNameError
from interverse.sim import filament
from interverse.worlds.rooms.actions import CLASS_NAMES
from interverse.worlds.rooms.pairs import box_of
from interverse.worlds.rooms.room import plan_room

SIZE = 96


@pytest.fixture(scope="module")
def env():
    made = iv.make("rooms/multi-v1", image_size=SIZE, objects=4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def close():
    made = iv.make("rooms/single-v1", image_size=SIZE, objects=2)
    yield made
    made.close()


def first_with(env, cls):
    """Resets to the first seed in whose room an object of a class has a place, and puts it there.

    It comes off, shut and whole, in view of a camera that stands before it.
    """
    for seed in range(20):
        env.driver.reset(np.arange(1), seeds=[seed])  # without drawing
        try:
            env.do({"object/class": CLASS_NAMES.index(cls), "object/state": np.zeros(4)})
        except iv.InterventionError:
            continue
        return env.observe()
    raise AssertionError(cls)


def test_depth_is_the_distance_along_the_camera(env):
    """A wall that the camera faces squarely is as far away as the room's size says."""
    env.reset(seed=0)
    room = plan_room(int(env.values["room/seed"]), 4)
    view = {"camera/position": [0.0, 0.0, room.size[2] - 0.3], "camera/yaw": 0.0}
    env.do({**view, "camera/pitch": 0.0, "camera/fov": 0.1})
    far = env.world.frame(0, 64, ("depth",)).depth
    assert far[40:50, 30:34] == pytest.approx(room.size[1] / 2, rel=2e-3)
    env.do({"camera/pitch": -1.4, "camera/fov": 1.9})
    near = env.world.frame(0, 64, ("depth",)).depth
    assert near.min() > 0.05
    assert near.max() < room.size[2] * 4


def test_the_mask_shows_where_the_object_is(env):
    env.reset(seed=1)
    mask, world = env.observe()["mask"], env.world
    slots = world.slots(0, world.frame(0, SIZE, ("items",)))
    assert np.array_equal(mask, slots + 1)
    assert set(np.unique(mask)) <= set(range(5))
    assert (mask == 1).sum() > 20, "the object is in view"


def test_it_is_dark_behind_blinds_at_night(close):
    first_with(close, "Blinds")
    close.do({"object/state": [1.0, 0.0, 0.0, 0.0]})
    day, night = (
        close.do({"light/time_of_day": time}, check=False).observation for time in (12.0, 0.0)
    )
    seen = day["mask"] == 1
    assert night["image"][seen].mean() < 0.7 * day["image"][seen].mean()


@pytest.mark.parametrize("cls", ["Fridge", "FloorLamp"])
def test_an_action_changes_pixels_of_its_object_alone(close, cls):
    before = first_with(close, cls)
    after, reward, *_ = close.step(np.array([0, {"Fridge": 0, "FloorLamp": 2}[cls]]))
    assert reward == 1
    differs = np.any(before["image"] != after["image"], axis=-1)
    seen = (before["mask"] == 1) | (after["mask"] == 1)
    left, top, right, bottom = box_of(seen)
    inside = np.zeros_like(seen)
    inside[top:bottom, left:right] = True
    assert (differs & inside).sum() > 20
    assert (differs & ~inside).sum() == 0


def test_with_light_spill_a_lamp_lights_its_surroundings():
    spilt = iv.make("rooms/single-v1", image_size=SIZE, objects=2, light_spill=True)
    before = first_with(spilt, "FloorLamp")
    after, *_ = spilt.step(np.array([0, 2]))
    away = (before["mask"] != 1) & (after["mask"] != 1)
    differs = np.any(before["image"] != after["image"], axis=-1)
    assert (differs & away).sum() > 200
    spilt.close()


def test_a_picture_does_not_depend_on_what_was_drawn_before(env):
    first, _ = env.reset(seed=2)
    env.do({"light/brightness": 0.5, "light/time_of_day": 22.0, "camera/fov": 0.5})
    env.reset(seed=3)
    again, _ = env.reset(seed=2)
    assert np.array_equal(first["image"], again["image"])
    other = iv.make("rooms/multi-v1", image_size=SIZE, objects=4)
    assert np.array_equal(first["image"], other.reset(seed=2)[0]["image"])
    other.close()


def test_any_thread_may_ask_for_pictures(env):
    first, _ = env.reset(seed=2)
    with ThreadPoolExecutor(1) as other:
        again, _ = other.submit(lambda: env.reset(seed=2)).result()
        frame = other.submit(lambda: env.world.frame(0, 40)).result()
    assert np.array_equal(first["image"], again["image"])
    assert frame.rgb.shape == (40, 40, 3)


def test_evening_is_darker_than_noon(env):
    env.reset(seed=4)
    noon = env.do({"light/time_of_day": 12.0}).observation["image"].mean()
    night = env.do({"light/time_of_day": 22.5}).observation["image"].mean()
    assert night < noon


def test_a_stage_names_a_field_it_cannot_edit(env):
    env.reset(seed=0)
    stage = next(iter(env.world._held.values()))[1].stage
    with pytest.raises(UnknownNameError, match="geom_sise"):
        stage.draw({"geom_sise": np.zeros(1)}, qpos=np.zeros(stage.model.nq), size=8)


def test_high_quality_says_what_is_missing(monkeypatch):
    """With a driver file that does not exist, no machine has Vulkan."""
    monkeypatch.setenv("VK_ICD_FILENAMES", "none.json")
    monkeypatch.setenv("VK_DRIVER_FILES", "none.json")
    filament.probe.cache_clear()
    with pytest.raises(RenderError, match="mesa-vulkan-drivers"):
        iv.make("rooms/multi-v1", quality="high")
    filament.probe.cache_clear()


@pytest.mark.slow
def test_high_quality_draws_the_same_scene_where_it_runs():
    try:
        filament.probe()
    except RenderError as error:
        pytest.skip(str(error))
    fast, high = (
        iv.make("rooms/multi-v1", image_size=64, objects=4, quality=quality)
        for quality in ("fast", "high")
    )
    a, b = fast.reset(seed=1)[0], high.reset(seed=1)[0]
    assert np.array_equal(a["mask"], b["mask"])
    grey = [observation["image"].mean(axis=-1).ravel() for observation in (a, b)]
    assert np.corrcoef(*grey)[0, 1] > 0.5


FOUR = ((0.2, 0.3, 0.7), (0.7, 0.8, 0.9), (0.1, 0.4, 0.1), (0.5, 0.5, 0.4))
PERIODIC = ("brushed", "iron", "leather", "plain", "wood")


@pytest.mark.parametrize("kind", [*KINDS, *BUILDING])
def test_every_kind_draws_a_picture_that_is_not_of_one_colour(kind):
    picture = pixels(RoomTexture(kind=kind, colours=FOUR, seed=1), 64)
    assert picture.shape == ((256, 256, 3) if kind in BUILDING else (64, 64, 3))
    assert picture.dtype == np.uint8
    assert not picture.flags.writeable
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 2


@pytest.mark.parametrize("kind", [*KINDS, *BUILDING])
def test_a_texture_is_the_same_each_time_and_follows_its_colours(kind):
    texture = RoomTexture(kind=kind, colours=FOUR, seed=2)
    first = pixels(texture, 64)
    pixels.cache_clear()
    np.testing.assert_array_equal(first, pixels(texture, 64))
    other = RoomTexture(kind=kind, colours=FOUR[::-1], seed=2)
    if kind != "broadcast":  # a test card has colours of its own
        assert (pixels(other, 64) != first).any()


@pytest.mark.parametrize("kind", PERIODIC)
def test_patterns_of_materials_join_at_their_borders(kind):
    picture = pixels(RoomTexture(kind=kind, colours=FOUR[:2], seed=3), 128).astype(float)
    for axis in (0, 1):
        inside = np.abs(np.diff(picture, axis=axis)).mean()
        seam = np.abs(picture.take(0, axis=axis) - picture.take(-1, axis=axis)).mean()
        assert seam < 2 * inside + 2


@pytest.mark.parametrize("seed", range(VARIANTS))
def test_dirt_covers_much_and_cracks_cover_some(seed):
    clean = Surface(texture=RoomTexture(kind="plain", colours=((0.9, 0.9, 0.9),) * 2, seed=seed))
    before = pixels(clean.texture).astype(float)
    dirty = np.abs(pixels(soiled(clean).texture) - before).max(axis=-1) > 20
    assert 0.3 < dirty.mean() < 0.95
    lines = np.abs(pixels(cracked(clean).texture) - before).max(axis=-1) > 20
    assert 0.08 < lines.mean() < 0.7


def test_surfaces_without_a_texture_get_dirty_and_crack_in_their_own_colour():
    plain = Surface(rgba=(0.2, 0.4, 0.6, 1.0), emission=0.5)
    for worn, overlay in ((soiled(plain), "dirt"), (cracked(plain), "cracks")):
        assert worn.rgba == (1.0, 1.0, 1.0, 1.0)
        assert worn.texture.overlays == (overlay,)
        assert (0.2, 0.4, 0.6) in worn.texture.colours
