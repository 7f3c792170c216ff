"""`iv.view(env)`: a page on a script's own environment, while the script goes on."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, final
from urllib.parse import quote

import gymnasium as gym

from interverse.envs import WorldEnv
from interverse.rollouts.policy import PolicyLike
from interverse.rollouts.runner import world_env
from interverse.viewer.server import Viewer
from interverse.viewer.session import Session

_USES = ("do", "observe", "render", "reset", "restore", "snapshot", "step")
_HEIGHT = 720  # of the page in a notebook, pixels


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
