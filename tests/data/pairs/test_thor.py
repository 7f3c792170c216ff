"""The AI2-THOR procedure, against a stub that records every call and answers as AI2-THOR does.

The simulator itself does not run here: what is tested is which calls are made, in which order, and
which pairs are kept.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from interverse.core.errors import InvalidValueError, MissingExtraError
from interverse.data.pairs.official import OfficialPair, load_official
from interverse.data.pairs.thor import (
    CollectThor,
    ThorRules,
    accepted,
    candidates,
    collect_house,
    collect_houses,
    collect_thor,
    controller_options,
)

SIZE = 672
BOXES = {"Fridge|1": (100, 100, 180, 260), "Mug|2": (400, 400, 470, 480)}
STATES = {"openable": "isOpen", "dirtyable": "isDirty"}
STATES |= {"toggleable": "isToggled", "breakable": "isBroken"}
CALLS = {
    "OpenObject": ("isOpen", True),
    "CloseObject": ("isOpen", False),
    "DirtyObject": ("isDirty", True),
    "CleanObject": ("isDirty", False),
}


def thing(name: str, *can: str, **more: Any) -> dict[str, Any]:
    out = {"objectId": name, "objectType": name.partition("|")[0], "visible": True}
    out |= {key: key in can for key in STATES} | dict.fromkeys(STATES.values(), False)
    return out | more


@dataclass
class Stub:
    """Two objects whose boxes change colour with their state; `leak` pixels change elsewhere."""

    leak: int = 0
    positions: int = 30
    gone: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list)
    objects: list[dict[str, Any]] = field(default_factory=list)

    def reset(self) -> None:
        self.calls.append({"action": "reset"})
        self.objects = [thing("Fridge|1", "openable"), thing("Mug|2", "dirtyable")]

    def step(self, action: str, **given: Any) -> Any:
        self.calls.append({"action": action, **given})
        if action in CALLS:
            state, value = CALLS[action]
            (one,) = [item for item in self.objects if item["objectId"] == given["objectId"]]
            one[state] = value
            return self._event(acted=True)
        returned = [{"x": float(i)} for i in range(self.positions)]
        return self._event(returned=returned if action == "GetReachablePositions" else None)

    def _event(self, *, returned: Any = None, acted: bool = False) -> Any:
        frame = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)
        masks = {}
        for item in self.objects:
            xmin, ymin, xmax, ymax = BOXES[item["objectId"]]
            mask = np.zeros((SIZE, SIZE), dtype=bool)
            mask[ymin : ymax + 1, xmin : xmax + 1] = True
            frame[mask] = 200 if item["isOpen"] or item["isDirty"] else 50
            masks[item["objectId"]] = mask
        if acted:
            frame[0, : self.leak] = 9
        if acted and self.gone:
            masks = {}
        return SimpleNamespace(
            frame=frame,
            metadata={"objects": [dict(item) for item in self.objects], "actionReturn": returned},
            instance_masks=masks,
            instance_detections2D=BOXES,
        )


def play(stub: Stub, rules: ThorRules | None = None, seed: int = 0) -> list[OfficialPair]:
    rules = ThorRules() if rules is None else rules
    return list(collect_house(stub, {"the": "house"}, rules, random.Random(seed)))


def test_a_round_calls_in_this_order():
    stub = Stub()
    play(stub, ThorRules(pairs_per_house=3, pairs_per_round=1))
    names = [call["action"] for call in stub.calls]
    assert names[:7] == [
        "reset",
        "CreateHouse",
        "InitialRandomSpawn",
        "GetReachablePositions",
        "RandomizeMaterials",
        "RandomizeLighting",
        "Teleport",
    ]
    assert stub.calls[1]["house"] == {"the": "house"}
    assert stub.calls[2] == {
        "action": "InitialRandomSpawn",
        "randomSeed": 0,
        "forceVisible": True,
        "numPlacementAttempts": 5,
        "placeStationary": True,
    }
    assert stub.calls[5]["brightness"] == (1.0, 1.5)
    assert 0 <= stub.calls[6]["rotation"] < 360
    assert names[7] in CALLS
    assert stub.calls[7]["forceAction"] is False
    assert stub.calls[7].get("openness") == (0.8 if names[7] == "OpenObject" else None)


def test_five_pairs_a_round_until_more_than_twenty():
    stub = Stub()
    pairs = play(stub)
    assert len(pairs) == 25
    seeds = [call["randomSeed"] for call in stub.calls if "randomSeed" in call]
    assert seeds == [0, 1, 2, 3, 4]
    # Six rounds at most, here of three positions each.
    few = Stub(positions=3)
    assert len(play(few)) == 18
    assert sum(call["action"] == "reset" for call in few.calls) == 6


def test_states_alternate_for_the_world_is_not_reset_within_a_round():
    verbs = {"Fridge": [], "Mug": []}
    for pair in play(Stub(), ThorRules(pairs_per_house=3, pairs_per_round=9)):
        verbs[pair.noun].append(pair.verb)
    cycle = {"Fridge": ["open", "close"], "Mug": ["dirty", "clean"]}
    for noun, found in verbs.items():
        assert len(found) > 1
        assert found == (cycle[noun] * len(found))[: len(found)]


def test_pairs_are_rejected():
    assert len(play(Stub(leak=19, positions=5))) == 25
    assert not play(Stub(leak=20, positions=5)), "a pixel too many changed outside"
    assert not play(Stub(gone=True, positions=5)), "an object lost its mask"
    assert not play(Stub(positions=0)), "there is nowhere to stand"


def test_candidates_by_size_border_and_kind():
    boxes = {
        "A|1": (100, 100, 159, 300),  # 59 wide
        "B|1": (100, 100, 160, 160),  # just large enough
        "C|1": (20, 100, 110, 190),  # at the border, not large
        "D|1": (0, 0, 101, 101),  # at the border, large
        "E|1": (571, 571, 651, 651),  # one short of the border
        "F|1": (571, 571, 652, 652),  # at the border
        "Toaster|1": (100, 100, 300, 300),
        "G|1": (100, 100, 300, 300),  # nothing to do
        "H|1": (100, 100, 300, 300),  # not visible
    }
    objects = [thing(name, "openable") for name in boxes]
    objects[-2]["openable"] = False
    objects[-1]["visible"] = False
    event = SimpleNamespace(
        metadata={"objects": [*objects, thing("NoMask|1", "openable")]},
        instance_masks=boxes,
        instance_detections2D=boxes,
    )
    found = [item["objectId"] for item, _ in candidates(event, ThorRules())]
    assert found == ["B|1", "D|1", "E|1"]


BROKEN = [thing(name, "breakable", isBroken=True) for name in ("Fridge|1", "Mug|2")]


@pytest.mark.parametrize("objects", [[thing("Fridge|1", "openable")], BROKEN])
def test_one_object_in_view_is_not_enough_and_what_is_broken_stays_so(objects):
    class Other(Stub):
        def reset(self) -> None:
            super().reset()
            self.objects = [dict(one) for one in objects]

    stub = Other(positions=4)
    assert not play(stub)
    assert not {call["action"] for call in stub.calls} & {"BreakObject", *CALLS}


def test_change_is_counted_in_the_intersection_and_outside_of_the_union():
    rules = ThorRules()
    empty = np.zeros((SIZE, SIZE), dtype=bool)
    before = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)
    after = before.copy()
    after[100:140, 100:125, 1] = 1  # 1000 pixels, one too few
    pair = OfficialPair(
        before=before,
        after=after,
        mask_before=empty,
        mask_after=empty,
        box_before=(100, 100, 200, 139),
        box_after=(100, 50, 150, 200),
        noun="Mug",
        verb="dirty",
    )
    assert not accepted(pair, rules)
    after[139, 125] = 1  # the last row of the smaller box counts
    assert accepted(pair, rules)
    after[300, :19] = 1
    assert accepted(pair, rules)
    after[300, 19] = 1
    assert not accepted(pair, rules)
    after[300] = 0
    after[140:200, 100:125] = 1  # in the union alone: neither helps nor hurts
    after[100, 100] = 0
    assert not accepted(pair, rules)


def test_houses_are_written_in_the_official_layout_and_resumed(tmp_path):
    config = CollectThor(out=tmp_path / "out", first=3, last=4)
    rules = ThorRules(pairs_per_house=3, pairs_per_round=2)
    stub = Stub()
    collect_houses(config, rules, stub, [{"n": n} for n in range(5)])
    assert [c["house"]["n"] for c in stub.calls if "house" in c] == [3, 4]
    data = load_official(tmp_path / "out")
    assert data.scene.tolist() == ["proc_00003"] * 2 + ["proc_00004"] * 2
    assert set(data.verb_names) <= {"open", "close", "dirty", "clean"}
    assert data.tensors(32, "single").masks.min() == 255  # the box is the mask
    again = Stub()
    collect_houses(config, rules, again, [{"n": n} for n in range(5)])
    assert not again.calls


def test_a_house_draws_from_its_own_stream(tmp_path):
    rules = ThorRules(pairs_per_house=3, pairs_per_round=2)
    for name, first in (("both", 0), ("second", 1)):
        config = CollectThor(out=tmp_path / name, first=first, last=1)
        collect_houses(config, rules, Stub(), [{}, {}])
    one, two = (
        (tmp_path / n / "proc_00001/annotations.csv").read_text() for n in ("both", "second")
    )
    assert one == two


def test_a_failing_house_leaves_nothing_half(tmp_path):
    class Failing(Stub):
        def step(self, action: str, **given: Any) -> Any:
            if len(self.calls) > 20:
                raise TimeoutError("the simulator is gone")
            return super().step(action, **given)

    config = CollectThor(out=tmp_path / "out", last=0)
    with pytest.raises(TimeoutError):
        collect_houses(config, ThorRules(), Failing(), [{}])
    assert not list((tmp_path / "out").iterdir())


def test_without_the_packages_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "prior", None)
    with pytest.raises(MissingExtraError, match="pip install ai2thor prior"):
        collect_thor(CollectThor(out=tmp_path))


def test_settings():
    assert controller_options(replace(ThorRules(), size=300))["width"] == 300
    with pytest.raises(InvalidValueError, match="houses 5 to 4"):
        CollectThor(out="x", first=5, last=4)
