"""Curves of a variable over an episode as SVG: the fact solid, the counterfactual dashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Trace = Sequence[Mapping[str, NDArray[Any]]]

_COLORS = ("#1c7ed6", "#e8590c", "#2f9e44", "#ae3ec9")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 400.0, 150.0, 46.0, 18.0, 8.0
_MOST = len(_COLORS)  # numbers of a variable that are drawn


def curve_svg(name: str, fact: Trace, ghost: Trace, *, at: int) -> str:
    """Returns the drawing of a variable's first numbers, four at most.

    Args:
        name: the variable's.
        fact: its values at every step.
        ghost: those of the counterfactual; may be empty.
        at: the step that is looked at, marked by a line.

    >>> fact = [{"mass": np.array(1.0)}, {"mass": np.array(2.0)}]
    >>> curve_svg("mass", fact, fact[:1], at=1).count("<polyline")
    2
    """
    solid = _numbers(name, fact)
    dashed = _numbers(name, ghost) if ghost else np.empty((0, solid.shape[1]))
    every = np.concatenate([solid, dashed])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    last = max(1, len(fact) - 1, len(ghost) - 1)

    def points(column: NDArray[np.float64]) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 4.0) * np.arange(len(column)) / last
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - (column - low) / (high - low))
        pairs = zip(x, np.nan_to_num(y), strict=True)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)

    parts = [_axes(low, high, last, at)]
    for data, kind, style in ((solid, "fact", ""), (dashed, "ghost", ' stroke-dasharray="5 3"')):
        for column, color in zip(data.T, _COLORS, strict=False):
            if len(column):
                parts.append(
                    f'<polyline data-kind="{kind}" points="{points(column)}" fill="none"'
                    f' stroke="{color}" stroke-width="1.6" stroke-linecap="round"{style}'
                    ' marker-end="url(#dot)"/>'
                )
    return (
        f'<svg id="curve" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="100%"'
        ' font-family="system-ui, sans-serif" font-size="10"><defs><marker id="dot"'
        ' viewBox="0 0 6 6" refX="3" refY="3" markerWidth="4" markerHeight="4">'
        '<circle cx="3" cy="3" r="3" fill="context-stroke"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _numbers(name: str, trace: Trace) -> NDArray[np.float64]:
    """Returns (steps, numbers) of a variable."""
    return np.array([np.ravel(values[name])[:_MOST] for values in trace], dtype=np.float64)


def _axes(low: float, high: float, last: int, at: int) -> str:
    bottom, x = _HEIGHT - _BOTTOM, _LEFT + (_WIDTH - _LEFT - 4.0) * at / last
    return (
        f'<path d="M{_LEFT} {_TOP} V{bottom} H{_WIDTH - 4}" fill="none" stroke="#adb5bd"/>'
        f'<path d="M{x:.1f} {_TOP} V{bottom}" stroke="#dee2e6"/>'
        '<g fill="#868e96">'
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{_short(high)}</text>'
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">{_short(low)}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">0</text>'
        f'<text x="{_WIDTH - 4}" y="{_HEIGHT - 4}" text-anchor="end">step {last}</text></g>'
    )


def _short(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 1000.0 else f"{number:.0f}"
