"""A Ray cluster as a pool: a CPU a unit, a GPU where it needs one, results back to who asked.

Nothing is read from or written to a shared file system. A node must have Ray, interverse and what
else makes numbers in the versions of the process that asks; a node that differs says so.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, final

from interverse._version import __version__
from interverse.core.code import code_hash, installed
from interverse.core.errors import InterverseError, InvalidValueError, LostError, missing_extra

try:
    import ray
    from ray import exceptions
except ImportError as error:
    raise missing_extra("ray", "ray") from error

LOCAL, AUTO = "local", "auto"
_ALLOWED = f"'{LOCAL}', '{AUTO}', HOST:PORT, ray://HOST:PORT"
_LOST = (
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.OutOfMemoryError,
    exceptions.WorkerCrashedError,
)
_SOLVER = "friction solver"
_MATTER = ("dm_control", "gymnasium", "mujoco", "numpy", "scipy", "torch")
_ABSENT = re.compile(r"No module named ('[\w.]+')")
_USAGE = "RAY_USAGE_STATS_ENABLED"
_PATIENCE = 10.0  # seconds for a head node to answer


@final
class RayPool:
    """Units as Ray tasks, with what they share put into the cluster once.

    The cluster "local" starts one on this machine for as long as it is needed; "auto" takes the one
    that this process is connected to, RAY_ADDRESS names or this machine runs; else it is an
    address, HOST:PORT or ray://HOST:PORT.
    """

    def __init__(
        self, function: Callable[..., Any], shared: Any, workers: int, cluster: str
    ) -> None:
        self.at_once = workers
        self._function, self._gpus = function, getattr(shared, "gpus", 0)
        self._running: set[Any] = set()
        # The handler that Ray is about to replace; it does so in the main thread alone.
        main = threading.current_thread() is threading.main_thread()
        self._old_handler = signal.getsignal(signal.SIGTERM) if main else None
        environment = set(os.environ)
        self._own = _connect(cluster, workers)
        self._added = set(os.environ) - environment  # PYTHONBREAKPOINT among them
        try:
            self._shared = ray.put(shared)
        except TypeError as error:
            self.close()
            told = str(error).splitlines()[0]
            raise InvalidValueError(
                f"this work cannot be sent to a cluster: {told}",
                fix="Save the policy and pass its path",
            ) from error
        # Ray's own retries would not tell that a worker was lost, nor end with one clear line.
        self._task: Any = ray.remote(num_cpus=1, max_retries=0)(_call)

    def start(self, unit: Any) -> Any:
        """Starts a unit as soon as a CPU of the cluster is free, and the GPUs that it needs."""
        gpus = max(self._gpus, getattr(unit, "gpus", 0))
        if gpus and ray.cluster_resources().get("GPU", 0) < gpus:  # Ray would wait without a word
            raise InvalidValueError(
                f"the work needs {gpus:g} GPU, and the Ray cluster has too few",
                fix="Join a machine that has one, or choose device cpu",
            )
        task = self._task.options(num_gpus=gpus)
        ticket = task.remote(self._function, unit, self._shared, versions())
        self._running.add(ticket)
        return ticket

    def wait(self, tickets: Collection[Any]) -> Any:
        """Returns a ticket whose unit has ended."""
        ready, _ = ray.wait(list(tickets), num_returns=1)
        return ready[0]

    def result(self, ticket: Any) -> Any:
        """Returns what the unit gave; `LostError` if its worker or its node died."""
        self._running.discard(ticket)
        try:
            return ray.get(ticket)
        except exceptions.OwnerDiedError as error:  # the owner is this process, alive and well
            raise InterverseError(
                "a node of the cluster cannot reach this process",
                fix="Open its ports to the nodes, and set RAY_AUTH_MODE alike on both sides",
            ) from error
        except _LOST as error:
            raise LostError(type(error).__name__) from error
        except exceptions.RayTaskError as error:
            raise _cause(error) from error
        except exceptions.RayError as error:
            raise InterverseError(f"the Ray cluster failed: {_line(error)}") from error

    def close(self) -> None:
        """Cancels what still runs, and leaves the cluster if this object joined it."""
        for ticket in self._running:
            with suppress(exceptions.RayError):
                ray.cancel(ticket, force=True)
        if self._own:
            ray.shutdown()
            for name in self._added:
                os.environ.pop(name, None)
            if self._old_handler is not None:
                signal.signal(signal.SIGTERM, self._old_handler)


def _connect(cluster: str, workers: int) -> bool:
    """Joins the cluster; returns whether that is ours to undo."""
    if not isinstance(cluster, str) or not cluster:
        raise InvalidValueError(f"cluster is {cluster!r}", allowed=_ALLOWED)
    if ray.is_initialized():
        present = ray.get_runtime_context().gcs_address
        if cluster in (AUTO, present):
            return False
        raise InvalidValueError(
            f"cluster is {cluster!r}, but this process is connected to Ray at {present}",
            allowed=f"'{AUTO}', '{present}'",
            fix="Or call ray.shutdown() first",
        )
    new: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
    new = new if cluster == LOCAL else {}
    try:
        address = os.environ.get("RAY_ADDRESS", cluster) if cluster == AUTO else cluster
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host and port.isdigit():  # Ray itself would try for minutes where nobody answers
            socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
        asked = _USAGE in os.environ
        os.environ.setdefault(_USAGE, "0")  # a cluster reports its use to Ray's makers
        try:
            ray.init(cluster, log_to_driver=False, logging_level=logging.ERROR, **new)
        finally:
            if not asked:
                del os.environ[_USAGE]
    except (exceptions.RayError, ImportError, OSError, RuntimeError, ValueError) as error:
        ray.shutdown()
        raise InvalidValueError(
            f"no Ray cluster at {cluster!r}: {_line(error)}",
            allowed=_ALLOWED,
            fix="Start one with: ray start --head. One that asks for a token needs"
            " RAY_AUTH_MODE=token here too",
        ) from error
    return True


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _cause(error: exceptions.RayTaskError) -> BaseException:
    """Returns the error that the unit raised, with its own type and text."""
    cause = error.cause
    absent = _ABSENT.search(str(cause))
    if absent and isinstance(cause, ImportError | exceptions.RayError):
        return InterverseError(
            f"a node of the cluster has no module {absent[1]}",
            fix="Install it there, or send it with Ray's runtime_env; see docs/cluster.md",
        )
    if isinstance(cause, exceptions.RayError):
        return InterverseError(f"a unit failed on the cluster: {_line(cause)}")
    return cause


# --------------------------------------------------------------------------- on the node


def _call(function: Callable[..., Any], unit: Any, shared: Any, expected: Mapping[str, str]) -> Any:
    check_versions(expected)
    return function(unit, shared)


def versions() -> dict[str, str]:
    """Returns name -> version, here, of what can change a number."""
    told = {"interverse": __version__, "interverse's files": code_hash(), **installed(*_MATTER)}
    native = sys.modules.get("interverse.sim.coulomb")
    if native is not None and native.used():
        told[_SOLVER] = native.solver_hash()
    return told


def check_versions(expected: Mapping[str, str]) -> None:
    """Raises if this node would compute with other versions than the process that asks."""
    here = versions()
    libraries = expected.keys() - {_SOLVER}
    if len(libraries) < len(expected) and all(here.get(n) == expected[n] for n in libraries):
        from interverse.sim import coulomb  # loads MuJoCo

        cannot = coulomb.missing()
        here[_SOLVER] = f"missing ({cannot})" if cannot else coulomb.solver_hash()
    other = [
        f"{name} {here.get(name, 'missing')} instead of {version}"
        for name, version in expected.items()
        if here.get(name) != version
    ]
    if other:
        raise InterverseError(
            f"node {os.uname().nodename} of the cluster has {', '.join(other)}",
            fix="Install the same versions on every node: scores may depend on them",
        )
