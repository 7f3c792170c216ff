"""Access to the viewer: a token in its URL, kept in a cookie, and pages of this server alone.

Any web page may open a connection to a port of the machine it is shown on; without these checks it
could steer the world.
"""

from __future__ import annotations

import contextlib
import http
import secrets
from collections.abc import Callable, Iterator
from http.cookies import CookieError, SimpleCookie
from typing import Any, final
from urllib.parse import parse_qs, urlsplit

import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

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
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
            return _forbidden("this page is of another origin\n")
        if not self._has_token(request):
            return _forbidden("open the whole URL that `interverse view` printed, token and all\n")
        return None

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


def _forbidden(text: str) -> Response:
    headers = Headers({"Content-Type": "text/plain", "Content-Length": str(len(text))})
    return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, text.encode())


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
