"""Threads that draw, each with a GL context of its own.

A GL context belongs to one thread at a time, so whatever is drawn with one is done by its thread:
a world may then be used from any thread, and libraries that take their own context for current
(dm_control does) are not disturbed. What different threads draw is drawn side by side, for GL and
MuJoCo work without Python's lock. Threads stay until the process ends and are used again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar, final

from mujoco.rendering.classic import gl_context

from interverse.sim import gl

T = TypeVar("T")
_STARTING = threading.Lock()
_THREADS: dict[int, DrawingThread] = {}


@final
class DrawingThread:
    """A thread with a GL context; calls given to it are made one after the other."""

    def __init__(self, number: int) -> None:
        self._pool = ThreadPoolExecutor(1, f"interverse-drawing-{number}", self._start)

    def _start(self) -> None:
        self._identity = threading.get_ident()
        with _STARTING:
            gl.backend()
            self._context = gl_context.GLContext(8, 8)
            self._context.make_current()

    def run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Returns what a call gives in this thread."""
        if threading.get_ident() == getattr(self, "_identity", None):
            return call(*arguments)  # it is here already
        return self.begin(call, *arguments).result()

    def begin(self, call: Callable[..., T], *arguments: Any) -> Future[T]:
        """Starts a call in this thread, after those begun before."""
        gl.backend()  # raises here, with its own text, where nothing can draw
        return self._pool.submit(call, *arguments)

    def later(self, call: Callable[[], object]) -> None:
        """Leaves a call to this thread; nobody waits, for the thread itself may be asking."""
        with contextlib.suppress(RuntimeError):  # the interpreter is about to end
            self._pool.submit(call)


def drawing_thread(number: int = 0) -> DrawingThread:
    """Returns one of the threads of this process, started when first used."""
    gl.check_process()
    with _STARTING:
        if number not in _THREADS:
            _THREADS[number] = DrawingThread(number)
        return _THREADS[number]


@final
class DrawingPool:
    """Drawing threads that share numbered work: the same thread has the same numbers, always."""

    def __init__(self, size: int) -> None:
        self.size = size

    def thread_of(self, number: int) -> int:
        """Returns the thread that does this number."""
        return number % self.size

    def each(self, call: Callable[[int], object], numbers: Sequence[int]) -> None:
        """Makes a call for each number and waits for all; the first thread's error is raised.

        Numbers of one thread are done in turn, those of others beside it; a pool of one works in
        the caller's thread.
        """
        if self.size == 1:
            _work(call, numbers)
            return
        shares: dict[int, list[int]] = {}
        for number in numbers:
            shares.setdefault(self.thread_of(number), []).append(number)
        begun = [drawing_thread(t).begin(_work, call, share) for t, share in sorted(shares.items())]
        wait(begun)
        for future in begun:
            future.result()


def _work(call: Callable[[int], object], numbers: Sequence[int]) -> None:
    for number in numbers:
        call(number)


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
