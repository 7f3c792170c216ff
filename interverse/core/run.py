"""A training run: one folder, one loop, the same for every learner.

    with Run(folder, identity, title="ppo trifinger/pushing-v1", total=steps) as run:
        if (saved := run.resume()) is not None:
            learner.load(saved.tensors)
            step = saved.step
        while step < steps:
            step += learner.update()
            run.log(step, {"loss": learner.loss})
            run.show(step, f"loss {learner.loss:.3f}")
            run.keep(step, lambda: Checkpoint(step=step, record={}, tensors=learner.state()))

The folder is locked and tied to what it holds; `keep` writes a checkpoint where one is due and ends
the run where Ctrl-C or SIGTERM was heard; `show` moves a bar on a terminal and writes lines into a
file; `log` writes curves for TensorBoard.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from interverse.core.code import stamp_run
from interverse.core.errors import missing_extra
from interverse.core.files.atomic import alone_in, quiet_threads, storage
from interverse.core.files.checkpoints import Checkpoint, Checkpoints

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

CHECKPOINTS = "checkpoint"  # the folder of a run's checkpoints
LONGEST_UNSAVED = 300.0  # seconds between two checkpoints at most, however many steps they are
LONGEST_SILENCE = 30.0  # seconds between two lines in a file


@final
class Run:
    """A run in a folder, from the lock to the last checkpoint.

    Args:
        folder: where it writes; None for a run that leaves nothing, which only shows and stops.
        identity: what tells it from others, as JSON; see `interverse.core.code.stamp_run`.
        title: of its bar and its lines.
        total: steps in all.
        every: steps between two checkpoints; there is one every five minutes anyhow, and at the
            end.
        display: where progress is shown, also of other runs beside it; None shows nothing.
        wandb: a project of Weights & Biases that gets the curves too.

    Attributes:
        checkpoints: those in the folder; see `interverse.core.files.checkpoints`.
    """

    def __init__(
        self,
        folder: Path | None,
        identity: Mapping[str, Any],
        *,
        title: str,
        total: int,
        every: int | None = None,
        display: Display | None = None,
        wandb: str | None = None,
    ) -> None:
        self.folder, self._identity, self._title, self._total = folder, identity, title, total
        self._every, self._display, self._wandb = every, display, wandb
        self.checkpoints = None if folder is None else Checkpoints(folder / CHECKPOINTS)
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._task: Any = None
        self._begun = self._saved = 0  # steps
        self._saved_at = 0.0
        self._writer: SummaryWriter | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(alone_in(self.folder))
                stack.enter_context(storage(self.folder))
                stack.enter_context(quiet_threads())
                stamp_run(self.folder, self._identity)
                if self._wandb is not None:
                    config = {n: value for n, value in self._identity.items() if n != "code"}
                    stack.enter_context(_tracked(self._wandb, self.folder, config))
            self._stop = stack.enter_context(patient_interrupt())
            stack.callback(self._close)
            self._stack = stack.pop_all()
        if self._display is not None:
            self._task = self._display.add(self._title, self._total)
        self._saved_at = time.monotonic()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def resume(self) -> Checkpoint | None:
        """Returns the newest whole checkpoint, from which the run goes on; None at its beginning.

        Where the newest is damaged, the one before is taken, and the run says so.
        """
        found = None if self.checkpoints is None else self.checkpoints.load()
        if found is not None:
            if self.checkpoints is not None and self.checkpoints.told:
                sys.stderr.write(f"{self.checkpoints.told}\n")
            self._begun = self._saved = found.step
            self.show(found.step)
        return found

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C or SIGTERM was heard: the next `keep` ends the run."""
        return self._stop.is_set()

    def due(self, step: int) -> bool:
        """Returns whether a checkpoint is due after so many steps, the last one's included."""
        if self.folder is None or step == self._saved:
            return False
        crossed = self._every is not None and step // self._every > self._saved // self._every
        late = time.monotonic() - self._saved_at >= LONGEST_UNSAVED
        return crossed or late or self.stopped or step >= self._total

    def keep(self, step: int, state: Callable[[], Checkpoint]) -> None:
        """Writes a checkpoint, which `state` returns, if one is due.

        After Ctrl-C or SIGTERM it then raises KeyboardInterrupt.
        """
        if self.due(step):
            self.save(state())
        if self.stopped:
            raise KeyboardInterrupt

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint now."""
        if self.checkpoints is None:
            return
        self.checkpoints.save(checkpoint)
        self._saved, self._saved_at = checkpoint.step, time.monotonic()
        if self._writer is not None:
            self._writer.flush()

    def show(self, step: int, text: str | None = None) -> None:
        """Shows how far the run is, and a few words on how well it does; None leaves the last."""
        if self._display is not None:
            self._display.update(self._task, step, text)

    def say(self, line: str) -> None:
        """Shows a line of its own, in a run that shows its progress."""
        if self._display is not None:
            self._display.say(line)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Writes values by name as curves for TensorBoard.

        What an earlier try wrote after the step that this one went on from is dropped.
        """
        if self.folder is None:
            return
        if self._writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise missing_extra("tensorboard", "torch") from error
            purge = self._begun + 1 if self._begun else None
            self._writer = SummaryWriter(str(self.folder / "tensorboard"), purge_step=purge)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()  # it is a thread
            self._writer = None
        if self._display is not None and self._task is not None:
            self._display.end(self._task)


@contextmanager
def _tracked(project: str, folder: Path, config: dict[str, Any]) -> Iterator[None]:
    """Sends what TensorBoard is told to a project of Weights & Biases too."""
    try:
        import wandb
    except ImportError as error:
        raise missing_extra("wandb", "wandb") from error
    run = wandb.init(
        project=project, name=folder.name, dir=str(folder), config=config, sync_tensorboard=True
    )
    try:
        yield
    finally:
        run.finish()


# ------------------------------------------------------------------------------------- interrupts


@final
class _Patience:
    """Hears the first Ctrl-C or SIGTERM and lets the work come to rest; the second one ends it."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def __call__(self, number: int, frame: Any) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()
        sys.stderr.write("Stopping soon, with a checkpoint; Ctrl-C again stops at once.\n")


@contextmanager
def patient_interrupt() -> Iterator[threading.Event]:
    """Yields an event that the first Ctrl-C or SIGTERM sets; the second one interrupts at once.

    Runs beside each other in a process hear the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield threading.Event()  # signals are the main thread's
        return
    before = signal.getsignal(signal.SIGINT)
    if isinstance(before, _Patience):
        yield before.stop
        return
    patience = _Patience()
    held = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in held:
        signal.signal(number, patience)
    try:
        yield patience.stop
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """Has SIGTERM end the work as Ctrl-C does: what is finished is kept, workers end."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# --------------------------------------------------------------------------------------- progress


@final
class Display:
    """Progress of runs: bars on a terminal, a line at least every 30 s anywhere else."""

    def __init__(self, *, show: bool = True, unit: str = "steps") -> None:
        self._show, self._unit = show, unit
        self._moved: dict[Any, tuple[float, float]] = {}  # when a run began here, and at which step
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        if not show:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._lines = not console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
        more = (TimeRemainingColumn(), TextColumn("{task.fields[score]}"))
        self._bars = Progress(*columns, *more, console=console, disable=self._lines)

    def __enter__(self) -> Self:
        if self._show:
            self._bars.__enter__()
            if self._lines:
                # A thread of its own: one update may take minutes, and a silent log looks dead.
                self._thread = threading.Thread(target=self._repeat, daemon=True)
                self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._show:
            self._bars.__exit__(*error)

    def add(self, title: str, total: int) -> Any:
        """Adds a run; returns what `update` knows it by."""
        if not self._show:
            return None
        task = self._bars.add_task(title, total=total, score="")
        self._moved[task] = time.monotonic(), 0.0
        self._line(task)
        return task

    def update(self, task: Any, step: int, text: str | None = None) -> None:
        """Shows how far a run is; `text` None leaves what was said last."""
        if not self._show:
            return
        if not self._moved[task][1]:  # the first steps may be those of an earlier try
            self._moved[task] = time.monotonic(), float(step)
        told: dict[str, Any] = {} if text is None else {"score": text}
        self._bars.update(task, completed=step, **told)

    def end(self, task: Any) -> None:
        """Writes a run's last line."""
        self._line(task)
        self._moved.pop(task, None)

    def say(self, line: str) -> None:
        """Shows a line above the bars."""
        if self._show:
            self._bars.console.print(line, soft_wrap=True, markup=False, highlight=False)

    def _repeat(self) -> None:
        while not self._ended.wait(LONGEST_SILENCE):
            for task in tuple(self._moved):
                self._line(task)

    def _line(self, task: Any) -> None:
        if task not in self._moved or not self._lines:
            return
        found = next(one for one in self._bars.tasks if one.id == task)
        done, total = int(found.completed), int(found.total or 0)
        parts = [f"{found.description}: {done:,} of {total:,} {self._unit}"]
        parts += [str(found.fields["score"])] if found.fields["score"] else []
        began, first = self._moved[task]
        if first and done > first and done < total:
            left = (total - done) * (time.monotonic() - began) / (done - first)
            parts.append(f"{duration(left)} left")
        self.say(", ".join(parts))


def duration(seconds: float) -> str:
    """Returns a time for a reader.

    >>> [duration(s) for s in (4.2, 75, 7300)]
    ['4 s', '1 min 15 s', '2 h 1 min']
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
