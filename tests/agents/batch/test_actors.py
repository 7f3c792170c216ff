"""Any actor on a device: its draws are where episodes start, and it tells a run from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interverse.cli.flags import flag_words
from interverse.cli.train import parsed, training
from interverse.core.errors import InvalidValueError

torch = pytest.importorskip("torch")

from interverse.agents.batch.train import DeviceTrain, drawn_starts, train_on_device  # noqa: E402
from interverse.core.files.json_text import read_json_object  # noqa: E402

TASK = "trifinger/pushing-v1"
MASSES = ("uniform:patterns=block_0/mass",)


def settings(out: Path, **flags: Any) -> DeviceTrain:
    given = {"num_envs": 4, "steps": 16, **flags}
    hyper = ("horizon=4", "epochs=1", "minibatches=1", "hidden=[8]", "starts=40", "plain=0")
    hyper += given.pop("hyper", ())
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in given.items()}
    words = flag_words({"task": TASK, "out": out, "device": "cpu", "hyper": [*hyper], **given})
    return training(parsed(words))[0]  # type: ignore[no-any-return]


def masses(config: DeviceTrain) -> np.ndarray:
    return drawn_starts(config).rows["store/block/mass"][:, 0]


def test_starts_are_what_an_actor_draws(tmp_path: Path) -> None:
    rows = drawn_starts(settings(tmp_path, actor=MASSES)).rows
    found = rows["store/block/mass"][:, 0]
    assert len(set(found)) == 40
    assert 0.015 <= found.min() <= found.max() <= 0.045
    assert len(np.unique(rows["store/goal/position"], axis=0)) == 1


def test_starts_are_drawn_from_the_space_that_is_asked_for(tmp_path: Path) -> None:
    inside, whole = (masses(settings(tmp_path, actor=MASSES, space=s)) for s in ("A", "A_B"))
    beyond = masses(settings(tmp_path, curriculum=2, space="B"))
    assert inside.max() <= 0.045 < whole.max()
    assert beyond.min() >= 0.045


def test_an_actor_is_part_of_a_run(tmp_path: Path) -> None:
    train_on_device(settings(tmp_path, actor=MASSES))
    held = read_json_object(tmp_path / "train.json")
    assert held["actor"] == [*MASSES]
    assert (held["curriculum"], held["space"]) == (0, "A")
    with pytest.raises(InvalidValueError, match=r"holds another run: .*actor"):
        train_on_device(settings(tmp_path, actor=("goals",)))
    with pytest.raises(InvalidValueError, match=r"holds another run: .*space"):
        train_on_device(settings(tmp_path, actor=MASSES, space="A_B"))


def test_a_trained_policy_says_that_it_has_seen_space_b(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_on_device(settings(tmp_path, actor=MASSES, space="A_B"))
    assert "Trained in space A_B" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["step=3", "first=2", "period=2", "last=9"])
def test_what_acts_later_than_at_the_start_is_refused(when: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="Goals acts by the number of an episode"):
        settings(tmp_path, actor=(f"goals@{when}",))


def test_an_actor_that_counts_episodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="Interpolation acts by the number of an episode"):
        settings(tmp_path, actor=('interpolation:target={"block_0/mass":0.04}',))


def test_an_actor_that_waits_for_how_episodes_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="waits for how episodes end"):
        settings(tmp_path, actor=("adaptive:patterns=block_0/mass",))


def test_a_curriculum_and_an_actor_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="curriculum and actor are both given"):
        settings(tmp_path, actor=MASSES, curriculum=1)


def test_blocks_in_their_places_need_no_curriculum(tmp_path: Path) -> None:
    rows = drawn_starts(settings(tmp_path, curriculum=0, hyper=("placed=0.5",))).rows
    block, goal = rows["physics"][:, 10:12], rows["store/goal/position"][:, 0, :2]
    assert np.isclose(block, goal).all(axis=1).sum() == 20
