"""Attribution of failure: what each factor costs a policy, alone and in pairs.

An episode is played once as it is, and again under an intervention on one factor, or two: the same
seed and number, hence the same start and noise, with the policy acting anew. Differences between
the two are the factor's doing and nothing else's, so a few dozen episodes tell factors apart. It
needs variables with spaces, `do` and addressed noise, and so works in every world.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from interverse.actors.actor import Moment, apply
from interverse.actors.uniform import Regional
from interverse.core.errors import (
    InvalidValueError,
    UnknownNameError,
    check_name,
    check_whole,
    explain,
    unknown,
)
from interverse.core.rng import Noise, check_seed
from interverse.envs import make_vec
from interverse.envs.make import check_options
from interverse.metrics import bootstrap
from interverse.protocols.factors import Factors, FactorsLike, as_factors
from interverse.protocols.protocol import ATTEMPTS, Protocol
from interverse.protocols.scorer import EpisodeScorer
from interverse.protocols.unit import ROWS
from interverse.results.schema import SCORES
from interverse.results.tables import interval_rng
from interverse.results.text import Cell, Estimate, Format, Text, TextTable
from interverse.rollouts.fixed_batch import FixedBatchPolicy
from interverse.rollouts.policy import PolicyLike, as_policy, engine_words, tell_engine
from interverse.rollouts.policy_world import policy_world
from interverse.worlds.world import engine_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
Condition = tuple[str, ...]  # the factors intervened on; empty for the episode as it is
Drawn = dict[str, NDArray[Any]]  # variable -> a row for each episode
_MOST_EPISODES, _MOST_PAIRS = 100_000, 1000
_FORMAT = "interverse-attribution-1"
INTERVAL_METHOD = "95% interval over paired episodes: BCa bootstrap, rough below some 20 episodes"
_PROTOCOL = Protocol(name="attribution")  # what the rows of replays are called


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

    def costs(self, *names: str) -> FloatArray:
        """Returns (episode,) the score lost by intervening on these factors together."""
        for name in names:
            check_name("factor", name, self.factors)
        key = tuple(name for name in self.factors if name in names)
        if key not in self.scores:
            raise InvalidValueError(
                explain(f"{' and '.join(names)} were not combined", fix="Ask for more pairs")
            )
        return np.asarray(self.scores[()] - self.scores[key])

    def interaction(self, first: str, second: str) -> FloatArray:
        """Returns (episode,) what two factors cost together beyond the sum of their costs."""
        alone = self.costs(first) + self.costs(second)
        return np.asarray(self.costs(first, second) - alone)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of factors that were intervened on together."""
        return [(key[0], key[1]) for key in self.scores if len(key) == 2]

    @property
    def worst(self) -> str:
        """The factor with the highest mean cost, be it surely so or not; `verdict` tells."""
        return self._by_cost()[0]

    def _by_cost(self) -> list[str]:
        return sorted(self.factors, key=lambda name: -_mean(self.costs(name)))

    def cost(self, *names: str) -> Estimate:
        """Returns the mean cost with its paired 95% interval over episodes."""
        return _estimate(self.costs(*names), f"{self.task}|{self.metric}|{'|'.join(names)}")

    def lead(self, first: str, second: str) -> Estimate:
        """Returns how much more one factor costs than another, with its paired t-interval."""
        return _t_interval(self.costs(first) - self.costs(second))

    def verdict(self) -> str:
        """Returns in words which factor costs most, and whether that is sure."""
        base, names = _mean(self.scores[()]), self._by_cost()
        cost = self.cost(names[0])
        if not cost.value > 0:
            return "No factor costs anything on average."
        most = " most" if len(names) > 1 else ""
        told = f"{names[0]} costs{most}: {_words(cost)}{_percent(cost.value, base)}"
        if np.isnan(cost.low):
            return f"{told}. One episode has no interval: it may be chance."
        if most:
            lead = self.lead(names[0], names[1])
            if not lead.low > 0:
                ends = f"[{lead.low:.4g}, {lead.high:.4g}] includes 0"
                ends = "has no interval" if np.isnan(lead.low) else ends
                told += f"; {names[1]} about as much: the difference {ends}"
        return f"{told}." + ("" if cost.low > 0 else " That it costs anything is not certain.")

    def table(self, format: Format = "rich") -> Text:
        """Returns costs and interactions as text, the costliest factor first."""
        return self.text_table().render(format)

    def text_table(self) -> TextTable:
        """Returns costs and interactions, the costliest factor first, pairs after them."""
        base = _mean(self.scores[()])
        singles = self._by_cost()
        pairs = sorted(self.pairs, key=lambda pair: -_mean(self.costs(*pair)))
        rows: list[tuple[Cell, ...]] = [self._row((name,), base) for name in singles]
        rows += [self._row(pair, base) for pair in pairs]
        return TextTable(
            title=f"{self.task}, {self.metric} {base:.4g} as it is",
            header=("factor", "episodes", self.metric, "cost", "share", "interaction"),
            rows=tuple(rows),
            caption=f"cost = what the same episode loses under the intervention {self._interval}; "
            "share of the score as it is; interaction = cost of the pair beyond the sum of the two",
        )

    @property
    def _interval(self) -> str:
        """The words of a table's note about its intervals."""
        if len(self.scores[()]) < 2:
            return "(one episode: no interval)"
        return f"[{INTERVAL_METHOD}]"

    def _row(self, names: tuple[str, ...], base: float) -> tuple[Cell, ...]:
        costs = self.costs(*names)
        cost = self.cost(*names)
        share = cost.value / base if base > 0 else np.nan
        both = Estimate(np.nan)
        if len(names) == 2:
            address = f"{self.task}|{self.metric}|{'x'.join(names)}"
            both = _estimate(self.interaction(*names), address)
        known = int(np.sum(~np.isnan(costs)))
        key = tuple(name for name in self.factors if name in names)
        return " + ".join(names), known, _mean(self.scores[key]), cost, share, both

    def page(self) -> str:
        """Returns all of it on one Markdown page: what broke, how surely, and what was changed."""
        base, count = _mean(self.scores[()]), len(self.scores[()])
        harmless = [name for name in self.factors if self.cost(name).high <= 0.01 * abs(base)]
        story = (
            f"As it is, the policy has a mean {self.metric} of {base:.4g} over {count} "
            f"episode{'s' * (count > 1)}. In the same with nothing else changed: {self.verdict()}"
        )
        drawn = [
            f"- {name}: " + ", ".join(f"`{variable}` ({held[variable]})" for variable in held)
            for name, held in self.factors.items()
        ]
        contact = self.engine.get("contact")
        parts = [
            f"# Why it fails: {self.task}",
            story + (f" Played on {engine_words(self.engine)}." if contact else ""),
            f"No more than one percent is lost to: {', '.join(harmless)}."
            if harmless
            else "Of no factor is it certain that it costs less than one percent.",
            str(self.table("markdown")),
            "What each factor draws, and from which space:",
            "\n".join(drawn),
        ]
        return "\n\n".join(parts) + "\n"

    def plot(self) -> Figure:
        """Returns the costs as bars with their intervals, pairs and interactions beneath."""
        from interverse.reports.plots.costs import costs  # brings matplotlib

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
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(self.to_json(), indent=1))
        return target


def attribute(  # noqa: PLR0913 - names of `evaluate`
    policy: PolicyLike,
    task: str,
    factors: FactorsLike = None,
    *,
    episodes: int = 20,
    seed: int = 0,
    pairs: int = 4,
    metric: str | None = None,
    **options: Any,
) -> Attribution:
    """Returns which factor costs a policy how much, on episodes paired by counterfactual replay.

    Args:
        policy: what acts; see `interverse.rollouts.as_policy`. A trained one brings the options of
            its world.
        task: a world's id.
        factors: factor -> a pattern of variables, patterns, or {pattern: region}; or a list of
            patterns. By default every variable with a published space. Values come from B where
            there is one, else from A, each at an address of its own.
        episodes: how many, each played once under every intervention.
        seed: of the episodes.
        pairs: how many of the costliest factors to combine two by two; 0 for none.
        metric: which score; by default the first of success and return that the world has.
        **options: options of the world, as for `make`.

    >>> found = attribute("random", "tutorial/slider-v1", ["box/mass"], episodes=2, max_steps=3)
    >>> list(found.scores)
    [(), ('box/mass',)]
    """
    check_whole(episodes, "episodes", _MOST_EPISODES)
    check_whole(pairs, "pairs", _MOST_PAIRS, least=0)
    trained = policy_world(policy).in_task(task)
    given = trained.with_options(options)
    stage = _Replays(trained.policy, task, episodes, check_seed(seed), given)
    try:
        chosen = as_factors(factors, stage.variables)
        stage.play(())
        for name, regions in chosen.items():
            stage.draw_and_play(name, regions)
        found = stage.attribution(chosen, metric)
        costliest = sorted(chosen, key=lambda name: -_mean(found.costs(name)))[:pairs]
        for pair in itertools.combinations([n for n in chosen if n in costliest], 2):
            stage.play(pair)
        return stage.attribution(chosen, found.metric)
    finally:
        stage.close()


@final
class _Replays:
    """The same episodes of one task again and again, in the same rows of the same worlds."""

    def __init__(
        self, policy: PolicyLike, task: str, episodes: int, seed: int, options: Mapping[str, Any]
    ) -> None:
        self._policy, self._task, self._seed = policy, task, seed
        self._episodes = episodes
        self._count = min(episodes, ROWS)
        check_options(task, options)
        settings = {"threads": 1, **options}
        self._venv: Any = make_vec(task, self._count, autoreset_mode="disabled", **settings)
        self._driver = self._venv.unwrapped.driver
        tell_engine(policy, engine_of(self._driver.world))
        self._drawn: dict[str, list[tuple[Drawn, NDArray[np.bool_]]]] = {}
        self._rows: dict[Condition, list[dict[str, Any]]] = {}
        self._venv.reset(seed=[seed] * self._count)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The world's variables."""
        return self._driver.world.variables

    def close(self) -> None:
        """Releases the worlds."""
        self._venv.close()

    def _blocks(self) -> list[NDArray[np.int64]]:
        """Returns the numbers of the episodes, as many at a time as there are worlds."""
        starts = range(0, self._episodes, self._count)
        return [np.arange(start, start + self._count) for start in starts]

    def _start(self, numbers: NDArray[np.int64]) -> Any:
        count = len(numbers)
        begin = {"episode": numbers.tolist()}
        return self._venv.reset(seed=[self._seed] * count, options=begin)[0]

    def draw_and_play(self, factor: str, regions: Mapping[str, Any]) -> None:
        """Draws a factor's values for every episode, keeps them, and plays under them."""
        held = self._drawn.setdefault(factor, [])
        for numbers in self._blocks():
            self._start(numbers)
            held.append(_drawn_values(Regional(regions=regions), self._driver))
        self.play((factor,))

    def play(self, condition: Condition) -> None:
        """Plays every episode under an intervention on these factors."""
        rows: list[dict[str, Any]] = []
        for block, numbers in enumerate(self._blocks()):
            self._start(numbers)
            given: Drawn = {}
            refused: dict[int, str] = {}
            for factor in condition:
                values, accepted = self._drawn[factor][block]
                given |= values
                refused |= {int(row): f"{factor} refused" for row in np.flatnonzero(~accepted)}
            able = np.setdiff1d(np.arange(len(numbers)), list(refused))
            chosen = {name: row[able] for name, row in given.items()}
            refused |= apply(self._driver, chosen, able, check=False)
            rows += self._play_block(numbers, refused)
        self._rows[condition] = rows[: self._episodes]

    def _play_block(
        self, numbers: NDArray[np.int64], refused: Mapping[int, str]
    ) -> list[dict[str, Any]]:
        world = self._driver.world
        actor = FixedBatchPolicy(as_policy(self._policy, world), numbers % ROWS, ROWS)
        actor.reset(np.ones(len(numbers), dtype=bool), self._seed + (numbers << 32))
        scorer = EpisodeScorer(self._driver, (), {})
        scorer.intervened(refused, 0)
        observation = world.observe()
        for _ in range(world.max_steps):
            action = actor(observation)
            scorer.before(observation, action)
            observation, *result = self._venv.step(action)
            scorer.after(*result)
            if scorer.done.all():
                break
        return scorer.rows(self._task, _PROTOCOL, self._seed, numbers)

    def attribution(self, factors: Factors, metric: str | None) -> Attribution:
        """Returns what is known so far."""
        names = [*SCORES, *sorted({n for row in self._rows[()] for n in row if ":" in n})]
        known = [n for n in names if any(n in row for row in self._rows[()])]
        known = [name.removeprefix("score:") for name in known if not name.startswith("value:")]
        if metric is not None and metric not in known:
            raise UnknownNameError(unknown("metric", metric, known))
        chosen = known[0] if metric is None else metric
        scores = {
            key: np.array([row.get(chosen, row.get(f"score:{chosen}", np.nan)) for row in rows])
            for key, rows in self._rows.items()
        }
        return Attribution(
            task=self._task,
            metric=chosen,
            factors=factors,
            scores=scores,
            engine=engine_of(self._driver.world),
        )


def _drawn_values(actor: Regional, driver: Any) -> tuple[Drawn, NDArray[np.bool_]]:
    """Returns the first values that each world accepts, and which worlds accepted some."""
    count = len(driver.steps)
    pending = np.arange(count)
    out: Drawn = {}
    accepted = np.zeros(count, dtype=bool)
    for attempt in range(ATTEMPTS):
        noise = Noise(driver.seeds[pending], driver.episodes[pending], driver.steps[pending])
        drawn = actor.act(Moment(driver, pending, noise, "A_B", f"attribute/{attempt}"))
        refused = apply(driver, drawn, pending, check=False)
        fine = ~np.isin(pending, list(refused))
        for name, rows in drawn.items():
            held = out.setdefault(name, np.zeros((count, *rows.shape[1:]), rows.dtype))
            held[pending[fine]] = np.asarray(rows)[fine]
        accepted[pending[fine]] = True
        pending = pending[~fine]
        if not len(pending):
            break
    return out, accepted


def _percent(cost: float, base: float) -> str:
    return f", {100.0 * cost / base:.0f}% of it" if base > 0 else ""


def _words(found: Estimate) -> str:
    ends = "" if np.isnan(found.low) else f" [{found.low:.4g}, {found.high:.4g}]"
    return f"{found.value:.4g}{ends}"


def _t_interval(values: FloatArray) -> Estimate:
    known = values[~np.isnan(values)]
    count = len(known)
    if count < 2:
        return Estimate(_mean(known))
    half = special.stdtrit(count - 1, 0.975) * known.std(ddof=1) / np.sqrt(count)
    return Estimate(known.mean(), known.mean() - half, known.mean() + half)


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _estimate(values: FloatArray, address: str) -> Estimate:
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate(np.nan)
    rng = interval_rng(f"attribution|{address}")
    return Estimate.of(bootstrap.interval(known[:, None], rng=rng, method="bca"))
