"""Protocols on a device: all episodes of all protocols side by side, with the CPU's own starts.

Episode k of a protocol has the same address and the same draws as in `iv.evaluate`; only the
physics runs elsewhere, in float32. Rows have the columns of results, which name no engine: what
keeps them has to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.agents.batch.starts import Starts, drawn, merge, on_cpu
from interverse.protocols.protocol import Protocol
from interverse.worlds import trifinger

Tensor = torch.Tensor
Row = dict[str, Any]
Policy = Callable[[Tensor], Tensor]

REFUSED = "store/refused"  # (n,): whether the world refused what the protocol asked of it
_LAST = 20  # steps of the third score
_BROKE = "diverged"
DIVERGED = "diverged: the physics of this world broke down and was put back"


def starts_of(
    task: str,
    protocols: Sequence[Protocol],
    *,
    episodes: int,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Starts:
    """Returns the starts of the episodes of protocols that act at the start alone."""
    settings, numbers = dict(options or {}), np.arange(episodes)
    parts = [
        protocol_starts(task, protocol, numbers, seed=seed, options=settings)
        for protocol in protocols
    ]
    return merge(parts, task, settings)


def protocol_starts(
    task: str,
    protocol: Protocol,
    numbers: NDArray[np.int64],
    *,
    seed: int,
    options: Mapping[str, Any],
) -> Starts:
    """Returns the starts of some episodes of one protocol, as `iv.evaluate` has them."""
    settings = {**on_cpu(options), **protocol.options}

    def begin(venv: Any, mine: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
        chosen, everyone = numbers[mine], np.arange(len(mine))
        given = protocol.start(chosen)
        options = {"episode": chosen.tolist(), **({"do": given} if given else {})}
        venv.reset(seed=[seed] * len(mine), options=options)
        refused = protocol.apply(venv.unwrapped.driver, everyone) if 0 in protocol.at else {}
        return {REFUSED: np.isin(everyone, list(refused))}

    return drawn(task, len(numbers), settings, begin)


@torch.no_grad()
def play(policy: Policy, arena: trifinger.DeviceArena) -> dict[str, np.ndarray]:
    """Returns the three fractional scores of one episode in every world of an arena, (N,) each.

    A fourth array, `diverged`, says in which worlds the physics broke down, where the engine goes
    on after that. The arena is started anew, with its first starts in order.
    """
    arena.restart()
    view = arena.view()
    total, late = torch.zeros_like(view.fraction), torch.zeros_like(view.fraction)
    for step in range(arena.max_steps):
        arena.step(policy(view.observation))
        view = arena.view()
        fraction = torch.nan_to_num(view.fraction)
        total += fraction
        if step >= arena.max_steps - _LAST:
            late += fraction
    scores = {
        "last_fractional_success": fraction,
        "mean_fractional_success": total / arena.max_steps,
        "last20_fractional_success": late / min(_LAST, arena.max_steps),
    }
    found = {name: values.double().cpu().numpy() for name, values in scores.items()}
    broke = getattr(arena.engine, _BROKE, torch.zeros(arena.num_worlds))  # MuJoCo raises instead
    return found | {_BROKE: broke.bool().cpu().numpy()}


def episode_rows(
    scores: Mapping[str, np.ndarray],
    protocols: Sequence[Protocol],
    starts: Starts,
    *,
    task: str,
    seed: int = 0,
) -> list[Row]:
    """Returns one results row per episode, as `iv.evaluate` has them, without the drawn values.

    Scores are what `play` returned for the starts of `starts_of` with these protocols. Episodes
    that were refused or diverged have no scores.
    """
    rows, episodes = [], len(starts) // len(protocols)
    broke = scores.get(_BROKE, np.zeros(len(starts), dtype=bool))
    refused = starts.rows[REFUSED] | broke
    for k, protocol in enumerate(protocols):
        for number in range(episodes):
            row: Row = {"task": task, "protocol": protocol.name, "seed": seed, "episode": number}
            at = k * episodes + number
            found = {name: float(values[at]) for name, values in scores.items() if name != _BROKE}
            row |= {"reason": DIVERGED} if broke[at] else {}
            rows.append(row | {"refused": bool(refused[at])} | ({} if refused[at] else found))
    return rows
