"""The viewer: a viser server, a session, and the one thread in which the world lives."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import time
from typing import final

from interverse.core.errors import InterverseError, InvalidValueError, explain, missing_extra
from interverse.viewer.orders import Order, Orders
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
_IDLE = 0.25


@final
class Viewer:
    """Serves a session until it is stopped.

    Args:
        session: what to show; it is used from the thread that calls `run` alone.
        host: the address to listen on.
        port: the port; it must be free.
    """

    def __init__(self, session: Session, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        check_port(host, port)
        self._session, self._orders = session, Orders()
        access = Access(port)
        with contextlib.redirect_stdout(io.StringIO()), guarded(access):  # viser greets there
            self._server = viser.ViserServer(host=host, port=port, verbose=False)
        shown = "localhost" if host == "0.0.0.0" else host
        self.url = f"http://{shown}:{port}/?token={access.token}"
        self._page = Page(self._server, session, self._orders)
        self._values_at = 0.0

    def run(self, seconds: float | None = None) -> None:
        """Carries out what the page asks for, for so many seconds or until interrupted."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            started = time.monotonic()
            if self._page.playing:
                self._tick()
                left = max(0.0, _TICK - (time.monotonic() - started))
            else:
                left = _IDLE if end is None else max(0.0, min(_IDLE, end - started))
            order = self._orders.take(left)
            while order is not None:
                self._carry_out(order)
                order = self._orders.take(0.0)

    def _carry_out(self, order: Order) -> None:
        try:
            order()
        except InterverseError as error:
            self._page.refuse(str(error))
        except Exception as error:  # whatever a page sends, the server goes on
            _LOG.warning("an order of the page failed", exc_info=error)
            self._page.refuse(f"{type(error).__name__}: {error}")
        self._page.refresh()

    def _tick(self) -> None:
        """Takes one action of a world that plays; looks at all variables only now and then."""
        try:
            self._session.step()
        except InterverseError as error:
            self._page.refuse(str(error))
            self._page.playing = False
        if self._session.history.ended:
            self._page.playing = False
        now = time.monotonic()
        if now - self._values_at > _VALUES or not self._page.playing:
            self._values_at = now
            self._page.refresh()
        else:
            self._page.refresh_world()

    def close(self) -> None:
        """Stops serving; the session stays open."""
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()


def check_port(host: str, port: int) -> None:
    """Raises unless this address can be listened on: viser would quietly take another port."""
    if not 1 <= port <= 65535:
        raise InvalidValueError(explain(f"port is {port}", allowed="1 to 65535"))
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
