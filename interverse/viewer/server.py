"""The viewer: a viser server, a session, and the one thread in which the world lives.

Access needs a token in the URL, kept in a cookie, and pages of this server alone: any web page may
open a connection to a port of the machine it is shown on, and could steer the world.
`interverse.view(env)` opens a page on a script's own environment, while the script goes on.
"""

from __future__ import annotations

import contextlib
import functools
import http
import io
import logging
import math
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.cookies import CookieError, SimpleCookie
from typing import Any, final
from urllib.parse import parse_qs, quote, urlsplit

import gymnasium as gym

from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    check_whole,
    missing_extra,
)
from interverse.envs import WorldEnv
from interverse.rollouts.policy import PolicyLike
from interverse.rollouts.runner import world_env
from interverse.viewer.desk import Order, Orders
from interverse.viewer.session import Session

try:
    import viser
    import websockets.asyncio.server
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

    from interverse.viewer.page import Page
except ImportError as error:
    raise missing_extra("viser", "view") from error

_LOG = logging.getLogger(__name__)
_TICK = 0.04  # seconds between two actions of a world that plays
_VALUES = 0.2  # seconds between two looks at all variables of a world that plays
_USES = ("do", "observe", "render", "reset", "restore", "snapshot", "step")
_HEIGHT = 720  # of the page in a notebook, pixels
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
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            fix="Choose another with --port (or --host)",
        ) from error


# ------------------------------------------------------------------------------------------- access

Handler = Callable[[Any, Request], Any]


@final
class Access:
    """Decides which requests a server answers.

    Args:
        port: the server's; browsers share cookies between the ports of a host.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self._cookie = f"interverse-{port}"

    def refusal(self, request: Request) -> Response | None:
        """Returns the answer to a request that is refused, None for one that may go on."""
        origin, text = request.headers.get("Origin"), ""
        if not self._has_token(request):
            text = "open the whole URL that `interverse view` printed, token and all\n"
        if origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
            text = "this page is of another origin\n"
        if not text:
            return None
        headers = Headers({"Content-Type": "text/plain", "Content-Length": str(len(text))})
        return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, text.encode())

    def guard(self, handler: Handler) -> Handler:
        """Returns a handler that refuses first and leaves the cookie with what it answers."""

        def answer(connection: Any, request: Request) -> Any:
            response = self.refusal(request)
            if response is None:
                response = handler(connection, request)
                if isinstance(response, Response):
                    kept = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    response.headers["Set-Cookie"] = kept
                    response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return answer

    def _has_token(self, request: Request) -> bool:
        given = parse_qs(urlsplit(request.path).query).get("token", [])
        with contextlib.suppress(CookieError):
            for text in request.headers.get_all("Cookie"):
                held = SimpleCookie(text).get(self._cookie)
                given += [] if held is None else [held.value]
        return any(secrets.compare_digest(word.encode(), self.token.encode()) for word in given)


@contextlib.contextmanager
def guarded(access: Access) -> Iterator[None]:
    """Guards the server that is started meanwhile; viser has no hook for its requests."""
    serve = websockets.asyncio.server.serve

    def start(*args: Any, process_request: Handler, **settings: Any) -> Any:
        return serve(*args, process_request=access.guard(process_request), **settings)

    websockets.asyncio.server.serve = start  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        websockets.asyncio.server.serve = serve  # type: ignore[misc]


# -------------------------------------------------------------------------- a script's environment


def view(
    env: gym.Env[Any, Any],
    *,
    policy: PolicyLike = "random",
    host: str = "127.0.0.1",
    port: int | None = None,
) -> LiveView:
    """Opens a page on an environment and returns at once.

    The page shows every step that the script takes, and what is set on the page holds in the
    script's environment from the next call on. In a notebook the returned view shows itself.

    Args:
        env: an environment of interverse, wrapped or not; one that was never reset is, with seed 0.
        policy: what acts when a person presses Step or Play on the page.
        host: the address to listen on.
        port: the port; None takes one that is free.

    >>> import interverse as iv
    >>> env = iv.make("tutorial/slider-v1")
    >>> with iv.view(env) as page:
    ...     print(page.url.partition("token=")[0].partition(":")[0])
    http
    """
    return LiveView(world_env(env), policy, host, port)


@final
class LiveView:
    """A page on an environment, served by a thread of its own until `close`.

    Attributes:
        url: the page's address; whoever has it can steer the environment.
    """

    def __init__(self, env: WorldEnv, policy: PolicyLike, host: str, port: int | None) -> None:
        self._env, self._lock = env, threading.RLock()
        self._session = Session(env, policy=policy)
        try:
            self._viewer = Viewer(self._session, host=host, port=port, lock=self._lock)
        except BaseException:
            self._session.close()
            raise
        self.url = self._viewer.url
        # Worlds are not made for two threads: every use of this environment waits for the page's.
        vars(env).update({name: self._guarded(name, getattr(env, name)) for name in _USES})
        self._thread = threading.Thread(target=self._viewer.run, daemon=True)
        self._thread.start()

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def guarded(*args: Any, **options: Any) -> Any:
            with self._lock:
                out = call(*args, **options)
                if name in ("reset", "restore") and not self._session.busy:
                    is_start = name == "reset" and "snapshot" not in (options.get("options") or {})
                    self._session.begin(None if is_start else self._env.driver.snapshot())
                return out

        return guarded

    def close(self) -> None:
        """Ends the page; the environment stays as it is."""
        if not self._thread.is_alive():
            return
        self._viewer.stop()
        self._thread.join()
        self._viewer.close()
        for name in _USES:
            del vars(self._env)[name]  # the method is there again
        self._session.close()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LiveView({self._session.id!r}, {self.url})"

    def _repr_html_(self) -> str:
        # A browser keeps no cookies of a page inside another site's: the socket's address has the
        # token, too.
        socket = quote(self.url.replace("http", "ws", 1), safe="")
        return (
            f'<iframe src="{self.url}&websocket={socket}" width="100%" height="{_HEIGHT}"'
            ' style="border:0"></iframe>'
        )
