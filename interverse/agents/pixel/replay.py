"""A replay buffer that keeps every frame once, in uint8, and rebuilds stacks by index.

All actors ("lanes") advance together, so time is one number: slot `time % slots` of a lane holds
the newest frame it saw then, how old its episode was, and what it did. A transition is a slot whose
successor is one step older; the observation after it shares its frames.

At rest the buffer is a list of files, each written once and never changed: what a record names is
whole, and a checkpoint writes only what is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.agents.pixel.agent import PixelBatch, sent
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.atomic import atomic
from interverse.core.files.zip_archive import read_npz

_PATIENCE = 1000  # rounds of drawing until a buffer counts as empty
_TORN = (OSError, ValueError, KeyError, EOFError, RuntimeError)
_ROWS = ("ages", "actions", "rewards", "ends")


class PixelMoment(NamedTuple):
    """One step of every lane: what was seen, done and earned."""

    frames: NDArray[np.uint8]  # (lanes, c, S, S), the newest frame only
    ages: NDArray[np.int64]  # (lanes,): steps since the episode began
    actions: NDArray[np.float32]  # (lanes, A)
    rewards: NDArray[np.float32]  # (lanes,)
    ends: NDArray[np.bool_]  # (lanes,): terminated by the action


class PixelDraw(NamedTuple):
    """Transitions by number: frames of (N, stack + steps), and actions, rewards, ends in a row."""

    rows: torch.Tensor  # int64
    numbers: torch.Tensor  # float32, (N, A + 2), or as many for each step of a sequence

    def to(self, device: torch.device) -> PixelDraw:
        """Returns the draw on a device, without waiting for the copy."""
        return PixelDraw(*(part.to(device, non_blocking=True) for part in self))


@final
class Replay:
    """Keeps the last `capacity` frames of some lanes.

    Args:
        capacity: frames of all lanes together.
        lanes: actors that are written together.
        frame: shape (c, S, S) of one frame.
        actions: numbers of an action.
        stack: frames of an observation, oldest first; the first one is repeated at the start.
        device: where frames live. On a GPU, stacks are gathered there and nothing is uploaded.
        discounts: of the rewards that a transition adds up; its successor is as many steps later,
            or nothing where the episode ends by itself before.
        sequences: whether batches have every step on the way instead: all frames as observations,
            and actions, rewards and ends step by step; discounts then only count the steps.
    """

    def __init__(
        self,
        *,
        capacity: int,
        lanes: int,
        frame: tuple[int, int, int],
        actions: int,
        stack: int,
        device: str = "cpu",
        discounts: tuple[float, ...] = (1.0,),
        sequences: bool = False,
    ) -> None:
        self.slots = capacity // lanes
        ahead = len(discounts)
        if self.slots < stack + 1 + ahead:
            raise InvalidValueError(
                f"a replay buffer of {capacity} frames for {lanes} actors",
                allowed=f"{lanes * (stack + 1 + ahead)} frames or more",
            )
        self.lanes, self.stack, self.time = lanes, stack, 0
        self._discounts, self._sequences = np.array(discounts, dtype=np.float32), sequences
        # NumPy's zeros cost no memory until they are written; Torch's do.
        frames = torch.from_numpy(np.zeros((self.slots, lanes, *frame), dtype=np.uint8))
        self._frames = frames.to(device)
        self._ages = np.zeros((self.slots, lanes), dtype=np.int64)
        self._actions = np.zeros((self.slots, lanes, actions), dtype=np.float32)
        self._rewards = np.zeros((self.slots, lanes), dtype=np.float32)
        self._ends = np.zeros((self.slots, lanes), dtype=bool)
        self._files: list[dict[str, Any]] = []  # what is on disk: name, first and last time

    def __len__(self) -> int:
        """Returns how many frames it holds."""
        return min(self.time, self.slots) * self.lanes

    @property
    def frame_channels(self) -> int:
        """How many of an observation's channels are its newest frame."""
        return self._frames.shape[2]

    @property
    def nbytes(self) -> int:
        """Memory of frames and everything else."""
        rest = (self._ages, self._actions, self._rewards, self._ends)
        return self._frames.nbytes + sum(array.nbytes for array in rest)

    def add(self, moment: PixelMoment) -> None:
        """Stores one step of every lane over the oldest."""
        slot = self.time % self.slots
        self._frames[slot] = sent(moment.frames, self._frames.device)
        self._ages[slot], self._actions[slot] = moment.ages, moment.actions
        self._rewards[slot], self._ends[slot] = moment.rewards, moment.ends
        self.time += 1

    def sample(self, count: int, rng: np.random.Generator) -> PixelBatch:
        """Returns transitions drawn evenly, on the frames' device."""
        return self.gather(self.draw(count, rng).to(self._frames.device))

    def draw(self, count: int, rng: np.random.Generator) -> PixelDraw:
        """Returns which transitions a batch has, drawn evenly, and all of them but pictures."""
        times, lanes = self._choose(count, rng)
        slots = times % self.slots
        back = np.minimum(np.arange(self.stack - 1, 0, -1), self._ages[slots, lanes][:, None])
        ahead = times[:, None] + np.arange(len(self._discounts) + 1)
        path = np.concatenate([times[:, None] - back, ahead], axis=1)
        rows = (path % self.slots) * self.lanes + lanes[:, None]
        passed = (ahead[:, :-1] % self.slots, lanes[:, None])
        acted, earned, ended = self._actions[passed], self._rewards[passed], self._ends[passed]
        if not self._sequences:
            over = np.cumsum(ended, axis=1) > ended  # what follows an end is another episode's
            earned = (np.where(over, 0.0, earned) * self._discounts).sum(axis=1, dtype=np.float32)
            acted, ended = acted[:, 0], ended.any(axis=1)
        parts = [acted.reshape(count, -1), earned, ended.astype(np.float32)]
        numbers = np.column_stack(parts)
        return PixelDraw(torch.from_numpy(rows), torch.from_numpy(numbers))

    def gather(self, draw: PixelDraw) -> PixelBatch:
        """Returns the batch of a draw that lies on the frames' device: nothing else is read."""
        frames = self._frames.flatten(0, 1).index_select(0, draw.rows.flatten())
        channels = self.stack * self.frame_channels
        pictures = frames.view(len(draw.rows), -1, *frames.shape[2:])
        steps = len(self._discounts) if self._sequences else 1
        widths = [draw.numbers.shape[1] - 2 * steps, steps, steps]
        actions, rewards, ends = draw.numbers.split(widths, dim=1)
        now, then = pictures[:, :channels], pictures[:, -channels:]  # they share their frames
        now = pictures if self._sequences else now
        return PixelBatch(now, actions, rewards, ends, then)

    def _choose(self, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Returns times and lanes of transitions whose frames are all still there.

        One that ends by itself may be shorter: nothing comes after an end, so no frame is missing.
        """
        oldest, ahead = max(self.time - self.slots, 0), len(self._discounts)
        times = np.empty(0, dtype=np.int64)
        lanes = np.empty(0, dtype=np.int64)
        for _ in range(_PATIENCE):
            if len(times) >= count:
                return times[:count], lanes[:count]
            if self.time - ahead <= oldest:
                break
            time = rng.integers(oldest, self.time - ahead, count)
            lane = rng.integers(0, self.lanes, count)
            age = self._ages[time % self.slots, lane]
            later_age = self._ages[(time + ahead) % self.slots, lane]
            deep = time - np.minimum(age, self.stack - 1) >= oldest
            whole = later_age == age + ahead
            if not self._sequences:
                # Whether the episode of each slot ends by itself within a transition's steps.
                steps = np.arange(len(self._discounts))
                path = ((time[:, None] + steps) % self.slots, lane[:, None])
                ages = self._ages[path]
                whole |= np.any(self._ends[path] & (ages == ages[:, :1] + steps), axis=1)
            good = whole & deep
            times, lanes = np.append(times, time[good]), np.append(lanes, lane[good])
        raise InvalidValueError(
            "the replay buffer holds no transition", fix="Add steps before sampling"
        )

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes what is new to a file of its own; returns the record that `load` needs.

        Files that the record no longer names may be deleted once the record is safe.
        """
        folder.mkdir(parents=True, exist_ok=True)
        oldest = max(self.time - self.slots, 0)
        start = max(self._files[-1]["stop"] if self._files else 0, oldest)
        if start < self.time:
            name = f"replay-{start}-{self.time}.npz"
            slots = np.arange(start, self.time) % self.slots
            frames = self._frames[torch.from_numpy(slots).to(self._frames.device)].cpu().numpy()
            rows = {row: getattr(self, f"_{row}")[slots] for row in _ROWS}
            with atomic(folder / name, durable=True) as scratch, scratch.open("wb") as file:
                np.savez(file, allow_pickle=False, frames=frames, **rows)
            self._files.append({"name": name, "start": start, "stop": self.time})
        self._files = [file for file in self._files if file["stop"] > oldest]
        return {"time": self.time, "files": [dict(file) for file in self._files]}

    def load(self, folder: Path, record: Mapping[str, Any]) -> None:
        """Puts what a record names into this buffer of the same shape."""
        for file in record["files"]:
            path = folder / file["name"]
            try:
                held = read_npz(path)
                keep = slice(max(file["stop"] - file["start"] - self.slots, 0), None)
                slots = np.arange(file["start"], file["stop"])[keep] % self.slots
                frames = torch.from_numpy(held["frames"][keep]).to(self._frames.device)
                self._frames[torch.from_numpy(slots).to(self._frames.device)] = frames
                for row in _ROWS:
                    getattr(self, f"_{row}")[slots] = held[row][keep]
            except _TORN as error:
                raise FileFormatError(
                    f"{path} cannot be read as a part of the replay buffer: {error}",
                    fix="Delete the run's folder to start it afresh",
                ) from error
        self.time = record["time"]
        self._files = [dict(file) for file in record["files"]]
