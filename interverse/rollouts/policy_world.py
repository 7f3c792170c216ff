"""The world a trained policy knows: its task and options.

A saved policy has them on its card, a model of Stable-Baselines3 in the environment it learned in,
and a function or an object of one's own in what it holds of these.

A policy trained with other actions or observations is not the same policy: evaluation takes the
options it was trained with, and refuses a contradiction. Where in its world it was trained (in
which looks, say) is another matter: a test says itself what it varies, so that scores of policies
trained in different places are scores of the same test.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, cast, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.json_text import read_json_object
from interverse.envs.build import options_of
from interverse.envs.values import to_numpy
from interverse.rollouts.policy import RATES, as_policy, load_policy
from interverse.rollouts.saved import CARD, PolicyLike, policy_path, released_card
from interverse.worlds import WORLDS
from interverse.worlds.own_code import check_trusted
from interverse.worlds.world import World, parse_options

# Options that decide what an observation or an action means, or how often there is one; another
# value is another interface.
INTERFACE = (
    "action_mode",
    "channels_first",
    "frame_skip",
    "frame_stack",
    "normalize_actions",
    "normalize_observations",
    "observation",
    "observation_keys",
    "observation_mode",
    "skip_frame",
)
_SEVERAL: Any = Mapping | list | tuple
_MOST_PARTS = 100  # of several in which models are looked for
_OF_THE_RUN = ("device", "space", "threads")  # how it was trained, not what it knows


@final
@dataclass(frozen=True, slots=True)
class PolicyWorld:
    """A policy and the world it was trained in.

    Attributes:
        policy: what `as_policy` takes.
        task: the id it was trained on; None where nothing is recorded.
        options: of that world.
        defaults: of what is not among the options, where the world is registered.
        place: the options that say where in that world, where they are not the world's own.
        space: that the training drew from; A where nothing else is recorded.
        engine: and contacts of the training; empty where none are recorded.
    """

    policy: PolicyLike
    task: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=dict)
    space: str = "A"
    engine: Mapping[str, str] = field(default_factory=dict)

    def in_task(self, task: str) -> PolicyWorld:
        """Returns it in another task of its family; other worlds have other observations."""
        if self.task is not None and _family(self.task) != _family(task):
            raise InvalidValueError(
                f"the policy was trained in {self.task}, and {task} is another world",
                allowed=f"tasks of {_family(self.task)}",
                fix="Leave the task out, or pass a policy of that world",
            )
        return replace(self, task=task)

    def with_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the options to run it with: its own, and the given ones where they may differ."""
        own = {**self.defaults, **self.options}
        for name in INTERFACE:
            if name in given and name in own and given[name] != own[name]:
                raise InvalidValueError(
                    f"the policy was trained with {name}={own[name]!r}, and"
                    f" {name}={given[name]!r} is asked for",
                    fix=f"Leave {name} out to take the policy's own",
                )
        kept = {name: value for name, value in self.options.items() if name not in given}
        check_trusted(f"the policy {self.policy}", None, kept)
        return {**kept, **given}

    def for_tests(self) -> PolicyWorld:
        """Returns it without the options that say where it was trained."""
        places = _places(self.task)
        kept = {name: value for name, value in self.options.items() if name not in places}
        return replace(self, options=kept)


def policy_world(given: PolicyLike) -> PolicyWorld:
    """Returns a policy with its world; the folder of a training run stands for its policy.

    A function, or an object of one's own, has the world of the policies that it refers to, where
    they agree on one.
    """
    own = _recorded(given)
    if own is None and callable(given) and not is_model(given):
        inner = [known for part in _held(given) if (known := _recorded(part)) is not None]
        if inner and all(known.options == inner[0].options for known in inner):
            task = inner[0].task if len({known.task for known in inner}) == 1 else None
            own = replace(inner[0], policy=given, task=task, space="A", engine={})
    return own or PolicyWorld(given)


def _recorded(given: PolicyLike) -> PolicyWorld | None:
    """Returns a policy with the world that it says it was trained in; None if it says nothing."""
    card = getattr(given, "card", None)
    if card is not None:
        return _of_card(given, getattr(card, "trained", {}))
    if _is_baseline(given):
        env = given.env
        world = None if env is None else getattr(env.get_attr("unwrapped", 0)[0], "driver", None)
        if world is None:
            return None
        config = {"task": world.id, "options": options_of(world.id, world.world)}
        return _of_card(given, {"config": config})
    folder = policy_path(given)
    if folder is not None and (known := released_card(folder)) is not None:
        return _of_card(given, known.trained)
    if folder is None or not (folder / CARD).is_file():
        return None
    return _of_card(str(folder), read_json_object(folder / CARD).get("trained", {}))


def is_model(given: object) -> bool:
    """Returns whether a policy is a learned one: a saved one, a Torch module, a baseline's."""
    return _is_baseline(given) or hasattr(given, "card") or hasattr(given, "state_dict")


def _is_baseline(given: object) -> bool:
    """Returns whether a policy is a model of Stable-Baselines3, which is not loaded to find out."""
    return any(kind.__name__ == "BaseAlgorithm" for kind in type(given).__mro__)


def models_of(given: PolicyLike) -> list[Any]:
    """Returns the learned models that a policy is or refers to."""
    return [given] if is_model(given) else list(_held(given)) if callable(given) else []


def _held(given: object, depth: int = 3) -> Iterator[object]:
    """Yields the models that a function or an object of one's own refers to."""
    if isinstance(given, partial):
        parts = [given.func, *given.args, *given.keywords.values()]
    elif isinstance(given, MethodType):
        parts = [given.__self__]
    elif isinstance(given, FunctionType):
        named = inspect.getclosurevars(given)
        parts = [*named.nonlocals.values(), *named.globals.values(), *(given.__defaults__ or ())]
    elif isinstance(given, Mapping):
        parts = list(given.values())
    elif isinstance(given, list | tuple):
        parts = list(given)
    elif isinstance(given, ModuleType | type):
        return
    else:
        call = getattr(type(given), "__call__", None)  # noqa: B004 - what it refers to counts
        parts = [*getattr(given, "__dict__", {}).values(), *([call] if call else [])]
    for part in parts:
        few = isinstance(part, _SEVERAL) and len(part) <= _MOST_PARTS
        whole = hasattr(part, "__dict__") and not isinstance(part, _SEVERAL | ModuleType)
        if is_model(part):
            yield part
        elif depth and (callable(part) or few or whole):
            yield from _held(part, depth - 1)


def training_notes(
    given: PolicyLike,
    task: str,
    options: Mapping[str, Any],
    engine: Mapping[str, str],
    seeds: Collection[int],
) -> Iterator[str]:
    """Yields a line for each way in which a test is not what a policy was trained for."""
    own = policy_world(given)
    if (trained := _another_task(given, task)) is not None:
        told = "scores are those of a task it was not trained for."
        yield f"Trained for {trained}, plays {task}: {told}"
    if place := {name: v for name, v in own.place.items() if name not in options}:
        told = ", ".join(f"{name}={value!r}" for name, value in sorted(place.items()))
        note = f"Trained with {told}, which no test takes over:"
        note += " tests say themselves what they vary."
        if (look := place.get("visual_seed")) is not None:
            drawn = isinstance(look, Sequence)
            note += " `train` and the one-factor tests are about look 0"
            note += "; few_shot_train is about drawn looks." if drawn else f", not look {look}."
        yield note
    if (defaults := own.options.get("defaults")) and "defaults" not in options:
        yield f"Its world has {defaults=!r}, and so have the tests: scores are of that world."
    yield space_note(own.space)
    yield engine_note(own.engine, engine)
    models = models_of(given)
    if not all(model.num_timesteps for model in models if _is_baseline(model)):
        yield "The model has learned for 0 steps. `load` returns the model it loads: keep that one."
    # `PPO("MlpPolicy", iv.make(ID), seed=0)` plays the episodes of seed 0, and so does `evaluate`.
    asks = [getattr(getattr(model, "env", None), "get_attr", None) for model in models]  # SB3's
    worlds = [world for ask in asks if callable(ask) for world in ask("unwrapped")]
    drivers = [world.driver for world in worlds if hasattr(world, "driver")]
    played = {n for d in drivers if d.running.any() for n in to_numpy(d.seeds).tolist()}
    if both := sorted(played.intersection(seeds)):
        yield (
            f"Trained on episodes of seed {both[0]}, which the test plays too: its starts were"
            f" seen. Pass seed={max(played) + 1}, or train in interverse.agents.sb3.WorldVecEnv."
        )
    inside = [] if is_model(given) else [model for model in models if _is_baseline(model)]
    if behind := sorted({name for model in inside for name in _wrappers(model)}):
        yield f"Its model learned behind {' and '.join(behind)}: the function must do the same."


def space_note(space: str) -> str:
    """Returns the line that says that a policy has seen what protocols test; empty for A."""
    told = f"Trained in space {space}: scores in space B are not those of an unseen space."
    return "" if space == "A" else told


def engine_note(trained: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Returns the line that says that a policy acts on another engine; empty for its own."""
    if not trained or engine_words(trained) == engine_words(here):
        return ""
    return (
        f"Trained on {engine_words(trained)}, evaluated on {engine_words(here)}: "
        "scores may differ from those of its own engine."
    )


_TOLD: set[str] = set()  # notes are said once in a process


def tell_engine(policy: PolicyLike, here: Mapping[str, str]) -> None:
    """Says on standard error if a policy acts on another engine than it was trained on."""
    note = engine_note(policy_world(policy).engine, here)
    if note and note not in _TOLD:
        _TOLD.add(note)
        Console(stderr=True).print(note, soft_wrap=True)


def engine_words(engine: Mapping[str, str]) -> str:
    """Returns an engine in words.

    >>> engine_words({"device": "cuda:0", "contact": "convex"})
    'MuJoCo Warp with convex contacts'
    """
    warp = str(engine.get("device", "cpu")).partition(":")[0] in ("cuda", "warp")
    contact = engine.get("contact")
    drawn = ", pictures by Warp" if "renderer" in engine else ""
    contacts = f" with {contact} contacts" if contact else ""
    return ("MuJoCo Warp" if warp else "MuJoCo") + contacts + drawn


def check_world(policy: PolicyLike, world: World) -> None:
    """Refuses a world whose actions or observations mean something else than in the training.

    Another rate of decisions is a warning of `as_policy`.
    """
    options, names = getattr(world, "options", None), set(INTERFACE) - {*RATES}
    here = {name: getattr(options, name) for name in names if hasattr(options, name)}
    policy_world(policy).with_options(here)


def check_task(policy: PolicyLike, task: str, world: World) -> None:
    """Refuses a policy that learned behind wrappers, with other bounds, or cannot act in a task."""
    behind = _wrappers(policy) if _is_baseline(policy) else ()
    if behind:
        raise InvalidValueError(
            f"the model learned behind {' and '.join(behind)}, which is not here: it would see"
            " other numbers, or its actions would mean others",
            fix="Pass a function that does the same, such as lambda seen:"
            " model.predict(normalise(seen), deterministic=True)[0]",
        )
    bounds, own = _bounds(policy), world.action_space
    if bounds is not None and isinstance(own, gym.spaces.Box):
        low, high = bounds
        if low.shape == own.low.shape and not (
            np.allclose(low, own.low) and np.allclose(high, own.high)
        ):
            raise InvalidValueError(
                f"the policy acts from {_ends(low)} to {_ends(high)}, and {task} takes actions"
                f" from {_ends(own.low)} to {_ends(own.high)}: it learned behind a wrapper, or"
                " with another action_mode or normalize_actions",
                fix="Give the options of its training, or a function that turns its actions",
            )
    if (trained := _another_task(policy, task)) is None:
        return
    wanted = (world.num_worlds, *(world.action_space.shape or ()))
    try:
        shape = np.shape(to_numpy(as_policy(policy, world)(world.observe())))
        reason = "" if shape == wanted else f"its actions have shape {shape[1:]}, not {wanted[1:]}"
    except FileFormatError as error:
        reason = str(error).partition(". ")[0]
    if reason:
        raise InvalidValueError(
            f"the policy was trained for {trained} and cannot act in {task}: {reason}",
            fix="Leave the task out, or pass a policy of that task",
        )


def _wrappers(model: Any) -> list[str]:
    """Returns what stands between a baseline and its world and changes numbers, not shapes."""
    found, env = [], model.env
    if env is None:
        return []
    while (inner := getattr(env, "venv", None)) is not None and hasattr(env, "class_attributes"):
        name = type(env).__name__  # `predict` turns pictures as VecTransposeImage does
        other = env.observation_space != inner.observation_space and name != "VecTransposeImage"
        found += [name] if other or getattr(env, "norm_obs", False) else []
        env = inner
    with suppress(Exception):  # a wrapper that cannot be copied or asked is judged by its kind
        return found + _turning(copy.deepcopy(env.envs[0]))
    kinds = (gym.ObservationWrapper, gym.ActionWrapper, gym.wrappers.NormalizeObservation)
    return found + [kind.__name__ for kind in kinds if any(env.env_is_wrapped(kind))]


def _turning(env: gym.Env[Any, Any]) -> list[str]:
    """Returns an environment's wrappers if they change what is seen or done, or how often.

    One reset and one step show that, whatever the wrappers are; the environment is a copy.
    """
    inner, shown, asked = cast("Any", env.unwrapped), [], []
    reset, step = inner.reset, inner.step

    def hear_reset(**given: Any) -> Any:
        told = reset(**given)
        shown.append(told[0])
        return told

    def hear_step(action: Any) -> Any:
        asked.append(action)
        told = step(action)
        shown.append(told[0])
        return told

    inner.reset, inner.step = hear_reset, hear_step
    env.action_space.seed(0)
    action = env.action_space.sample()
    alike = True
    for call in (lambda: env.reset(seed=0), lambda: env.step(action)):
        seen = call()[0]
        if isinstance(seen, Mapping) and not isinstance(shown[-1], Mapping):  # with goals
            seen = seen.get("observation")
        alike &= _close(seen, shown[-1]) or _close(seen, inner.observe())
    if alike and len(asked) == 1 and _close(action, asked[0]):
        return []
    names = []
    while isinstance(env, gym.Wrapper):
        names += [type(env).__name__] if type(env).__name__ != "Monitor" else []
        env = env.env
    return names


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_close(one[n], other[n]) for n in one)
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, equal_nan=True))


def _bounds(policy: PolicyLike) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Returns the least and the greatest action of a learned policy, where it says them."""
    if (path := policy_path(policy)) is not None:
        policy = load_policy(path)
    space = policy.action_space if _is_baseline(policy) else None
    ours = type(policy).__module__.startswith("interverse.")
    told: Any
    for told in (space, getattr(policy, "card", None), policy if ours else None):
        if hasattr(told, "low") and hasattr(told, "high"):
            return np.asarray(told.low), np.asarray(told.high)
    return None


def _ends(bounds: NDArray[Any]) -> str:
    """Returns bounds in few words: the one number, or the first ones."""
    alike = bool(np.all(bounds == bounds.flat[0]))
    return f"{bounds.flat[0]:g}" if alike else np.array2string(bounds[:3], precision=3)


def unrecorded_note(policy: PolicyLike, world: World) -> str:
    """Returns the line that says how a model is played that records no world; else empty."""
    known = policy_world(policy)
    learned = is_model(policy) or policy_path(policy) is not None
    learned = learned or next(_held(policy), None) is not None
    if known.task is not None or known.options or not learned:
        return ""
    told = []
    for name in (*RATES, "frame_stack", "action_mode", "observation_mode", "observation"):
        value = getattr(world.options, name, None)
        told += [] if value is None else [f"{name}={value}" if type(value) is int else str(value)]
    for name in ("observations", "actions"):
        if (value := getattr(world.options, f"normalize_{name}", None)) is not None:
            told.append(f"{'normalised' if value else 'raw'} {name}")
    return f"No world recorded: played with {', '.join(told)}." if told else ""


def _another_task(policy: PolicyLike, task: str) -> str | None:
    """Returns the task that a policy was trained for; None if it is this one, or unknown."""
    own = policy_world(policy).task or task
    return None if own.rpartition(":")[2] == task.rpartition(":")[2] else own


def _family(task: str) -> str:
    """Returns the family of an id, which may be MODULE:ID."""
    return task.rpartition(":")[2].partition("/")[0]


def _of_card(policy: PolicyLike, trained: Any) -> PolicyWorld:
    """Returns a policy with the world that its card tells of."""
    if not isinstance(trained, Mapping):
        return PolicyWorld(policy)
    config: Any = trained.get("config")
    config = config if isinstance(config, Mapping) else {}
    options = trained.get("options") or config.get("options") or {}
    if "skip_frame" in config:  # cards of the first policies trained on a GPU
        options = {"skip_frame": config["skip_frame"], **options}
    known = {name: value for name, value in options.items() if name not in _OF_THE_RUN}
    task, defaults = config.get("task"), {}
    place = {name: known[name] for name in _places(task) if name in known}
    if task is not None and task in WORLDS:
        usual = _parsed(task, {})
        defaults = {name: getattr(usual, name) for name in INTERFACE if hasattr(usual, name)}
    if place and task is not None:  # it counts where it is not the world's own
        own = _parsed(task, {name: value for name, value in known.items() if name not in place})
        there = _parsed(task, known)
        place = {n: value for n, value in place.items() if getattr(own, n) != getattr(there, n)}
    engine = config.get("engine")
    if engine is None and trained.get("engine") == "WarpEngine":  # cards of the first GPU runs
        engine = {"device": "cuda", "contact": "convex"}
    engine, space = engine if isinstance(engine, Mapping) else {}, str(config.get("space", "A"))
    return PolicyWorld(policy, task, known, defaults, place, space, engine)


def _places(task: str | None) -> tuple[str, ...]:
    """Returns the names of the options that say where in its world a policy was trained."""
    if task is None or task not in WORLDS:
        return ()
    return tuple(WORLDS[task].load().training_place)


def _parsed(task: str, given: Mapping[str, Any]) -> Any:
    """Returns the options of a registered world, each in its one form."""
    entry = WORLDS[task]
    return parse_options(entry.load().options_type, {**entry.options, **given})
