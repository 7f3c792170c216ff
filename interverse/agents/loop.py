"""The learning loop of Stable-Baselines3 runs: pieces, checkpoints, progress, Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from interverse.agents import training_state
from interverse.agents.sb3 import WorldVecEnv
from interverse.rollouts.exported import ExportedPolicy

CHECKPOINT = "checkpoint"


class Watcher(Protocol):
    """Something that looks at a run when it starts and before each checkpoint is written."""

    def started(self, steps: int) -> None:
        """Hears after how many steps the run begins or goes on."""

    def reached(self, policy: ExportedPolicy, steps: int) -> None:
        """Hears of the policy after so many steps."""


class Learning:
    """A model that learns in its worlds, with checkpoints in a folder.

    Args:
        model: what learns.
        env: its worlds.
        folder: where checkpoints go; one that is there is loaded.
        checkpoint_every: steps between two.
    """

    def __init__(
        self, model: BaseAlgorithm, env: WorldVecEnv, folder: Path, checkpoint_every: int
    ) -> None:
        self._model, self._env = model, env
        self._folder, self._every = folder / CHECKPOINT, checkpoint_every
        held = training_state.find(self._folder)
        # The step that the next regular checkpoint comes after: a stop in between moves none.
        self._until = None if held is None else training_state.load(model, env, held)

    def run(
        self,
        steps: int,
        policy: Callable[[], ExportedPolicy],
        watcher: Watcher | None,
        title: str | None,
    ) -> None:
        """Learns up to so many steps in equal pieces, a checkpoint after each, broken run or not.

        Args:
            steps: in all.
            policy: returns the present policy, for the watcher.
            watcher: looks at each checkpoint's policy.
            title: of the progress bar; None shows no bar.
        """
        model = self._model
        if watcher is not None:
            watcher.started(model.num_timesteps)
        with _bar(title, steps) as show, _patient_interrupt() as stop:
            if model.num_timesteps:
                show(model.num_timesteps, None)
            while model.num_timesteps < steps:
                self._until = self._until or min(model.num_timesteps + self._every, steps)
                try:
                    self._learn_piece(_ProgressCallback(show, stop))
                except _StoppedError:
                    training_state.save(model, self._env, self._folder, self._until)
                    raise KeyboardInterrupt from None
                if watcher is not None:  # before the checkpoint: a kill in between repeats it
                    watcher.reached(policy(), model.num_timesteps)
                self._until = None
                training_state.save(model, self._env, self._folder, None)

    def _learn_piece(self, pace: _ProgressCallback) -> None:
        done = self._model.num_timesteps
        self._model.learn(
            (self._until or done) - done, callback=pace, reset_num_timesteps=done == 0
        )


class _StoppedError(Exception):
    """The user asked for an end; model and worlds are at rest between two batches."""


class _ProgressCallback(BaseCallback):
    """Shows steps and returns while a model learns, and stops it between two batches."""

    def __init__(self, show: Callable[[int, float | None], None], stop: threading.Event) -> None:
        super().__init__()
        self._show, self._stop = show, stop

    def _on_rollout_start(self) -> None:
        if self._stop.is_set():
            raise _StoppedError

    def _on_step(self) -> bool:
        recent: Any = self.model.ep_info_buffer or ()
        returns = [episode["r"] for episode in recent]
        self._show(self.num_timesteps, sum(returns) / len(returns) if returns else None)
        return True


@contextmanager
def _bar(title: str | None, steps: int) -> Iterator[Callable[[int, float | None], None]]:
    """Yields what shows the steps made and the mean return of recent episodes."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    more = (TimeRemainingColumn(), TextColumn("{task.fields[score]}"))
    console = Console(stderr=True)
    with Progress(*columns, *more, console=console, disable=title is None) as bar:
        task = bar.add_task(title or "", total=steps, score="")

        def show(done: int, mean: float | None) -> None:
            score = "" if mean is None else f"return {mean:.4g}"
            bar.update(task, completed=done, score=score)

        yield show


@contextmanager
def _patient_interrupt() -> Iterator[threading.Event]:
    """Yields an event that the first Ctrl-C sets; the second one interrupts at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are the main thread's
        return

    def on_signal(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        text = "Stopping after this batch, with a checkpoint; Ctrl-C again stops at once."
        Console(stderr=True).print(text)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
