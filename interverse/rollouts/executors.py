"""Units of work for many hands: in this process, in others, or on a Ray cluster.

A unit is a value, and its result a pure function of it and of what all units share. Who runs it, in
which order, and how often it must be tried because a worker died changes no result. Processes and
Ray are two pools behind one loop; both send results back, so only the caller writes files.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar, cast, final

import cloudpickle

from interverse.core.errors import InterverseError, InvalidValueError, LostError

UnitT = TypeVar("UnitT")
SharedT = TypeVar("SharedT")
ResultT = TypeVar("ResultT")
TRIES = 3  # of a unit whose workers die: a machine may fail, a unit that kills must not go on
PATIENCE = 10.0  # seconds for a process to end by itself
_PROTOCOL = pickle.HIGHEST_PROTOCOL
_LOG = logging.getLogger(__name__)


def run_units(
    function: Callable[[UnitT, SharedT], ResultT],
    units: Iterable[UnitT],
    shared: SharedT,
    *,
    workers: int = 1,
    cluster: str | None = None,
    on_lost: Callable[[UnitT, InterverseError], ResultT] | None = None,
) -> Generator[tuple[UnitT, ResultT]]:
    """Yields (unit, `function(unit, shared)`) as units finish; close it to stop early.

    Units are taken one by one as workers get free, so there may be endlessly many. A unit whose
    worker died is started again, at most three times in all.

    Args:
        function: of a module, so that other processes find it.
        units: what to do.
        shared: what all units need, such as a policy; sent once. On a cluster a unit takes one CPU,
            and as many GPUs (a fraction too) as its attribute `gpus` or that of `shared` says.
        workers: how many units run at a time.
        cluster: None for processes of this machine, or a Ray cluster; see `docs/cluster.md`.
        on_lost: gives the result of a unit whose workers died three times; None raises.

    >>> from operator import mul
    >>> list(run_units(mul, [1, 2, 3], 10))
    [(1, 10), (2, 20), (3, 30)]
    """
    source = iter(units)
    first = list(islice(source, 2))
    whole = chain(first, source)
    if not first or (cluster is None and (workers == 1 or len(first) == 1)):
        for unit in whole:
            yield unit, function(unit, shared)
        return
    made: Any
    if cluster is None:
        made = Processes(function, shared, workers)
    else:
        from interverse.rollouts.cluster import RayPool  # loads Ray

        made = RayPool(function, shared, workers, cluster)
    running: dict[Any, tuple[UnitT, int]] = {}
    with closing(made) as pool:
        for unit in islice(whole, pool.at_once):
            running[pool.start(unit)] = (unit, 1)
        while running:
            ticket = pool.wait(running)
            unit, tries = running.pop(ticket)
            try:
                result = pool.result(ticket)
            except LostError as error:
                if tries < TRIES:
                    _LOG.warning("a worker was lost, its work is done again (%s)", error)
                    running[pool.start(unit)] = (unit, tries + 1)
                    continue
                told = InterverseError(
                    f"a worker ended by itself {TRIES} times at the same work, for want of"
                    f" memory perhaps ({error})",
                    fix="Start the same command again, with fewer workers: what is finished is"
                    " kept",
                )
                if on_lost is None:
                    raise told from error
                result = on_lost(unit, told)
            for following in islice(whole, 1):  # before the yield: nobody idles meanwhile
                running[pool.start(following)] = (following, 1)
            yield unit, result


def gpus_of(device: object) -> int:
    """Returns how many GPUs of a cluster work on a device takes.

    >>> gpus_of("cuda"), gpus_of("torch")
    (1, 0)
    """
    kind, colon, _ = str(device).partition(":")
    if kind == "cuda" and colon:
        raise InvalidValueError(
            f"device is {device!r}", allowed="cuda: a cluster hands out its GPUs itself"
        )
    return int(kind == "cuda")


# --------------------------------------------------------------------------- processes


@final
class Processes:
    """Spawned processes of this machine; they end with this one, however it ends.

    Each has a pipe of its own, of which it alone holds the other end: what one that dies leaves
    half written takes no other's unit along, and nobody waits for the rest. A ticket is the pipe.
    """

    def __init__(self, function: Callable[..., Any], shared: Any, workers: int) -> None:
        self.at_once = workers
        self._work = sendable((function, shared), "this work")
        self._processes: dict[Connection, SpawnProcess] = {}
        self._idle: list[Connection] = []
        atexit.register(self.close)  # before multiprocessing waits for all its processes

    def start(self, unit: Any) -> Connection:
        """Starts a unit in an idle process, or in a new one."""
        work = sendable(unit, "a unit of work")
        while self._idle:
            ticket = self._idle.pop()
            try:
                ticket.send_bytes(work)
                return ticket
            except OSError:  # it died while it was idle
                self._end([ticket])
        context = get_context("spawn")  # a forked child would share GL contexts and threads
        ticket, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work))
        self._processes[ticket] = process
        with _hidden_main(), _without_interrupts(), theirs:
            process.start()
        with suppress(OSError):  # if it died at once, `result` will say so
            ticket.send_bytes(work)
        return ticket

    def wait(self, tickets: Collection[Connection]) -> Connection:
        """Returns a ticket whose unit has ended."""
        ends = {self._processes[ticket].sentinel: ticket for ticket in tickets}
        found = wait([*tickets, *ends])[0]
        return found if isinstance(found, Connection) else ends[cast(int, found)]

    def result(self, ticket: Connection) -> Any:
        """Returns what the unit gave; `LostError` if its process died."""
        try:
            if not ticket.poll():  # the process is dead, and one that it started holds the pipe
                raise EOFError
            answer = ticket.recv_bytes()
        except (EOFError, OSError) as error:
            self._end([ticket])
            raise LostError("a process died") from error
        self._idle.append(ticket)
        raised, value = cloudpickle.loads(answer)
        if raised:
            raise value
        return value

    def close(self) -> None:
        """Ends the processes; those at work are not waited for."""
        atexit.unregister(self.close)
        self._end(list(self._processes))

    def _end(self, tickets: list[Connection]) -> None:
        """Ends processes: the idle ones by themselves, the others at once."""
        ending = {ticket: self._processes.pop(ticket) for ticket in tickets}
        begun = {ticket: process for ticket, process in ending.items() if process.pid is not None}
        for ticket, process in begun.items():
            ticket.close()
            if ticket not in self._idle:
                process.kill()
        self._idle = [ticket for ticket in self._idle if ticket not in ending]
        end = time.monotonic() + PATIENCE
        for process in begun.values():
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                _LOG.warning("process %s did not end in %g s and is killed", process.pid, PATIENCE)
                process.kill()
                process.join(PATIENCE)


def sendable(given: Any, what: str) -> bytes:
    """Returns the pickle of what other processes need, or raises with what it is.

    What a script or a notebook defines travels by value: no process imports the script again.
    """
    try:
        return cloudpickle.dumps(given)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidValueError(
            f"{what} cannot be sent to other processes: {error}",
            fix="Leave out what is open here (files, locks, connections), or pass workers=1",
        ) from error


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Lets processes start without importing the script that runs here.

    A script without `if __name__ == "__main__":` would start itself again in each of them.
    """
    main = sys.modules["__main__"].__dict__
    held: dict[str, Any] = {n: main[n] for n in ("__file__", "__spec__") if n in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main |= held


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keeps Ctrl-C from processes that start here, for good, and from this one until they have.

    A terminal sends it to all: it is the first process's to handle, and one that is still starting
    would print a traceback.
    """
    resource_tracker.ensure_running()  # it would let the signals through again
    came: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    if main and callable(handler):  # another thread may take the signal in spite of the mask
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if main and callable(handler):
            signal.signal(signal.SIGINT, handler)
            if came:
                signal.raise_signal(signal.SIGINT)


def _serve(units: Connection, work: bytes) -> None:
    """Does units, in a process of its own, until nobody sends any more."""
    parent = parent_process()

    def end_with_parent() -> None:
        """Ends this process when the one that started it is gone, in the middle of a unit too."""
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    sent: Any = None  # the function, and what its units share; a mistake in it is a unit's
    while True:
        try:
            unit = units.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            sent = sent or cloudpickle.loads(work)
            function, shared = sent
            answer = pickle.dumps((False, function(cloudpickle.loads(unit), shared)), _PROTOCOL)
        except BaseException as error:
            answer = _raised(error)
        try:
            units.send_bytes(answer)
        except OSError:
            return


def _raised(error: BaseException) -> bytes:
    """Returns an error with its traceback as a note; its text alone if it cannot be sent."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        answer = pickle.dumps((True, error), _PROTOCOL)
        cloudpickle.loads(answer)
    except Exception:
        told = "".join(traceback.format_exception_only(error)).strip()
        answer = pickle.dumps((True, InterverseError(told)), _PROTOCOL)
    return answer
