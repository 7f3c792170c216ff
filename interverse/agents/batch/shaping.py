"""The learner's shaped reward: progress towards the goal, in steps a policy gradient can climb.

The tasks' own dense rewards are the published ones and stay as they are; this one is named
`shaping="progress"` in a run's record. Distances are in metres. Terms are of two kinds:

- `tips`, `push`, `lift` and `across` pay for getting somewhere. They are differences over the step
  of a number of the state, so a way that ends where it began earns nothing, as long as no step
  meets the limit of what one may earn.
- `success`, `near`, `grip` and `raised` pay for being there, every step: so does a second `near` in
  stacking2 while the lower block is placed. `effort` costs.

Two ways round do earn differences; the runs that are kept learned with them, so they stay:

- pick_and_place wants the height of the goal on the goal's side of the wall and `_CARRY` on the
  other, and a step is judged by the side where it ends. A block that rises on the far side, goes
  over the wall, sinks on the goal's side and comes back lower earns twice what it rose: 32.5 a
  round between heights of .0975 and .13. The other way round costs as much.
- stacking2 pays for the upper block while the lower one is placed alone. What the upper block loses
  while the lower one is out of its place is not taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import torch

from interverse.worlds import trifinger

Tensor = torch.Tensor
View = trifinger.ArenaView

_CARRY = 0.13  # pick_and_place: height of the block's centre while it crosses, m
_PLACED = 0.02  # stacking2: the lower block counts as placed within this distance, m
_ABOVE = 0.01  # stacking2: horizontal distance at which the upper block is at its place's height, m
_CLEARANCE = 0.03  # stacking2: how far above its place the upper block is carried, m
_AWAY = 0.2  # stacking2: horizontal distance from which the upper block earns nothing, m


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShapingWeights:
    """Weights of the terms.

    Attributes:
        tips: progress of the fingertips to the block. push: of the block to its goal.
        lift: of the block's height. across: of its horizontal place.
        grip: tips near the block. raised: height reached, as a share of the wanted one.
        success: fractional success. near: exponential nearness to the goal.
        effort: mean square of the action, in the units of the world.
    """

    tips: float = 30.0
    push: float = 100.0
    lift: float = 500.0
    across: float = 100.0
    grip: float = 0.2
    raised: float = 0.3
    success: float = 0.5
    near: float = 0.3
    effort: float = 0.002


WEIGHTS = ShapingWeights()


def shaped_reward(task: str, before: View, now: View, action: Tensor) -> Tensor:
    """Returns what a step earns, (N,), limited to [-10, 10]; actions are within their limits."""
    effort = WEIGHTS.effort * (action**2).mean(-1)
    reward = _TERMS[task](before, now) + WEIGHTS.success * now.fraction - effort
    return torch.nan_to_num(reward).clip(-10.0, 10.0)


def _reaching(before: View, now: View) -> Tensor:
    gap = [_norm(v.tips - v.goals).mean(-1) for v in (before, now)]
    return WEIGHTS.tips * (gap[0] - gap[1]) + WEIGHTS.near * torch.exp(-20.0 * gap[1])


def _pushing(before: View, now: View) -> Tensor:
    gap = [_norm(v.blocks[:, 0] - v.goals[:, 0]) for v in (before, now)]
    return (
        WEIGHTS.tips * _tips_progress(before, now, 0)
        + WEIGHTS.push * (gap[0] - gap[1])
        + WEIGHTS.near * torch.exp(-20.0 * gap[1])
    )


def _picking(before: View, now: View) -> Tensor:
    return _lifted(before, now, now.goals[:, 0, 2])


def _pick_and_place(before: View, now: View) -> Tensor:
    there = torch.sign(now.blocks[:, 0, 1]) == torch.sign(now.goals[:, 0, 1])
    return _lifted(before, now, torch.where(there, now.goals[:, 0, 2], _CARRY))


def _lifted(before: View, now: View, wanted: Tensor) -> Tensor:
    """Returns the terms of a block that is to be carried at a wanted height, (N,)."""
    half = now.sizes[:, 0, 2] / 2
    height = [(v.blocks[:, 0, 2] - wanted).abs() for v in (before, now)]
    flat = [_norm((v.blocks[:, 0] - v.goals[:, 0])[:, :2]) for v in (before, now)]
    room = wanted - half
    share = ((now.blocks[:, 0, 2] - half) / room.clip(min=1e-3)).clip(0.0, 1.0)
    raised = torch.where(room > 0.01, share, 1.0)
    gap = _norm(now.blocks[:, 0] - now.goals[:, 0])
    return (
        WEIGHTS.tips * _tips_progress(before, now, 0)
        + WEIGHTS.lift * (height[0] - height[1])
        + WEIGHTS.across * (flat[0] - flat[1])
        + WEIGHTS.raised * raised
        + WEIGHTS.grip * _grip(now, 0)
        + WEIGHTS.near * torch.exp(-20.0 * gap)
    )


def _stacking2(before: View, now: View) -> Tensor:
    """Returns the lower block's terms until it is placed, then the upper one's as well."""
    low = [_norm(v.blocks[:, 0] - v.goals[:, 0]) for v in (before, now)]
    first = WEIGHTS.tips * _tips_progress(before, now, 0)
    second = (
        WEIGHTS.tips * _tips_progress(before, now, 1)
        + _carried(now)
        - _carried(before)
        + WEIGHTS.raised * _raised(now)
        + WEIGHTS.grip * _grip(now, 1)
        + WEIGHTS.near * torch.exp(-20.0 * _norm(now.blocks[:, 1] - now.goals[:, 1]))
        + WEIGHTS.near  # for having come this far
    )
    return (
        torch.where(low[1] < _PLACED, second, first)
        + WEIGHTS.push * (low[0] - low[1])
        + WEIGHTS.near * torch.exp(-20.0 * low[1])
    )


def _carried(view: View) -> Tensor:
    """Returns how far the upper block has come: up, across, and down upon the lower one.

    A number of the present state alone, so that no way round in circles earns anything. The wanted
    height is that of a funnel over the place. On the floor the block earns nothing by coming
    nearer: paid for that, it is pushed against the lower one and stays there.
    """
    block, goal = view.blocks[:, 1], view.goals[:, 1]
    flat = _norm((block - goal)[:, :2])
    wanted = goal[:, 2] + (flat - _ABOVE).clip(0.0, _CLEARANCE)
    return (
        WEIGHTS.across * _raised(view) * (_AWAY - flat).clip(min=0.0)
        - WEIGHTS.lift * (block[:, 2] - wanted).abs()
    )


def _raised(view: View) -> Tensor:
    """Returns how far the upper block is lifted to its place, from 0 to 1."""
    half = view.sizes[:, 1, 2] / 2
    room = (view.goals[:, 1, 2] - half).clip(min=1e-3)
    return ((view.blocks[:, 1, 2] - half) / room).clip(0.0, 1.0)


_TERMS: Mapping[str, Callable[[View, View], Tensor]] = {
    "reaching": _reaching,
    "pushing": _pushing,
    "picking": _picking,
    "pick_and_place": _pick_and_place,
    "stacking2": _stacking2,
}


def _tips_distance(view: View, block: int) -> Tensor:
    return _norm(view.tips - view.blocks[:, block, None]).mean(-1)


def _tips_progress(before: View, now: View, block: int) -> Tensor:
    return _tips_distance(before, block) - _tips_distance(now, block)


def _grip(view: View, block: int) -> Tensor:
    return torch.exp(-20.0 * (_tips_distance(view, block) - 0.04).clip(min=0.0))


def _norm(vectors: Tensor) -> Tensor:
    return torch.sqrt((vectors * vectors).sum(-1))
