"""Open instances: size, colour, gloss and wear as variables of every object."""

import numpy as np
import pytest

import interverse as iv
from interverse.art.rooms.forms import FORM, formed, own_form
from interverse.art.rooms.objects import CLASSES
from interverse.core.errors import InterventionError
from interverse.models.pairs.tensors import pair_factors
from interverse.worlds.rooms.room import item_of
from tests.worlds.rooms.pairs import pairs_of
from tests.worlds.rooms.test_rebuild import check_pairs

OPEN = {"image_size": 48, "instances": "open"}


@pytest.fixture(scope="module")
def env():
    found = iv.make("rooms/single-v1", **OPEN)
    yield found
    found.close()


@pytest.mark.parametrize("cls", CLASSES)
def test_an_item_of_any_class_takes_another_form(cls):
    item = item_of(cls, 7)
    own = own_form(item)
    wide = formed(item, (own[0] * 1.25, *own[1:]))
    low, high = item.bounds()
    assert wide.bounds()[1][0] - wide.bounds()[0][0] == pytest.approx(1.25 * (high - low)[0])
    assert own_form(wide)[1:] == pytest.approx(own[1:])
    blue = formed(item, (*own[:3], 0.6, *own[4:]))
    if own[4] > 0.05 and own[5] > 0.05:  # grey and black have no hue
        assert own_form(blue)[3] == pytest.approx(0.6, abs=0.06)


def test_without_the_option_pictures_are_as_with_it():
    sealed, opened = (
        iv.make("rooms/multi-v1", image_size=48, instances=kind) for kind in ("sealed", "open")
    )
    first, second = (made.reset(seed=3)[0]["image"] for made in (sealed, opened))
    assert np.array_equal(first, second)
    assert len(opened.values) == len(sealed.values) + 8 * len(FORM)
    sealed.close(), opened.close()


def test_each_factor_changes_the_picture_and_its_present_value_does_not(env):
    image = env.reset(seed=1)[0]["image"]
    cameras = [name for name in env.values if name.startswith("camera/")]
    env.do({name: env.values[name] for name in cameras}, check=False)
    for factor in FORM:
        name = f"object/{factor}"
        was = float(env.values[name])
        assert np.array_equal(env.do({name: was}).observation["image"], image), factor
        other = was * 0.8 if factor in FORM[:3] else (was + 0.4) % 1.0
        changed = env.do({name: other}).observation["image"]
        assert not np.array_equal(changed, image), factor
        assert float(env.values[name]) == other
        env.do({name: was})


def test_the_instance_gives_what_is_not_set(env):
    env.reset(seed=1)
    width = float(env.values["object/width"])
    env.do({"object/wear": 0.7})
    env.do({"object/instance": 12345})
    assert float(env.values["object/width"]) != width
    assert float(env.values["object/wear"]) == 0.7
    with pytest.raises(InterventionError, match="object/width"):
        env.do({"object/width": 7.9})


def test_pairs_of_open_instances_are_rebuilt_and_scored():
    check_pairs("single", range(100), 4, instances="open")
    pair = pairs_of("single", 1, **OPEN)[0]
    both = [
        {name: value[None] for name, value in factors.items()}
        for factors in (pair.factors_before, pair.factors_after)
    ]
    assert {f"object/{factor}" for factor in FORM} <= pair_factors(*both).keys()
