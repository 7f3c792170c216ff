"""Planned rooms: nothing runs into anything, everything stands on something, and repeats."""

import itertools

import numpy as np
import pytest

from interverse.worlds.rooms.actions import CLASS_NAMES
from interverse.worlds.rooms.camera import RoomView, aim, choose_view, stands_free
from interverse.worlds.rooms.lights import draw_light, sky_color
from interverse.worlds.rooms.placing import Occupancy, Pose, clear_share, wall_pose
from interverse.worlds.rooms.room import item_of, place_item, plan_room, reach
from interverse.worlds.rooms.shell import KINDS

SEEDS = range(10)


def overlap(a, b):
    """Returns the volume two boxes share, by the textbook."""
    edges = np.minimum(a[1], b[1]) - np.maximum(a[0], b[0])
    return float(np.prod(np.clip(edges, 0, None)))


def boxes(room):
    return [thing.pose.bounds(reach(thing.cls, thing.instance)) for thing in room.things]


@pytest.mark.parametrize("seed", SEEDS)
def test_items_share_no_space_with_each_other_or_with_furniture(seed):
    room = plan_room(seed, 8)
    placed = boxes(room)
    assert 1 <= len(placed) <= 8
    for a, b in itertools.combinations(placed, 2):
        assert overlap(a, b) < 1e-4
    for thing, box in zip(room.things, placed, strict=True):
        half = np.array(room.size[:2]) / 2
        assert np.all(box[0][:2] >= -half - 1e-3)
        assert np.all(box[1][:2] <= half + 1e-3)
        assert box[1][2] <= room.size[2]
        if thing.cls != "Blinds":  # they hang before a window, in its niche's box
            for low, high in zip(room.taken.lows, room.taken.highs, strict=True):
                assert overlap(box, (low, high)) < 1e-4, thing.cls


@pytest.mark.parametrize("seed", SEEDS)
def test_items_stand_on_the_floor_or_on_a_top(seed):
    room = plan_room(seed, 8)
    heights = [top.top.height for top in room.tops]
    for thing in room.things:
        foot = thing.pose.position[2]
        if thing.item.stand == "floor":
            assert foot == 0
        elif thing.item.stand != "wall":
            assert min(abs(foot - height) for height in heights) < 1e-9


def test_a_room_is_a_function_of_its_seed():
    first = plan_room(5, 8)
    plan_room.cache_clear()
    again = plan_room(5, 8)
    assert first is not again
    assert [(t.cls, t.instance) for t in first.things] == [
        (t.cls, t.instance) for t in again.things
    ]
    for a, b in zip(first.things, again.things, strict=True):
        assert (a.cls, a.instance, a.pose.yaw) == (b.cls, b.instance, b.pose.yaw)
        assert np.array_equal(a.pose.position, b.pose.position)
    assert [s.prop.name for s in first.standing] == [s.prop.name for s in again.standing]
    other = plan_room(6, 8)
    assert first.size != other.size


def test_every_class_is_found_in_some_kind_of_room_and_shares_add_up():
    assert {name for kind in KINDS.values() for name in kind.classes} == set(CLASS_NAMES)
    assert sum(kind.share for kind in KINDS.values()) == pytest.approx(1.0)


def test_another_item_finds_a_place_that_meets_nothing():
    room = plan_room(2, 8)
    found = 0
    for cls in CLASS_NAMES:
        pose = place_item(room, 0, cls, 7)
        if pose is None:
            continue
        found += 1
        mine = pose.bounds(reach(cls, 7))
        for other in boxes(room)[1:]:
            assert overlap(mine, other) < 1e-4, cls
    assert found >= 18


def test_a_thing_against_a_wall_faces_the_middle():
    size = (4.0, 3.0, 2.5)
    for wall in range(4):
        pose = wall_pose(size, wall, 0.3, back=0.1)
        ahead = pose.apply((0.0, -1.0, 0.0))
        assert np.linalg.norm(ahead[:2]) < np.linalg.norm(pose.position[:2])
        back = pose.apply((0.0, 0.1, 0.0))
        assert max(abs(back[0]) - 2.0, abs(back[1]) - 1.5) == pytest.approx(0.0)


def test_boxes_that_touch_do_not_meet():
    taken = Occupancy((4.0, 4.0, 2.5))
    taken.add((np.zeros(3), np.ones(3)))
    assert taken.free((np.array([1.0, 0, 0]), np.array([1.5, 1, 1])))
    assert taken.meets((np.array([0.9, 0, 0]), np.array([1.5, 1, 1])))
    assert not taken.free((np.array([1.2, 0, 0]), np.array([2.5, 1, 1])))


def test_sight_is_cut_by_a_box_between():
    eye, points = np.zeros(3), np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0]])
    low, high = np.array([[-0.5, 1.0, -0.5]]), np.array([[0.5, 2.0, 0.5]])
    assert clear_share(eye, points, low, high) == 0.5


def turned(quaternion, vector):
    """Returns a vector turned by a quaternion w, x, y, z, by its definition."""
    w, xyz = quaternion[0], quaternion[1:]
    return vector + 2 * np.cross(xyz, np.cross(xyz, vector) + w * vector)


def test_a_camera_looks_where_it_is_aimed():
    rng = np.random.default_rng(0)
    for _ in range(20):
        place, target = rng.normal(size=3), rng.normal(size=3)
        yaw, pitch = aim(place, target)
        view = RoomView(place, yaw, pitch, 1.0)
        way = (target - place) / np.linalg.norm(target - place)
        assert turned(view.quaternion, np.array([0.0, 0.0, -1.0])) == pytest.approx(way)
        assert turned(view.quaternion, np.array([1.0, 0.0, 0.0]))[2] == pytest.approx(0.0)


@pytest.mark.parametrize("close", [False, True])
def test_views_stand_free_and_see_their_target(close):
    room = plan_room(3, 8)
    closed = [t.pose.bounds(item_of(t.cls, t.instance).bounds()) for t in room.things]
    for target in range(len(closed)):
        view = choose_view(
            room, closed, target, np.random.default_rng(target).random((10, 6)), close=close
        )
        assert stands_free(room, view.position)
        middle = (closed[target][0] + closed[target][1]) / 2
        way = (middle - view.position) / np.linalg.norm(middle - view.position)
        ahead = turned(view.quaternion, np.array([0.0, 0.0, -1.0]))
        assert way @ ahead > np.cos(view.fov * 0.75)


def test_light_stays_in_its_ranges_and_the_sky_darkens():
    for row in np.random.default_rng(0).random((50, 5)):
        color, brightness, time = draw_light(0.1, row)
        assert np.all((color >= 0) & (color <= 1))
        assert 0.9 <= brightness <= 1.4
        assert 7 <= time <= 18
    assert sky_color(12.0).mean() > sky_color(18.5).mean() > sky_color(23.0).mean()


def test_a_pose_turns_against_the_clock():
    pose = Pose(np.array([1.0, 0.0, 0.0]), np.pi / 2)
    assert pose.apply((0.0, -1.0, 0.5)) == pytest.approx([2.0, 0.0, 0.5])
