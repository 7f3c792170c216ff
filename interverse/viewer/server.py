"""The viewer: a viser server, a session, and the one thread in which the world lives."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import socket
import threading
import time
from contextlib import AbstractContextManager
from typing import Any, final

from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    check_whole,
    explain,
    missing_extra,
)
from interverse.viewer.desk import Order, Orders
from interverse.viewer.session import Session

try:
    import viser

    from interverse.viewer.access import Access, guarded
    from interverse.viewer.page import Page
except ImportError as error:
    raise missing_extra("viser", "view") from error

_LOG = logging.getLogger(__name__)
_TICK = 0.04  # seconds between two actions of a world that plays
_VALUES = 0.2  # seconds between two looks at all variables of a world that plays
_STILL = 0.3  # seconds without a change after which a world is drawn at its best


@final
class Viewer:
    """Serves a session until it is stopped.

    Args:
        session: what to show; it is used from the thread that calls `run` alone.
        host: the address to listen on.
        port: the port; it must be free. None takes any that is.
        lock: held while the world is used; others that hold it may use the world meanwhile.
        playing: whether the policy acts from the start, and again after each episode's end until
            somebody presses a button.
    """

    def __init__(
        self,
        session: Session,
        *,
        host: str = "127.0.0.1",
        port: int | None = 8080,
        lock: AbstractContextManager[Any] | None = None,
        playing: bool = False,
    ) -> None:
        port = free_port(host) if port is None else port
        check_port(host, port)
        self._session, self._orders = session, Orders()
        self._lock = contextlib.nullcontext() if lock is None else lock
        self._stopping = threading.Event()
        access = Access(port)
        with contextlib.redirect_stdout(io.StringIO()), guarded(access):  # viser greets there
            self._server = viser.ViserServer(host=host, port=port, verbose=False)
        shown = "localhost" if host == "0.0.0.0" else host
        self.url = f"http://{shown}:{port}/?token={access.token}"
        self._page = Page(self._server, session, self._orders)
        self._values_at, self._behind, self._shown = 0.0, False, session.history
        self._changed_at = 0.0
        self._page.desk.playing = self._untouched = playing

    def run(self, seconds: float | None = None) -> None:
        """Carries out what the page asks for, for so many seconds or until stopped."""
        end = math.inf if seconds is None else time.monotonic() + seconds
        while not self._stopping.is_set() and time.monotonic() < end:
            started = time.monotonic()
            with self._lock:
                if self._page.desk.playing:
                    self._tick()
                elif self._behind or self._session.history is not self._shown:  # by a script
                    self.show()
                elif self._session.quick and started - self._changed_at > _STILL:
                    self._session.quick = False
                    self._page.refresh_world()
            took = time.monotonic() - started
            left = max(_TICK - took, 0.0 if self._page.desk.playing else took)  # the script's half
            order = self._orders.take(min(left, max(0.0, end - started)))
            while order is not None:
                with self._lock:
                    self._carry_out(order)
                order = self._orders.take(0.0)

    def _hurry(self) -> None:
        """Draws quickly from now on, until nothing has changed for a while."""
        self._session.quick, self._changed_at = True, time.monotonic()

    def _carry_out(self, order: Order) -> None:
        self._hurry()
        self._untouched = False
        try:
            order()
        except InterverseError as error:
            self._page.desk.refuse(str(error))
        except Exception as error:  # whatever a page sends, the server goes on
            _LOG.warning("an order of the page failed", exc_info=error)
            self._page.desk.refuse(f"{type(error).__name__}: {error}")
        self._shown, self._behind = self._session.history, False
        self._page.refresh()

    def _tick(self) -> None:
        """Takes one action of a world that plays."""
        desk = self._page.desk
        try:
            self._session.step()
        except InterverseError as error:
            desk.refuse(str(error))
            desk.playing = False
        if self._session.history.ended:
            if self._untouched:
                self._session.reset(self._session.seed + 1)
            else:
                desk.playing = False
        self.show()

    def show(self) -> None:
        """Shows the world now, and all of its variables if they were not just before."""
        self._hurry()
        now, self._shown = self._changed_at, self._session.history
        self._behind = now - self._values_at < _VALUES
        if self._behind:
            self._page.refresh_world()
        else:
            self._values_at = now
            self._page.refresh()

    def stop(self) -> None:
        """Makes `run` return, from another thread."""
        self._stopping.set()

    def close(self) -> None:
        """Stops serving; the session stays open."""
        self._page.ghosts.clear()
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()


def free_port(host: str) -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def check_port(host: str, port: int) -> None:
    """Raises unless this address can be listened on: viser would quietly take another port."""
    check_whole(port, "port", 65535)
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise InvalidValueError(
            explain(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                fix="Choose another with --port (or --host)",
            )
        ) from error
