"""Data sets of episodes, for every world and policy, with counterfactual twins.

Episode e of a data set with seed s is `rollout(env, policy, seed=s, episode=e)`, so the files
depend on the configuration alone: not on workers, restarts, or on how many episodes share a file.
A twin is the same episode (seed, noise, actions) in a world with another `do`; it lies beside its
fact.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import h5py
import numpy as np

from interverse.actors.curriculum import curriculum_from_words
from interverse.actors.wrappers import attach_curriculum
from interverse.core.code import files_hash
from interverse.core.errors import (
    FileFormatError,
    InterventionError,
    InvalidValueError,
    check_name,
    explain,
)
from interverse.core.files.hdf5 import new_hdf5
from interverse.core.files.json_text import read_json_object
from interverse.core.rng import SEED_REGIONS, generator
from interverse.core.type_checks import Seed, validated
from interverse.data.collector import (
    HEADER,
    Count,
    Shard,
    collection,
    collection_header,
    read_collection,
)
from interverse.data.dataset import arrays_hash
from interverse.envs import WorldEnv, make
from interverse.envs.interventions import check_values
from interverse.rollouts.counterfactual import Refused, counterfactual
from interverse.rollouts.episode import Episode, EpisodeFolder, Refusal, opened_episodes
from interverse.rollouts.executors import gpus_of
from interverse.rollouts.policy import PolicyLike
from interverse.rollouts.policy_world import policy_world, tell_engine
from interverse.rollouts.runner import rollout
from interverse.rollouts.saved import policy_path
from interverse.scm import Space
from interverse.worlds.world import engine_of, resolved_options

_BEFORE = "interverse-episodes-2"  # without a manifest
_BY_SEED = "interverse-episodes-1"  # there episode e has the address (seed + e, 0)
_SPACES = ("A", "B")
_REFUSED: Refused = "skip"

Twin = Mapping[str, Any]  # variable -> a value, or "A" or "B" for a draw from that space


@final
@dataclass(frozen=True, kw_only=True)
@validated
class CollectEpisodes:
    """What to collect.

    Attributes:
        id: a world's id.
        out: the folder to write.
        episodes: how many.
        policy: what acts; see `interverse.rollouts.policy.as_policy`.
        steps: actions per episode at most; None plays to the end. More than the world allows raise.
        seed: episode e has the address (seed, e), so that two seeds share no episode; those of
            seed 0 are the ones that `evaluate` plays by default.
        twins: interventions whose counterfactual is stored beside every episode. A value "A" or
            "B" is drawn anew for every episode from that space of the variable. Where a twin's
            world refuses something that was done later in the fact, the twin goes on without it
            (`refused="skip"` of `iv.counterfactual`): the episodes in which worlds differ stay.
        actors: a curriculum in words, such as "goals" or "uniform:patterns=gravity@first=10". What
            an actor learns from one episode is not carried to the next.
        options: of the world, as for `make`.
        every: episodes in a file; what a kill can cost at most.
        workers, cluster: who plays; they change no byte.
        overwrite: replace a folder that holds another data set.
    """

    id: str
    out: Path
    episodes: Count = 100
    policy: PolicyLike = "random"
    steps: Count | None = None
    seed: Seed = SEED_REGIONS["collecting"]
    twins: tuple[Twin, ...] = ()
    actors: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    every: Count = 10
    workers: Count = 1
    cluster: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out))

    @property
    def gpus(self) -> int:
        """How many GPUs of a cluster it takes."""
        return gpus_of(self.options.get("device"))


def collect_episodes(
    config: CollectEpisodes, advance: Callable[[int], None] = lambda count: None
) -> Path:
    """Returns the folder of the data set; started again, it makes what is missing or not whole.

    Args:
        config: what to collect.
        advance: is told how many episodes were added, for a progress bar.
    """
    trained = policy_world(config.policy).in_task(config.id)
    options = trained.with_options(config.options)
    config = replace(config, policy=trained.policy, options=options)
    engine = _check(config)
    tell_engine(config.policy, engine)
    units = {
        EpisodeFolder.file_name(first, last - 1): range(first, last)
        for first in range(0, config.episodes, config.every)
        for last in (min(first + config.every, config.episodes),)
    }
    header = _header(config, engine)
    with collection(config.out, header, grows="episodes", overwrite=config.overwrite) as held:
        told = replace(config, options={**options, **resolved_options(engine)})
        held.make_all(_play, units, told, advance)
    return config.out


def _header(config: CollectEpisodes, engine: Mapping[str, str]) -> dict[str, Any]:
    policy, files = config.policy, dict[str, str]()
    if (path := policy_path(policy)) is not None:  # trained on since, it is another policy
        files = {"policy_files": files_hash(path)}
    return collection_header(
        "episodes",
        config.id,
        config.options,
        config.seed,
        episodes=config.episodes,
        policy=policy if isinstance(policy, str) else repr(policy),
        **files,
        steps=config.steps,
        twins=[{n: np.asarray(v).tolist() for n, v in t.items()} for t in config.twins],
        every=config.every,
        actors=list(config.actors),
        engine=dict(engine),
        **({"twins_refused": _REFUSED} if config.twins else {}),
    )


@final
class TwinFolder:
    """The facts of a folder and their twins.

    Attributes:
        facts: the episodes, as a sequence.
        twins: the interventions, as they were asked for.
    """

    def __init__(self, folder: Path | str) -> None:
        self.facts = EpisodeFolder(folder)
        self._shards: tuple[Shard, ...] = ()
        try:
            header = read_json_object(self.facts.folder / HEADER)
            self.twins: list[dict[str, Any]] = list(header["twins"])
            if header["format"] == _BY_SEED:
                warnings.warn(_old_seeds(self.facts.folder, header), stacklevel=2)
            elif header["format"] != _BEFORE:
                self._shards = read_collection(self.facts.folder, "episodes")[1]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"{self.facts.folder} holds no data set of episodes: {error}",
                fix="Write it with `interverse collect`",
            ) from error

    def __len__(self) -> int:
        return len(self.facts)

    def refusals(self) -> list[dict[str, int]]:
        """Returns for each twin how many episodes refused it, and so have none, by reason."""
        return self._counted(
            lambda _, twin: [str(v) for n, v in twin.attrs.items() if n == "refusal"]
        )

    def skipped(self) -> list[dict[str, int]]:
        """Returns for each twin how many leave out something done in the fact, by first reason."""

        def first(fact: h5py.Group, twin: h5py.Group) -> list[str]:
            if "refusal" in twin.attrs:
                return []
            theirs, mine = (json.loads(g.attrs["header"])["refusals"] for g in (fact, twin))
            return [item["reason"] for item in mine if item not in theirs][:1]

        return self._counted(first)

    def unchanged(self) -> list[int]:
        """Returns for each twin how many are the fact again: the intervention changed nothing."""
        counts = [shard.held["unchanged"] for shard in self._shards]
        return [sum(count[k] for count in counts) for k in range(len(self.twins))]

    def _counted(
        self, reasons: Callable[[h5py.Group, h5py.Group], list[str]]
    ) -> list[dict[str, int]]:
        found: list[dict[str, int]] = [{} for _ in self.twins]
        for file in dict.fromkeys(map(self.facts.file_of, range(len(self)))):
            with opened_episodes(file) as held:
                for name in held:
                    fact, _, number = name.partition(".twin_")
                    for reason in reasons(held[fact], held[name]) if number else ():
                        told = found[int(number)]
                        told[reason] = told.get(reason, 0) + 1
        return found

    def twin(self, episode: int, number: int = 0) -> Episode | Refusal:
        """Returns a fact's twin, or why there is none: the intervention could not be.

        Args:
            episode: the fact's place in `facts`; one below 0 counts from the end.
            number: the twin's in `twins`, likewise.
        """
        wanted = episode + len(self) if episode < 0 else episode
        if not -len(self.twins) <= number < len(self.twins):
            asked = [f"{k}: {do}" for k, do in enumerate(self.twins)]
            raise InvalidValueError(
                f"there is no twin {number} of an episode",
                allowed="; ".join(asked) or "none: it was collected without twins",
            )
        with opened_episodes(self.facts.file_of(wanted)) as file:
            group = file[f"{wanted}.twin_{number % len(self.twins)}"]
            if "refusal" in group.attrs:
                return Refusal(0, tuple(group.attrs["variables"]), str(group.attrs["refusal"]))
            return Episode.read(group)


def _old_seeds(folder: Path, header: Mapping[str, Any]) -> str:
    """Returns what an old folder is: its episodes may lie in folders of other seeds, too."""
    first, last = header["seed"], header["seed"] + header["episodes"] - 1
    return explain(
        f"{folder} is from an earlier version: its episodes have the seeds {first} to {last}, so it"
        " shares some with folders whose seeds are among these",
        fix="Collect it again to have episodes that no other seed has",
    )


def _check(config: CollectEpisodes) -> dict[str, str]:
    """Raises for what no episode could take, before any is played; returns the world's engine."""
    header = config.out / HEADER
    if header.is_file() and (held := read_json_object(header)).get("format") == _BY_SEED:
        raise InvalidValueError(_old_seeds(config.out, held))
    env = make(config.id, **config.options)
    longest = env.world.max_steps
    if config.steps is not None and config.steps > longest:
        raise InvalidValueError(
            f"steps is {config.steps}, but an episode of {config.id} ends after {longest}",
            allowed=f"1 to {longest}",
            fix="Leave steps out to play to the end, or pass the option max_steps",
        )
    if config.actors:
        attach_curriculum(env, curriculum_from_words(config.actors))
    env.reset(seed=config.seed)
    for twin in config.twins:
        values = {name: _value(env, name, value, config.seed, 0) for name, value in twin.items()}
        check_values(values, env.variables, np.arange(1), 1)
    engine = engine_of(env.world)
    env.close()
    return engine


def _play(path: Path, unit: range, config: CollectEpisodes) -> dict[str, Any]:
    """Writes some episodes with their twins; returns how many, and how many twins are the fact."""
    env = make(config.id, **config.options)
    unchanged = [0] * len(config.twins)
    with new_hdf5(path) as file:
        for episode in unit:
            env.driver.hook = None  # a curriculum remembers no episode
            if config.actors:
                attach_curriculum(env, curriculum_from_words(config.actors))
            fact = rollout(
                env, config.policy, seed=config.seed, episode=episode, max_steps=config.steps
            )
            fact.write(file.create_group(str(episode)))
            for number, twin in enumerate(config.twins):
                group = file.create_group(f"{episode}.twin_{number}")
                values = {
                    name: _value(env, name, v, config.seed, episode) for name, v in twin.items()
                }
                try:
                    imagined = counterfactual(fact, values, refused=_REFUSED)
                except InterventionError as error:
                    group.attrs["refusal"] = error.reason
                    group.attrs["variables"] = sorted(values)
                    continue
                imagined.write(group)
                unchanged[number] += arrays_hash(imagined.arrays()) == arrays_hash(fact.arrays())
    env.close()
    return {"episodes": len(unit), "unchanged": unchanged}


def _value(env: WorldEnv, name: str, value: Any, seed: int, episode: int) -> Any:
    """Returns a twin's value; a space's name stands for a draw from it by the episode's address."""
    if not (isinstance(value, str) and value in _SPACES):
        return value
    check_name("variable", name, env.variables)
    variable = env.variables[name]
    space = variable.space_a if value == "A" else variable.space_b
    if not isinstance(space, Space):
        raise InvalidValueError(
            f"twin draws {name} from space {value}, which it has not", fix="Give a value"
        )
    return space.sample(generator(seed=seed, name=f"twin/{name}", episode=episode))
