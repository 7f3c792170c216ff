"""Attribution of failure: what each factor costs a policy, as table, page and file.

`interverse.reports.attribute` plays the episodes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.files.atomic import write_text
from interverse.metrics.bootstrap import ROUNDING, t_reach
from interverse.results.text import Cell, Estimate, Format, Text, TextTable
from interverse.rollouts.policy_world import engine_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
Condition = tuple[str, ...]  # the factors intervened on; empty for the episode as it is
_FORMAT = "interverse-attribution-1"
_MOST_NAMED = 3  # quantities in a factor's label
INTERVAL_METHOD = (
    "95% interval over paired episodes: Student's t of the differences, rough where they are few "
    "and skewed; none where all are equal"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """Scores of the same episodes under each intervention, and what follows from them.

    Attributes:
        task: the world's id. metric: which score.
        factors: factor -> variable -> the region its values were drawn from.
        scores: the factors intervened on -> (episode,) scores; NaN where it was refused.
        engine: the engine and contacts that the episodes were played with.
    """

    task: str
    metric: str
    factors: Mapping[str, Mapping[str, str]]
    scores: Mapping[Condition, FloatArray]
    engine: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Names the task and the factors; `table()` has the costs."""
        told = f"{self.task}, {self.metric}, {len(self.scores[()])} episodes"
        return f"Attribution({told}; {', '.join(self.factors)})"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.verdict())}</b></p>{self.text_table()._repr_html_()}"

    def costs(self, *names: str) -> FloatArray:
        """Returns (episode,) the score lost by intervening on these factors together.

        A difference that is no more than rounding of the scores is 0.
        """
        for name in names:
            check_name("factor", name, self.factors)
        key = tuple(name for name in self.factors if name in names)
        if key not in self.scores:
            raise InvalidValueError(
                f"{' and '.join(names)} were not combined", fix="Ask for more pairs"
            )
        return self._unrounded(self.scores[()] - self.scores[key])

    def interaction(self, *names: str) -> FloatArray:
        """Returns (episode,) what factors cost together beyond the sum of their costs."""
        alone = np.sum([self.costs(name) for name in names], axis=0)
        return self._unrounded(self.costs(*names) - alone)

    def _unrounded(self, differences: FloatArray) -> FloatArray:
        """Returns differences of scores, 0 where they are no more than rounding."""
        return np.where(np.abs(differences) <= self._rounding, 0.0, differences)

    @property
    def _rounding(self) -> float:
        """The least difference of scores that counts, by the largest of them."""
        finite = (np.abs(s[np.isfinite(s)]) for s in self.scores.values())
        return ROUNDING * max(float(np.max(sizes, initial=0.0)) for sizes in finite)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of factors that were intervened on together."""
        return [(key[0], key[1]) for key in self.scores if len(key) == 2]

    @property
    def combined(self) -> list[Condition]:
        """The factors that were intervened on together, two or more at a time."""
        return [key for key in self.scores if len(key) > 1]

    @property
    def worst(self) -> str:
        """The factor with the highest mean cost, be it surely so or not; `verdict` tells."""
        return self.by_cost()[0]

    def by_cost(self) -> list[str]:
        """Returns the factors, the one with the highest mean cost first, refused ones last."""
        costs = {name: self.cost(name).value for name in self.factors}
        return sorted(costs, key=lambda name: -np.nan_to_num(costs[name], nan=-np.inf))

    def label(self, name: str) -> str:
        """Returns a factor's name for readers: what it moves, where the name is a group of ours.

        A name that the caller chose, and a variable's own, stay as they are.
        """
        variables = list(self.factors[name])
        part, colon, _ = name.partition(":")
        parts = {re.sub(r"_\d+$", "", v.partition("/")[0]) for v in variables}
        if parts != {part} or (not colon and len(variables) == 1):
            return name
        moved = dict.fromkeys(v.rpartition("/")[2].replace("_", " ") for v in variables)
        some = ", ".join(list(moved)[:_MOST_NAMED])
        more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
        return f"{part.replace('_', ' ')}: {some}{more}"

    def free(self) -> list[str]:
        """Returns the factors that change the score of no episode."""
        known = {n: c[~np.isnan(c)] for n in self.factors if len(c := self.costs(n))}
        return [name for name, costs in known.items() if len(costs) and not costs.any()]

    def free_words(self) -> str:
        """Returns the line about factors that change the score of no episode; empty for none."""
        free = [self.label(name) for name in self.free()]
        if not free or self.shows_no_loss:
            return ""
        count = len(self.scores[()])
        return f"Nothing changes in any of {count} episodes under: {'; '.join(free)}."

    def cost(self, *names: str) -> Estimate:
        """Returns the mean cost with its paired 95% t-interval over episodes."""
        return self._t_interval(self.costs(*names))

    def percent(self, name: str) -> Estimate:
        """Returns the mean cost of a factor in percent of the score as it is."""
        cost, base = self.cost(name), self.scores[()].mean()
        return Estimate(*(100 * end / base for end in (cost.value, cost.low, cost.high)))

    def lead(self, first: str, second: str) -> Estimate:
        """Returns how much more one factor costs than another, with its paired t-interval.

        It is of 95% for all pairs of factors together (Bonferroni's correction): which factors are
        held against each other is chosen by their costs, and the costliest of many leads by luck.
        """
        wrong = 0.05 / max(1, self._contests)
        leads = self._unrounded(self.costs(first) - self.costs(second))
        return self._t_interval(leads, confidence=1 - wrong)

    @property
    def _contests(self) -> int:
        """How many pairs of factors could be held against each other."""
        known = sum(not np.isnan(self.costs(name)).all() for name in self.factors)
        return known * (known - 1) // 2

    def _t_interval(self, differences: FloatArray, confidence: float = 0.95) -> Estimate:
        """Returns the mean of differences; equal ones, or one alone, say nothing of a spread."""
        known = differences[~np.isnan(differences)]
        count, mean = len(known), float(self._unrounded(np.asarray(_mean_of_known(known))))
        if count < 2 or not np.ptp(known) > self._rounding:
            return Estimate(mean)
        half = float(t_reach(known, confidence))
        return Estimate(mean, mean - half, mean + half)

    @property
    def shows_no_loss(self) -> bool:
        """Whether every episode scores 0 as it is and none less: what cannot fall costs nothing."""
        least = min(float(np.nanmin(s, initial=np.inf)) for s in self.scores.values())
        return not self.scores[()].any() and least >= 0

    def verdict(self) -> str:
        """Returns in words which factor costs most, and whether that is sure."""
        if self.shows_no_loss:
            return (
                "The policy scores nothing as it is, so no cost can be seen; "
                "explain a policy, or by a metric, that scores something."
            )
        base, names = _mean_of_known(self.scores[()]), self.by_cost()
        cost = self.cost(names[0])
        if np.isnan(cost.value):
            return "Every intervention was refused, so no cost is known."
        if not cost.value > 0:
            return "No factor costs anything on average."
        most = " most" if len(names) > 1 else ""
        told = f"{self.label(names[0])} costs{most}: {cost.value:.4g}"
        told += "" if np.isnan(cost.low) else f" [{cost.low:.4g}, {cost.high:.4g}]"
        told += f", {100.0 * cost.value / base:.0f}% of it" if base > 0 else ""
        if np.isnan(cost.low):
            alone = np.sum(~np.isnan(self.costs(names[0]))) < 2
            why = "One episode has" if alone else "As much in every episode: it has"
            return f"{told}. {why} no interval" + (": it may be chance." if alone else ".")
        first, *rivals = self.may_cost_most()
        family, tied = f"at 95% for all {self._contests} pairs of factors together", ""
        if rivals:
            tied = f"; {', '.join(map(self.label, rivals))} may cost as much"
        if len(rivals) == 1:
            lead = self.lead(first, rivals[0])
            ends = f"[{lead.low:.4g}, {lead.high:.4g}] includes 0"
            tied += f": the difference {'has no interval' if np.isnan(lead.low) else ends}"
        if self._contests >= 2:
            tied = f"{tied} ({family})" if tied else f", more than each other factor {family}"
        told += tied
        return f"{told}." + ("" if cost.low > 0 else " That it costs anything is not certain.")

    def may_cost_most(self) -> list[str]:
        """Returns the costliest factor, then every other that may cost as much: see `lead`."""
        first, *others = self.by_cost()
        leads = {name: self.lead(first, name) for name in others}
        known = {name: lead for name, lead in leads.items() if not np.isnan(lead.value)}
        return [first, *(name for name, lead in known.items() if not lead.low > 0)]

    def table(self, format: Format = "rich") -> Text:
        """Returns costs and interactions as text, the costliest factor first."""
        return self.text_table().render(format)

    def text_table(self) -> TextTable:
        """Returns costs and interactions, the costliest factor first, pairs after them."""
        base = _mean_of_known(self.scores[()])
        singles = self.by_cost()
        combined = sorted(self.combined, key=lambda key: -self.cost(*key).value)
        rows: list[tuple[Cell, ...]] = [self._row((name,), base) for name in singles]
        rows += [self._row(key, base) for key in combined]
        few = len(self.scores[()]) < 2
        interval = "(one episode: no interval)" if few else f"[{INTERVAL_METHOD}]"
        return TextTable(
            title=f"{self.task}, {self.metric} {base:.4g} as it is",
            header=("factor", "episodes", self.metric, "cost", "share", "interaction"),
            rows=tuple(rows),
            caption=f"cost = what the same episode loses under the intervention {interval}; "
            "share of the score as it is; interaction = cost together beyond the sum of the costs "
            "alone",
        )

    def _row(self, names: tuple[str, ...], base: float) -> tuple[Cell, ...]:
        costs = self.costs(*names)
        cost = self.cost(*names)
        share = cost.value / base if base > 0 else np.nan
        both = Estimate(np.nan)
        if len(names) > 1:
            both = self._t_interval(self.interaction(*names))
        known = int(np.sum(~np.isnan(costs)))
        key = tuple(name for name in self.factors if name in names)
        label, mean = " + ".join(map(self.label, names)), _mean_of_known(self.scores[key])
        return label, known, mean, cost, share, both

    def page(self) -> str:
        """Returns all of it on one Markdown page: what broke, how surely, and what was changed."""
        base, count = _mean_of_known(self.scores[()]), len(self.scores[()])
        lossless, known = self.shows_no_loss, self.scores[()][~np.isnan(self.scores[()])]
        alike = not lossless and len(known) > 1 and not np.ptp(known) > self._rounding
        same = ", the same in each: such episodes may be one, and only what is drawn varies"
        replayed = "" if lossless else "Replayed with one factor changed, all else equal: "
        story = (
            f"As it is, the policy has a mean {self.metric} of {base:.4g} over {count} "
            f"episode{'s' * (count > 1)}{same * alike}. {replayed}{self.verdict()}"
        )
        free, harmless = self.free(), list[str]()
        if not lossless:  # the factors that cost little: surely so, or in no episode seen
            little = [n for n in self.factors if n not in free]
            small = [self.label(n) for n in little if self.cost(n).high <= 0.01 * abs(base)]
            harmless = [f"No more than one percent is lost to: {', '.join(small)}."] * bool(small)
            harmless += [self.free_words()] if free else []
            unsure = "Of no factor is it certain that it costs less than one percent."
            harmless = harmless or [unsure]
        drawn = [
            f"- {self.label(name)}: "
            + ", ".join(f"`{variable}` ({held[variable]})" for variable in held)
            for name, held in self.factors.items()
        ]
        contact = self.engine.get("contact")
        parts = [
            f"# Why it fails: {self.task}",
            story + (f" Played on {engine_words(self.engine)}." if contact else ""),
            *harmless,
            str(self.table("markdown")),
            "What each factor draws, and from which space:",
            "\n".join(drawn),
        ]
        return "\n\n".join(parts) + "\n"

    def plot(self) -> Figure:
        """Returns the costs as bars with their intervals, pairs and interactions beneath."""
        from interverse.reports.plots.bars import costs  # brings matplotlib

        return costs(self)

    def to_json(self) -> dict[str, Any]:
        """Returns all of it as JSON values; `from_json` reads them."""
        scores = [
            {"factors": list(key), "scores": [None if np.isnan(s) else float(s) for s in row]}
            for key, row in self.scores.items()
        ]
        factors = {name: dict(regions) for name, regions in self.factors.items()}
        about: dict[str, Any] = {"format": _FORMAT, "task": self.task, "metric": self.metric}
        about |= {"engine": dict(self.engine)} if self.engine else {}
        return about | {"factors": factors, "order": list(factors), "conditions": scores}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Attribution:
        """Returns what `to_json` wrote."""
        scores = {
            tuple(row["factors"]): np.array(row["scores"], dtype=np.float64)
            for row in held["conditions"]
        }
        factors = {name: held["factors"][name] for name in held["order"]}
        about = {"task": held["task"], "metric": held["metric"], "engine": held.get("engine", {})}
        return cls(**about, factors=factors, scores=scores)

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON and returns the path."""
        return write_text(Path(path), json.dumps(self.to_json(), indent=1))


def _mean_of_known(values: FloatArray) -> float:
    """Returns the mean of what is not NaN; NaN if nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
