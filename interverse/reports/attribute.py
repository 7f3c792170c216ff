"""Playing the same episodes with and without an intervention, to attribute a policy's failure.

An episode is played once as it is, and again under an intervention on one factor, or two: the same
seed and number, hence the same start and noise, with the policy acting anew. Differences between
the two are the factor's doing and nothing else's, so a few dozen episodes tell factors apart. It
needs variables with spaces, `do` and addressed noise, and so works in every world.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Moment, apply, matching
from interverse.core.errors import (
    InvalidValueError,
    UnknownNameError,
    check_name,
    check_whole,
    unknown,
)
from interverse.core.rng import Noise, check_seed
from interverse.envs import make_vec
from interverse.envs.make import check_options
from interverse.protocols.factors import DOMAIN, Factors, FactorsLike, as_factors
from interverse.protocols.protocol import ATTEMPTS, Protocol
from interverse.protocols.unit import ROWS, EpisodeScorer
from interverse.reports.attribution import Attribution, Condition
from interverse.results.schema import SCORES
from interverse.rollouts.policy import FixedBatchPolicy, PolicyLike, as_policy
from interverse.rollouts.policy_world import check_task, policy_world, tell_engine
from interverse.worlds.world import engine_of

Drawn = dict[str, NDArray[Any]]  # variable -> a row for each episode
_MOST_EPISODES, _MOST_PAIRS = 100_000, 1000
_PROTOCOL = Protocol(name="attribution")  # what the rows of replays are called


def attribute(
    policy: PolicyLike,
    task: str,
    factors: FactorsLike = None,
    *,
    episodes: int = 20,
    seed: int = 0,
    pairs: int = 4,
    together: Sequence[Sequence[str]] = (),
    starts: Sequence[str] = (),
    metric: str | None = None,
    **options: Any,
) -> Attribution:
    """Returns which factor costs a policy how much, on episodes paired by counterfactual replay.

    Args:
        policy: what acts; see `interverse.rollouts.as_policy`. A trained one brings the options of
            its world.
        task: a world's id.
        factors: factor -> a pattern of variables, patterns, or {pattern: region}; or a list of
            patterns. By default every variable with a published space, states and goals only where
            a space is held out. Values come from B where there is one, else from A, each at an
            address of its own. What has no published space is drawn from its domain, if that is
            finite; the page says so.
        episodes: how many, each played once under every intervention.
        seed: of the episodes.
        pairs: how many of the costliest factors to combine two by two, so not 1; 0 for none.
        together: names of factors to combine besides, two or more at a time.
        starts: patterns of variables that are drawn from A for every episode, the same in each of
            its replays; without them many worlds start every episode alike.
        metric: which score; by default the first of success and return that the world has.
        **options: options of the world, as for `make`.

    >>> found = attribute("random", "tutorial/slider-v1", ["box/mass"], episodes=2, max_steps=3)
    >>> list(found.scores)
    [(), ('box/mass',)]
    """
    check_whole(episodes, "episodes", _MOST_EPISODES)
    check_whole(pairs, "pairs", _MOST_PAIRS, least=0)
    if pairs == 1:
        raise InvalidValueError(
            "pairs is 1", allowed="0, or from 2", fix="Name how many factors to combine"
        )
    trained = policy_world(policy).in_task(task)
    given = trained.with_options(options)
    stage = _Replays(trained.policy, task, episodes, check_seed(seed), given)
    try:
        chosen = as_factors(factors, stage.variables)
        groups: list[Condition] = []
        for names in together:
            for name in names:
                check_name("factor", name, chosen)
            if isinstance(names, str) or len(set(names)) < 2:
                raise InvalidValueError(
                    f"together has {names!r}", allowed="two or more names of factors"
                )
            groups.append(tuple(name for name in chosen if name in names))
        if starts:
            stage.draw_starts(matching(stage.variables, list(starts)))
        stage.play(())
        for name, regions in chosen.items():
            stage.draw_and_play(name, regions)
        found = stage.attribution(chosen, metric)
        costliest = found.by_cost()[:pairs]
        for pair in itertools.combinations([n for n in chosen if n in costliest], 2):
            stage.play(pair)
        for group in groups:
            stage.play(group)
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
        self._starts: list[tuple[Drawn, NDArray[np.bool_]]] = []
        self._rows: dict[Condition, list[dict[str, Any]]] = {}
        self._venv.reset(seed=[seed] * self._count)
        check_task(policy, task, self._driver.world)

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

    def _start(self, numbers: NDArray[np.int64], given: Mapping[str, NDArray[Any]]) -> None:
        """Starts episodes, under the values of those variables that act where one starts."""
        begin = {"episode": numbers.tolist(), **{n: rows.tolist() for n, rows in given.items()}}
        self._venv.reset(seed=[self._seed] * len(numbers), options=begin)

    def draw_and_play(self, factor: str, regions: Mapping[str, Any]) -> None:
        """Draws a factor's values for every episode, keeps them, and plays under them."""
        held = self._drawn.setdefault(factor, [])
        spaces = {
            name: self.variables[name].domain if region == DOMAIN else region
            for name, region in regions.items()
        }
        for block, numbers in enumerate(self._blocks()):
            self._start(numbers, {})
            if self._starts:  # what is drawn must fit the start that it is set in
                values, accepted = self._starts[block]
                rows = np.flatnonzero(accepted)
                apply(self._driver, {n: v[rows] for n, v in values.items()}, rows, check=False)
            held.append(_drawn_values(spaces, self._driver))
        self.play((factor,))

    def draw_starts(self, variables: Sequence[str]) -> None:
        """Draws from A what every episode starts with, in each of its replays."""
        for numbers in self._blocks():
            self._start(numbers, {})
            self._starts.append(_drawn_values(dict.fromkeys(variables, "A"), self._driver, "start"))

    def play(self, condition: Condition) -> None:
        """Plays every episode under an intervention on these factors."""
        rows: list[dict[str, Any]] = []
        for block, numbers in enumerate(self._blocks()):
            given: Drawn = {}
            refused: dict[int, str] = {}
            if self._starts:
                values, accepted = self._starts[block]
                given |= values
                refused |= dict.fromkeys(np.flatnonzero(~accepted).tolist(), "start refused")
            for factor in condition:
                values, accepted = self._drawn[factor][block]
                given |= values
                refused |= {int(row): f"{factor} refused" for row in np.flatnonzero(~accepted)}
            at_start = self._driver.world.reset_variables
            self._start(numbers, {n: given.pop(n) for n in at_start if n in given})
            able = np.setdiff1d(np.arange(len(numbers)), list(refused))
            chosen = {name: row[able] for name, row in given.items()}
            refused |= apply(self._driver, chosen, able, check=False)
            world = self._driver.world
            actor = FixedBatchPolicy(as_policy(self._policy, world), numbers, ROWS)
            actor.start(self._seed)
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
            rows += scorer.rows(self._task, _PROTOCOL, self._seed, numbers)
        self._rows[condition] = rows[: self._episodes]

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


def _drawn_values(
    regions: Mapping[str, Any], driver: Any, address: str = "attribute"
) -> tuple[Drawn, NDArray[np.bool_]]:
    """Returns the first values that each world accepts, and which worlds accepted some."""
    count = len(driver.steps)
    pending = np.arange(count)
    out: Drawn = {}
    accepted = np.zeros(count, dtype=bool)
    for attempt in range(ATTEMPTS):
        noise = Noise(driver.seeds[pending], driver.episodes[pending], driver.steps[pending])
        moment = Moment(driver, pending, noise, "A_B", f"{address}/{attempt}")
        drawn = moment.draw_each(regions)
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
