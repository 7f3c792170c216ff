"""`interverse explain`: what each factor costs a policy, as a table, a plot and a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import numpy as np
import tyro
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from interverse.cli.evaluate import known_policy
from interverse.cli.flags import (
    AsJson,
    Trust,
    check_once,
    flag_names,
    parse_pairs,
    tell,
    values_of,
)
from interverse.reports import palette
from interverse.reports.attribute import attribute
from interverse.reports.attribution import Attribution
from interverse.results.text import decimals, metric_label


@dataclass(frozen=True, kw_only=True)
class Explain:
    """Says which factor costs a policy how much: the same episodes, one factor changed at a time.

    For instance, the looks of a pixel policy, with the floor and the sky from held-out pictures:

      interverse explain runs/sac_aug --factors "floor=floor/*" "sky=background/*" "camera=camera/*"
    """

    run: Annotated[str, tyro.conf.Positional]
    """A training run's folder or its policy's, or a policy of the package such as
    cartpole_balance_small; or "random" or "scripted" with --task."""
    task: str | None = None
    """A world's id; a trained policy's own by default."""
    factors: tuple[str, ...] = ()
    """Patterns of variables, or NAME=PATTERN[,PATTERN]; by default all with a published space,
    states and goals only where a space is held out (B)."""
    episodes: int = 20
    """How many, each played under every intervention."""
    seed: int = 0
    """Of the episodes."""
    pairs: int = 4
    """How many of the costliest factors to combine two by two, so not 1; 0 for none."""
    together: tuple[str, ...] = ()
    """Factors to combine besides, their names joined by +, such as "floor+sky"."""
    starts: tuple[str, ...] = ()
    """Patterns of variables drawn from A for every episode, the same in each of its replays;
    without them many worlds start every episode alike."""
    metric: str | None = None
    """Which score; success or return by default."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values); those of the training hold besides."""
    out: Path | None = None
    """Where attribution.json, .md and .svg go; by default a folder `explain` in the run."""
    trust: Trust = False
    json: AsJson = False

    def usual_out(self) -> Path | None:
        """Returns where files go if no folder is given: into the run's, where there is one."""
        return Path(self.run) / "explain" if Path(self.run).is_dir() else None


def explain(config: Explain) -> Attribution:
    """Runs it, writes table, file and plot."""
    known = known_policy(config.run, config.task)
    given = values_of(config, "run", "option", "out")
    given |= {"policy": known.policy, "task": str(known.task), "factors": _factors(config.factors)}
    given["together"] = [words.split("+") for words in config.together]
    options = parse_pairs(config.option, [*flag_names(config), "policy"])
    found = attribute(**given, **known.with_options(options))
    out = config.usual_out() if config.out is None else config.out
    files = [] if out is None else _write(found, out)
    tell(config, found.to_json(), CostBars(found), *map(str, files))
    return found


@final
class CostBars:
    """The verdict, then what each factor costs as bars that fit the terminal."""

    def __init__(self, found: Attribution) -> None:
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found, free = self._found, self._found.free()
        base, count = found.scores[()], len(found.scores[()])
        yield Text(found.verdict(), style="bold")
        mean = f"{np.nanmean(base):.3g}" if np.isfinite(base).any() else "unknown"
        label = metric_label(found.metric).lower()
        of = f"{found.task}, {count} episode{'s' * (count > 1)}, {label} {mean} as it is."
        yield Text(f"{of} Lost when only this is changed:\n", style="dim")
        if found.shows_no_loss:
            return
        keys: list[tuple[str, ...]] = [(n,) for n in found.by_cost() if n not in free]
        keys += sorted(found.combined, key=lambda key: -found.cost(*key).value)
        costs = {key: found.cost(*key) for key in keys}
        names = {key: " + ".join(map(found.label, key)) for key in keys}
        most = max((abs(c.value) for c in costs.values() if not np.isnan(c.value)), default=0.0)
        digits = decimals(most)
        told = {key: cost.shown(digits) for key, cost in costs.items()}
        first = min(max(map(len, names.values()), default=0), options.max_width // 2)
        room = options.max_width - first - max(map(len, told.values()), default=0) - 4
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=first, overflow="fold")
        table.add_column(no_wrap=True)
        for key, cost in costs.items():
            share = abs(cost.value) / most if most and not np.isnan(cost.value) else 0.0
            bar = _bar(share, max(4, min(room, 40)))
            style = palette.TWIN if cost.value > 0 else "dim"
            table.add_row(Text(names[key]), Text.assemble((bar, style), told[key]))
        yield table
        if free:
            yield Text(f"\n{found.free_words()}")
        if any(not np.isnan(cost.low) for cost in costs.values()):
            yield Text("[..] 95% intervals over the same episodes with and without.", style="dim")


def _bar(share: float, width: int) -> str:
    """Returns a bar of block letters, to an eighth of a letter.

    >>> _bar(0.5, 4), _bar(0.0, 4)
    ('██ ', '')
    """
    eighths = round(8 * width * share)
    bar = "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]
    return f"{bar} " if bar else ""


def _factors(words: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Returns factors from NAME=PATTERN,PATTERN words; a bare pattern is its own name."""
    out: dict[str, list[str]] = {}
    for word in words:
        name, equals, patterns = word.partition("=")
        check_once(name, out, words)
        out[name] = patterns.split(",") if equals else [name]
    return out or None


def _write(found: Attribution, out: Path) -> list[Path]:
    files = [found.save(out / "attribution.json"), out / "attribution.md"]
    files[1].write_text(found.page())
    try:
        from interverse.reports.plots import style
    except ImportError:
        return files
    style.save(found.plot(), out / "attribution.svg")
    return [*files, out / "attribution.svg"]
