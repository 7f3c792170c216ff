"""Effects that take time: a reached object fades from the colour it shows to the one it gets.

Colours here are red, green and blue in 0..255, and the networks read what the parents show. An
effect of delay D stands after D frames, the first of which is that of the intervention itself. All
objects reached by one intervention are drawn from what was shown before it (and the paint).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

from interverse.core.arrays import Array, device, namespace
from interverse.worlds.chemistry.cpt import Mechanisms, cumulative, first_layer_dense, pick
from interverse.worlds.chemistry.dynamics import one_hot, reached_parents
from interverse.worlds.palette import to_bytes

TOLERANCE = 25.0  # mean difference over red, green and blue below which two colours match
_MEAN_EXTRA_DELAY = 3.0


@final
class Fade(NamedTuple):
    """Where R worlds of n objects stand between two colours."""

    color: Array  # (R, n) int64, the colour an object has or fades to
    origin: Array  # (R, n, 3) int64, what it showed when its fade began
    elapsed: Array  # (R, n) int64, frames of the fade shown
    duration: Array  # (R, n) int64, frames of the whole fade; 0: stuck at its origin (legacy)


def whole_bytes(palette: Array) -> Array:
    """Returns palettes in 0..1 as int64 in 0..255."""
    xp = namespace(palette)
    return xp.astype(to_bytes(palette), xp.int64)


def settled(color: Array) -> Fade:
    """Returns objects that show their colours fully."""
    xp = namespace(color)
    origin = xp.zeros((*color.shape, 3), dtype=xp.int64, device=device(color))
    one = xp.ones_like(color)
    return Fade(color=color, origin=origin, elapsed=one, duration=xp.ones_like(color))


def shown(fade: Fade, palette: Array) -> Array:
    """Returns (R, n, 3) int64 what each object shows now, for palettes (R, k, 3) in 0..255."""
    xp = namespace(palette)
    world = xp.arange(palette.shape[0], device=device(palette))[:, None]
    aim = palette[world, fade.color]
    whole = xp.clip(fade.duration, 1, None)[:, :, None]
    part = xp.where(fade.duration > 0, fade.elapsed, fade.elapsed * 0)[:, :, None]
    return (fade.origin * (whole - part) + aim * part) // whole


def start(mechanisms: Mechanisms, palette: Array, uniforms: Array) -> Fade:
    """Returns first colours for (R, n) numbers: object 0 evenly, the others in order, settled."""
    xp = namespace(uniforms)
    color = xp.zeros(uniforms.shape, dtype=xp.int64, device=device(uniforms))
    color[:, 0] = xp.astype(xp.floor(uniforms[:, 0] * palette.shape[1]), xp.int64)
    for v in range(1, uniforms.shape[1]):
        rgb = shown(settled(color), palette)
        color[:, v] = _draw(mechanisms, v, rgb, uniforms[:, v])
    return settled(color)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FadeRules:
    """What makes a step: mechanisms, palettes, delays, and whether the original's defects hold."""

    mechanisms: Mechanisms
    palette: Array  # (R, k, 3) int64 in 0..255
    delay: Array  # (R, n, n) int64; [i, j]: of the edge from j to i
    legacy: bool


def propagate(fade: Fade, objects: Array, paints: Array, rules: FadeRules, uniforms: Array) -> Fade:
    """Returns the objects one frame after object `objects[r]` of each world r was painted."""
    xp = namespace(uniforms)
    world = xp.arange(uniforms.shape[0], device=device(uniforms))
    reached = one_hot(objects, uniforms.shape[1])
    paint = rules.palette[world, paints]
    rgb = xp.where(reached[:, :, None], paint[:, None, :], shown(fade, rules.palette))
    painted = reached & (fade.elapsed >= fade.duration) if rules.legacy else reached
    out = Fade(
        color=xp.where(painted, paints[:, None], fade.color),
        origin=xp.asarray(fade.origin, copy=True),
        elapsed=xp.where(painted, xp.ones_like(fade.elapsed), fade.elapsed),
        duration=xp.where(painted, xp.ones_like(fade.duration), fade.duration),
    )
    for v in range(1, uniforms.shape[1]):
        causes = reached_parents(rules.mechanisms.adjacency, reached, v)
        hit = xp.any(causes, axis=1)
        first = xp.argmax(xp.astype(causes, xp.int64), axis=1)
        frames = rules.delay[world, v, first] - int(rules.legacy)
        drawn = _draw(rules.mechanisms, v, rgb, uniforms[:, v])
        out.color[:, v] = xp.where(hit & (frames > 0), drawn, out.color[:, v])
        out.origin[:, v] = xp.where(hit[:, None], rgb[:, v], out.origin[:, v])
        out.elapsed[:, v] = xp.where(hit, out.elapsed[:, v] * 0, out.elapsed[:, v])
        out.duration[:, v] = xp.where(hit, frames, out.duration[:, v])
        reached[:, v] |= hit
    return out._replace(elapsed=xp.where(out.elapsed < out.duration, out.elapsed + 1, out.elapsed))


def play(fade: Fade, actions: Array, rules: FadeRules, uniforms: Array) -> Fade:
    """Returns the objects after T actions (R, T) in a row, with noise (R, n, T)."""
    count = rules.palette.shape[1]
    for t in range(actions.shape[1]):
        chosen = actions[:, t]
        fade = propagate(fade, chosen // count, chosen % count, rules, uniforms[:, :, t])
    return fade


def matches(rgb: Array, targets: Array) -> Array:
    """Returns (R,) the fraction of objects (R, m, 3) that show about their target's colour."""
    xp = namespace(rgb)
    off = xp.mean(xp.astype(xp.abs(rgb - targets), xp.float64), axis=2)
    return xp.mean(xp.astype(off < TOLERANCE, xp.float64), axis=1)


def random_delays(uniforms: Array, longest: int) -> Array:
    """Returns delays 1 + Poisson(3), at most `longest`, for numbers in [0, 1)."""
    xp = namespace(uniforms)
    chance = math.exp(-_MEAN_EXTRA_DELAY)
    below, out = chance, xp.ones_like(xp.astype(uniforms, xp.int64))
    for extra in range(1, longest):
        out = out + xp.astype(uniforms >= below, xp.int64)
        chance *= _MEAN_EXTRA_DELAY / extra
        below += chance
    return out


def _draw(mechanisms: Mechanisms, v: int, rgb: Array, uniforms: Array) -> Array:
    xp = namespace(uniforms)
    features = xp.astype(rgb, xp.float64)
    return pick(cumulative(mechanisms, v, first_layer_dense(mechanisms, v, features)), uniforms)
