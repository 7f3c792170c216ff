"""`interverse view ID`: a world in the browser, every variable a slider."""

from __future__ import annotations

import contextlib
import importlib.util
from dataclasses import dataclass
from typing import Annotated

import tyro

from interverse.cli.evaluate import known_policy
from interverse.cli.flags import OptionWords, Trust, flag_names, parse_pairs, tell
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.rollouts.policy_world import policy_world
from interverse.rollouts.saved import SHIPPED, is_path, shipped_path, trained_policy
from interverse.viewer.session import Session
from interverse.worlds import WORLDS


@dataclass(frozen=True, kw_only=True)
class View:
    """Opens a world in the browser: every variable is a slider, and each slider is a do."""

    id: Annotated[str, tyro.conf.Positional]
    """A registered id, such as trifinger/pushing-v1, or the folder of a training run or a policy of
    the package, such as pushing_1: it then plays in the world it was trained in."""
    port: int = 8080
    """The port of the page; choose another if it is taken."""
    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 lets other machines see and steer the world."""
    policy: str | None = None
    """"random", "scripted", a run, a policy's folder or name, or a zip of Stable-Baselines; by
    default the package's own for the world, which starts to play, or random where there is none."""
    seed: int = 0
    """The seed of the first episode."""
    option: OptionWords = ()
    trust: Trust = False
    seconds: float | None = None
    """Stop after so many seconds; by default with Ctrl-C."""


def session_of(config: View) -> Session:
    """Returns the world to show; a trained policy comes with the options it was trained with."""
    options = parse_pairs(config.option, flag_names(config))
    id, policy = shipped_path(config.id), shipped_path(config.policy or "random")
    torch = importlib.util.find_spec("torch") is not None
    asks = torch and config.policy is None and id in WORLDS
    for path in map(trained_policy, reversed(SHIPPED)) if asks else ():
        known = policy_world(path)
        with contextlib.suppress(InvalidValueError):  # it has learned under other options
            if known.task == id and known.with_options(options) is not None:
                policy = str(path)
                break
    trained = id not in WORLDS and is_path(id)
    if trained or is_path(policy):
        known = known_policy(id if trained else policy, None if trained else id)
        id, policy, options = str(known.task), str(known.policy), known.with_options(options)
    try:
        return Session(id, seed=config.seed, policy=policy, **options)
    except UnknownNameError as error:
        if id in WORLDS:
            raise
        fix = "Or name the folder of a training run, or a policy of the package, such as pushing_1"
        raise UnknownNameError(str(error), fix=fix) from error


def view(config: View) -> None:
    """Serves the page until Ctrl-C."""
    from interverse.viewer.server import Viewer, check_port  # viser, or the line that names it

    check_port(config.host, config.port)
    with contextlib.ExitStack() as closing:
        try:
            session = session_of(config)
            closing.callback(session.close)
            playing = config.policy is None and session.policy != "random"
            viewer = Viewer(session, host=config.host, port=config.port, playing=playing)
            closing.callback(viewer.close)
            tell(config, None, f"{session.id}: open {viewer.url} in a browser; Ctrl-C stops")
            viewer.run(config.seconds)
        except KeyboardInterrupt:
            tell(config, None, "stopped")
