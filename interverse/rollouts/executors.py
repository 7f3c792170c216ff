"""Units of work for many hands: in this process, in others, or on a Ray cluster.

A unit is a value, and its result a pure function of it and of what all units share. Who runs it, in
which order, and how often it must be tried because a worker died changes no result. Processes and
Ray are two pools behind one loop; both send results back, so only the caller writes files.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar, final

import cloudpickle

from interverse.core.errors import InterverseError, InvalidValueError, explain
from interverse.rollouts.pool import LostError, Pool

UnitT = TypeVar("UnitT")
SharedT = TypeVar("SharedT")
ResultT = TypeVar("ResultT")
TRIES = 3  # of a unit whose workers die: a machine may fail, a unit that kills must not go on
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
    with closing(_pool(function, shared, workers, cluster)) as pool:
        yield from _share(pool, whole, on_lost)


def gpus_of(device: object) -> int:
    """Returns how many GPUs of a cluster work on a device takes.

    >>> gpus_of("cuda"), gpus_of("torch")
    (1, 0)
    """
    kind, colon, _ = str(device).partition(":")
    if kind == "cuda" and colon:
        raise InvalidValueError(
            explain(f"device is {device!r}", allowed="cuda: a cluster hands out its GPUs itself")
        )
    return int(kind == "cuda")


def _pool(function: Callable[..., Any], shared: Any, workers: int, cluster: str | None) -> Pool:
    if cluster is None:
        return Processes(function, shared, workers)
    from interverse.rollouts.cluster import RayPool  # loads Ray

    return RayPool(function, shared, workers, cluster)


def _share(
    pool: Pool, units: Iterator[Any], on_lost: Callable[[Any, InterverseError], Any] | None
) -> Iterator[tuple[Any, Any]]:
    running: dict[Any, tuple[Any, int]] = {}
    for unit in islice(units, pool.at_once):
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
            if on_lost is None:
                raise _given_up(error) from error
            result = on_lost(unit, _given_up(error))
        for following in islice(units, 1):  # before the yield: nobody idles while a file is written
            running[pool.start(following)] = (following, 1)
        yield unit, result


def _given_up(error: LostError) -> InterverseError:
    return InterverseError(
        explain(
            f"a worker ended by itself {TRIES} times at the same work, for want of memory perhaps"
            f" ({error})",
            fix="Start the same command again, with fewer workers: what is finished is kept",
        )
    )


# --------------------------------------------------------------------------- processes


@final
class Processes:
    """Spawned processes of this machine; they end with this one, however it ends.

    Each is a pool of its own, so that a process that dies takes no other's unit along.
    """

    def __init__(self, function: Callable[..., Any], shared: Any, workers: int) -> None:
        self.at_once = workers
        self._work = sendable((function, shared), "this work")
        self._context = get_context("spawn")  # a forked child would share GL contexts and threads
        self._held, self._leash = self._context.Pipe(duplex=False)
        self._idle: list[ProcessPoolExecutor] = []
        self._running: dict[Future[Any], ProcessPoolExecutor] = {}

    def start(self, unit: Any) -> Future[Any]:
        """Starts a unit in an idle process, or in a new one."""
        work = sendable(unit, "a unit of work")
        process = self._idle.pop() if self._idle else self._new()
        with _hidden_main():
            try:
                ticket = process.submit(_call, work)
            except BrokenProcessPool:  # it died while it was idle
                process = self._new()
                ticket = process.submit(_call, work)
        self._running[ticket] = process
        return ticket

    def _new(self) -> ProcessPoolExecutor:
        sent = (self._held, self._work)
        return ProcessPoolExecutor(1, self._context, initializer=_begin, initargs=sent)

    def wait(self, tickets: Collection[Future[Any]]) -> Future[Any]:
        """Returns a ticket whose unit has ended."""
        return next(iter(wait(tickets, return_when=FIRST_COMPLETED).done))

    def result(self, ticket: Future[Any]) -> Any:
        """Returns what the unit gave; `LostError` if its process died."""
        process = self._running.pop(ticket)
        try:
            value = ticket.result()
        except BrokenProcessPool as error:
            process.shutdown()
            raise LostError("a process died") from error
        except BaseException:
            self._idle.append(process)
            raise
        self._idle.append(process)
        return value

    def close(self) -> None:
        """Ends the processes; those at work are not waited for."""
        if self._running:
            self._leash.close()
        for process in (*self._idle, *self._running.values()):
            process.shutdown(wait=True, cancel_futures=True)
        self._leash.close()
        self._held.close()


def sendable(given: Any, what: str) -> bytes:
    """Returns the pickle of what other processes need, or raises with what it is.

    What a script or a notebook defines travels by value: no process imports the script again.
    """
    try:
        return cloudpickle.dumps(given)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidValueError(
            explain(
                f"{what} cannot be sent to other processes: {error}",
                fix="Leave out what is open here (files, locks, connections), or pass workers=1",
            )
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


_SENT: list[bytes] = []  # in a worker's process alone: the function, and what its units share


def _begin(leash: Connection, work: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's to handle
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()
    _SENT[:] = [work]


def _end_with(leash: Connection) -> None:
    """Ends this process when the other end is closed, or gone with the process that held it."""
    try:
        leash.recv()
    except (EOFError, OSError):
        os._exit(1)


@cache
def _work() -> tuple[Callable[..., Any], Any]:
    return cloudpickle.loads(_SENT[0])


def _call(unit: bytes) -> Any:
    function, shared = _work()
    return function(cloudpickle.loads(unit), shared)
