"""The replay buffer: the right stacks, one copy of each frame, and a life after a restart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.agents.pixel.replay import PixelMoment, Replay
from interverse.core.errors import FileFormatError, InvalidValueError

STACK = 3


class Told:
    """Lanes whose frames say (lane, episode, age), so that every stack can be checked."""

    def __init__(self, replay: Replay, lengths: list[int]) -> None:
        self.replay, self.lengths = replay, lengths
        self.episode = [0] * len(lengths)
        self.age = [0] * len(lengths)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            lanes = range(len(self.lengths))
            names = [(i, self.episode[i], self.age[i]) for i in lanes]
            frames = np.zeros((len(names), 3, 4, 4), dtype=np.uint8)
            frames[:] = np.array(names, dtype=np.uint8)[:, :, None, None]
            actions = np.array([[100 * e + a] for _, e, a in names], dtype=np.float32)
            rewards = np.array([a for *_, a in names], dtype=np.float32)
            ends = np.array([e % 2 == 1 and a == self.lengths[i] - 1 for i, e, a in names])
            ages = np.array(self.age)
            self.replay.add(PixelMoment(frames, ages, actions, rewards, ends))
            for i in lanes:
                self.age[i] += 1
                if self.age[i] > self.lengths[i]:  # the last frame of an episode has no action
                    self.episode[i], self.age[i] = self.episode[i] + 1, 0


def replay(capacity: int = 60, lanes: int = 2, **more) -> Replay:
    shape = {"frame": (3, 4, 4), "actions": 1, "stack": STACK}
    return Replay(capacity=capacity, lanes=lanes, **shape, **more)


def check(batch, lengths: list[int]) -> set[tuple[int, int, int]]:
    """Returns the transitions of a batch after comparing every frame, number and end."""
    seen = set()
    for row in range(len(batch.rewards)):
        now = batch.observations[row].view(STACK, 3, 4, 4)[:, :, 0, 0].tolist()
        then = batch.successors[row].view(STACK, 3, 4, 4)[:, :, 0, 0].tolist()
        lane, episode, age = now[-1]
        assert now == [[lane, episode, max(age - back, 0)] for back in (2, 1, 0)]
        assert then == [[lane, episode, max(age + 1 - back, 0)] for back in (2, 1, 0)]
        assert age < lengths[lane], "the last frame of an episode starts no transition"
        assert batch.actions[row].item() == 100 * episode + age
        assert batch.rewards[row].item() == age
        assert batch.ends[row].item() == (episode % 2 == 1 and age == lengths[lane] - 1)
        seen.add((lane, episode, age))
    return seen


def test_stacks_keep_to_their_episode():
    held, lengths = replay(), [5, 7]
    told = Told(held, lengths)
    rng = np.random.default_rng(0)
    for _ in range(25):
        told.run(5)
        check(held.sample(40, rng), lengths)


def test_every_whole_transition_can_be_drawn_and_no_other():
    held, lengths = replay(capacity=40, lanes=2), [5, 7]
    Told(held, lengths).run(50)  # slots 30 to 49 remain, of which 30 and 31 are but context
    seen = check(held.sample(4000, np.random.default_rng(0)), lengths)
    expected = set()
    for lane, length in enumerate(lengths):
        for time in range(30, 49):
            episode, age = divmod(time, length + 1)
            if age < length and time - min(age, 2) >= 30:
                expected.add((lane, episode, age))
    assert seen == expected


def test_sequences_have_every_step():
    held, lengths = replay(discounts=(1.0, 1.0, 1.0), sequences=True), [5, 7]
    Told(held, lengths).run(40)
    batch, begun = held.sample(300, np.random.default_rng(0)), set()
    for row in range(300):
        frames = batch.observations[row].view(STACK + 3, 3, 4, 4)[:, :, 0, 0].tolist()
        lane, episode, age = frames[STACK - 1]
        later = [max(age + t, 0) for t in (-2, -1, 0, 1, 2, 3)]
        assert frames == [[lane, episode, at] for at in later]
        assert batch.actions[row].tolist() == [100 * episode + age + t for t in range(3)]
        assert batch.rewards[row].tolist() == [age, age + 1, age + 2]
        last = episode % 2 == 1 and age + 2 == lengths[lane] - 1
        assert batch.ends[row].tolist() == [0.0, 0.0, float(last)]
        begun.add((lane, age))
    assert begun == {(0, age) for age in range(3)} | {(1, age) for age in range(5)}


def test_a_draw_is_even():
    held = replay(capacity=40, lanes=2)
    Told(held, [19, 19]).run(20)
    batch = held.sample(38_000, np.random.default_rng(0))
    counts = np.bincount(batch.rewards[:, 0].long().numpy(), minlength=19)
    assert np.all(np.abs(counts / 2000 - 1) < 0.15)


def test_the_same_generator_draws_the_same():
    held = replay()
    Told(held, [5, 7]).run(40)
    one, two = (held.sample(9, np.random.default_rng(3)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_the_papers_buffer_fits_in_two_gigabytes():
    held = Replay(capacity=100_000, lanes=8, frame=(3, 84, 84), actions=6, stack=3)
    assert held.nbytes <= 2.2e9  # pages are not touched before frames are written
    assert held.slots * held.lanes == 100_000


def test_it_survives_a_restart(tmp_path):
    held, lengths = replay(), [5, 7]
    told = Told(held, lengths)
    for _ in range(7):  # writes over its oldest frames several times
        told.run(13)
        record = held.save(tmp_path)
        other = replay()
        other.load(tmp_path, record)
        one, two = (x.sample(50, np.random.default_rng(1)) for x in (held, other))
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert len(record["files"]) == 3, "old files go, new ones are small"
    other.load(tmp_path, record)
    assert other.save(tmp_path) == record, "nothing new, nothing written"


def test_a_save_never_touches_what_an_older_record_names(tmp_path):
    held = replay()
    told = Told(held, [5, 7])
    told.run(20)
    record = held.save(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    told.run(25)
    held.save(tmp_path)
    assert all((tmp_path / name).read_bytes() == data for name, data in before.items())
    other = replay()
    other.load(tmp_path, record)
    assert other.time == 20


def test_a_torn_file_says_so(tmp_path):
    held = replay()
    Told(held, [5, 7]).run(10)
    record = held.save(tmp_path)
    file = tmp_path / record["files"][0]["name"]
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(FileFormatError, match="cannot be read"):
        replay().load(tmp_path, record)


def test_mistakes():
    with pytest.raises(InvalidValueError, match="10 frames or more"):
        replay(capacity=9)
    with pytest.raises(InvalidValueError, match="holds no transition"):
        replay().sample(1, np.random.default_rng(0))


def test_returns_of_several_steps_reach_a_termination():
    """The last steps before an end have shorter returns; before a time limit they have none."""
    discounts = (1.0, 0.5, 0.25)
    held, length = replay(capacity=40, lanes=1, discounts=discounts), 5
    Told(held, [length]).run(24)  # episodes 1 and 3 end by themselves, 0 and 2 are cut
    batch = held.sample(2000, np.random.default_rng(0))
    ages: dict[int, set[int]] = {0: set(), 1: set()}
    for row in range(len(batch.rewards)):
        _, episode, age = batch.observations[row].view(STACK, 3, 4, 4)[-1, :, 0, 0].tolist()
        ages[episode % 2].add(age)
        steps = range(age, min(age + 3, length))
        expected = sum(d * reward for d, reward in zip(discounts, steps, strict=False))
        assert batch.rewards[row].item() == expected
        assert batch.ends[row].item() == (episode % 2 == 1 and age + 3 >= length)
        if not batch.ends[row]:
            then = batch.successors[row].view(STACK, 3, 4, 4)[-1, :, 0, 0].tolist()
            assert then == [0, episode, age + 3]
    assert ages == {0: {0, 1, 2}, 1: {0, 1, 2, 3, 4}}
