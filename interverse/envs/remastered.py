"""DMC Remastered's benchmarks by name: a training and a test environment that share no seed.

| benchmark               | train                        | test                                |
|-------------------------|------------------------------|-------------------------------------|
| classic                 | one look                     | the same look                       |
| visual_generalization   | num_levels looks             | looks never trained on              |
| visual_sim2real         | num_levels looks             | the default look                    |
| dynamics_generalization | default look, other dynamics | dynamics never trained on           |
| full_generalization     | other looks and dynamics     | looks and dynamics never trained on |

Looks and starting states have ranges of their own for train, valid and test, in every benchmark.
Which levels are trained on, and each episode's seeds, follow from seeds given, never from a global
random state. The originals drew from ranges that overlap and from num_levels + 1 looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast, get_args

import gymnasium as gym

from interverse.core.errors import InvalidValueError, UnknownNameError, check_name, unknown
from interverse.core.rng import check_seed, generator
from interverse.envs.make import make as make_world
from interverse.envs.make import make_vec
from interverse.envs.single import WorldEnv
from interverse.worlds import WORLDS

Benchmark = Literal[
    "classic",
    "dynamics_generalization",
    "full_generalization",
    "visual_generalization",
    "visual_sim2real",
]
Split = Literal["train", "valid", "test"]
DEFAULT_LOOK = 0
DEFAULT_EDGE = 84  # pixels
DMCR_VARY = ("bg", "floor", "body", "target", "reflectance", "camera", "light")
"""The seven factors of a look, which `vary` selects from."""

LOOKS: Mapping[str, range] = MappingProxyType(
    {
        "train": range(1, 1_000_000),
        "valid": range(1_000_000, 2_000_000),
        "test": range(2_000_000, 100_000_000),
    }
)
"""Visual seeds of each split."""
STARTS: Mapping[str, range] = MappingProxyType(
    {
        "train": range(1_000, 1_000_000),
        "valid": range(1_000_000, 2_000_000),
        "test": range(2_000_000, 2**32),
    }
)
"""Dynamics seeds of each split; those below 1000 are left to the protocols of `iv.evaluate`."""

_LOOKS_VARY = ("full_generalization", "visual_generalization", "visual_sim2real")
_DYNAMICS_VARY = ("dynamics_generalization", "full_generalization")


class EnvPair(NamedTuple):
    """The environments of a benchmark; both are vector environments if num_envs was given."""

    train: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]
    test: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]


def benchmark(name: Benchmark, id: str, *, num_envs: int | None = None, **options: Any) -> EnvPair:
    """Returns the training and the test environment of a benchmark.

    Args:
        name: classic, dynamics_generalization, full_generalization, visual_generalization or
            visual_sim2real.
        id: a control id, or domain and task such as "walker/walk".
        num_envs: makes vector environments of so many worlds; None makes single ones.
        **options: num_levels, levels_seed, visual_seed and held_out_pictures as for
            `split_options`; the rest are options of the world, as for `make`.
    """
    levels = {n: options.pop(n) for n in _LEVEL_OPTIONS if n in options}
    for taken in ("dynamics_seed", "visual_seed"):
        if taken in options:
            told = f"{name} decides {taken} itself"
            raise InvalidValueError(told, fix="Use iv.make for seeds of your own")
    task, ends = task_id(id), cast(tuple[Split, ...], ("train", "test"))
    both = [{**split_options(name, split, task, **levels), **options} for split in ends]
    if num_envs is None:
        return EnvPair(*(make_world(task, **chosen) for chosen in both))
    return EnvPair(*(make_vec(task, num_envs, **chosen) for chosen in both))


def classic(
    domain: str,
    task: str | None = None,
    visual_seed: int = DEFAULT_LOOK,
    frame_stack: int = 3,
    height: int | None = None,
    width: int | None = None,
    frame_skip: int = 1,
    channels_last: bool = False,
    vary: Sequence[str] | str = DMCR_VARY,
    **options: Any,
) -> EnvPair:
    """Returns two environments of one look, which start from different states.

    Args:
        domain: a domain such as "walker", or all of the task as an id or "walker/walk".
        task: a task such as "walk".
        visual_seed: the look; 0 is the suite's.
        frame_stack: pictures in an observation.
        height: rows of a picture, 84 by default.
        width: columns of a picture, 84 by default.
        frame_skip: control steps for which an action is repeated.
        channels_last: whether pictures are (rows, columns, channels).
        vary: the factors that a visual seed decides.
        **options: as for `benchmark`.
    """
    shape = _pictures(frame_stack, height, width, frame_skip, channels_last, vary, options)
    return benchmark("classic", _joined(domain, task), visual_seed=visual_seed, **shape)


def _of_looks(name: Benchmark, about: str) -> Callable[..., EnvPair]:
    """Returns the function that makes a benchmark of so many looks, with the original's arguments.

    With the task in the first of them, as in ("walker/walk", 100), the second may be num_levels.
    """

    def pair(
        domain: str,
        task: str | int | None = None,
        num_levels: int | None = None,
        frame_stack: int = 3,
        height: int | None = None,
        width: int | None = None,
        frame_skip: int = 1,
        channels_last: bool = False,
        vary: Sequence[str] | str = DMCR_VARY,
        **options: Any,
    ) -> EnvPair:
        if not isinstance(task, str) and task is not None:
            if num_levels is not None:
                raise InvalidValueError(f"task is {task!r}", allowed='a name such as "walk"')
            task, num_levels = None, task
        shape = _pictures(frame_stack, height, width, frame_skip, channels_last, vary, options)
        return benchmark(name, _joined(domain, task), num_levels=num_levels, **shape)

    pair.__name__ = pair.__qualname__ = name
    pair.__doc__ = f"""Returns an environment of exactly num_levels looks, and one of {about}.

    Arguments are those of `classic`, with num_levels in place of visual_seed. With the task in
    the first of them, as in ("walker/walk", 100), the second may be num_levels.
    """
    return pair


visual_generalization = _of_looks("visual_generalization", "looks it never shows")
visual_sim2real = _of_looks("visual_sim2real", "the default look")


def make(
    domain_name: str,
    task_name: str | None = None,
    visual_seed: int | tuple[int, int] = DEFAULT_LOOK,
    dynamics_seed: int | tuple[int, int] | None = None,
    frame_stack: int = 3,
    height: int | None = None,
    width: int | None = None,
    camera_id: int = 0,
    frame_skip: int = 1,
    channels_last: bool = False,
    vary: Sequence[str] | str = DMCR_VARY,
    **options: Any,
) -> WorldEnv:
    """Returns one environment of one look and, where dynamics_seed is given, of one start.

    The original draws a seed that is left out, once. Here the look is then the default one, and
    each episode starts elsewhere. Other arguments are those of `classic`.
    """
    if camera_id != 0:
        raise InvalidValueError(
            f"camera_id is {camera_id!r}", allowed="0", fix="Set the camera with do"
        )
    shape = _pictures(frame_stack, height, width, frame_skip, channels_last, vary, options)
    id = task_id(_joined(domain_name, task_name))
    return make_world(id, visual_seed=visual_seed, dynamics_seed=dynamics_seed, **shape)


def _joined(domain: str, task: str | None) -> str:
    return domain if task is None else f"{domain}/{task}"


def _pictures(
    frame_stack: int,
    height: int | None,
    width: int | None,
    frame_skip: int,
    channels_last: bool,
    vary: Sequence[str] | str,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Returns options of the world for the original's arguments."""
    given: dict[str, Any] = {"frame_stack": frame_stack, "frame_skip": frame_skip, "vary": vary}
    if height is not None or width is not None:
        given["image_size"] = (height or DEFAULT_EDGE, width or DEFAULT_EDGE)
    if channels_last:
        given["channels_first"] = False
    if twice := sorted(given.keys() & options.keys()):
        raise InvalidValueError(
            f"{twice[0]} is given twice", fix="Leave out height, width and channels_last"
        )
    return given | options


def dynamics_generalization(id: str, num_levels: int | None = None, **options: Any) -> EnvPair:
    """Returns two environments in the default look whose dynamics differ from each other's.

    A level is a dynamics seed: it decides the dynamics and the state an episode starts from.
    """
    return benchmark("dynamics_generalization", id, num_levels=num_levels, **options)


def full_generalization(id: str, num_levels: int | None = None, **options: Any) -> EnvPair:
    """Returns two environments with looks and dynamics of their own."""
    return benchmark("full_generalization", id, num_levels=num_levels, **options)


_LEVEL_OPTIONS = ("held_out_pictures", "levels_seed", "num_levels", "visual_seed")


def split_options(
    name: Benchmark,
    split: Split,
    id: str,
    *,
    num_levels: int | None = None,
    levels_seed: int = 0,
    visual_seed: int = DEFAULT_LOOK,
    held_out_pictures: bool = False,
) -> dict[str, Any]:
    """Returns the options of the world that a split is: for make, make_vec, evaluate or train.

    Args:
        name: the benchmark.
        split: train, valid or test. Valid is for choosing a model: never trained on, never tested.
        id: a control id, or domain and task such as "walker/walk".
        num_levels: how many levels to train on, all by default; visual benchmarks need it.
        levels_seed: which ones: that many seeds in a row, from a place this seed draws.
        visual_seed: the look of classic.
        held_out_pictures: train (and valid) draws pictures of space A, test those of B, so that no
            floor and no sky of a test was trained on; without, looks differ and share pictures.

    >>> split_options("visual_generalization", "train", "walker/walk", num_levels=10)["visual_seed"]
    (500248, 500257)
    """
    check_name("benchmark", name, get_args(Benchmark))
    check_name("split", split, LOOKS)
    whole = isinstance(num_levels, int) and not isinstance(num_levels, bool) and num_levels > 0
    if not whole and (name.startswith("visual") or num_levels is not None):
        fix = "Say how many looks to train on" if num_levels is None else ""
        told = f"num_levels is {num_levels!r}"
        raise InvalidValueError(told, allowed="a whole number from 1", fix=fix)
    if name == "classic" and num_levels is not None:
        raise InvalidValueError("classic has one level", fix="Leave num_levels out")
    if name != "classic" and visual_seed != DEFAULT_LOOK:
        told = f"{name} decides visual_seed itself"
        raise InvalidValueError(told, fix="Only classic takes one look")
    levels = num_levels if split == "train" else None
    chosen: dict[str, Any] = {"visual_seed": visual_seed}
    if name in _LOOKS_VARY:
        chosen["visual_seed"] = _ends(LOOKS[split], levels, levels_seed, "remastered/looks")
    if name == "visual_sim2real" and split == "test":
        chosen["visual_seed"] = DEFAULT_LOOK
    if held_out_pictures:
        if name not in _LOOKS_VARY:
            raise InvalidValueError(f"{name} shows no pictures", allowed=", ".join(_LOOKS_VARY))
        chosen["pictures"] = "B" if split == "test" else "A"
    levels = levels if name in _DYNAMICS_VARY else None
    chosen["dynamics_seed"] = _ends(STARTS[split], levels, levels_seed, "remastered/dynamics")
    if name in _DYNAMICS_VARY:
        entry = WORLDS[task_id(id)]
        chosen["vary_dynamics"] = entry.load().options_type(**entry.options).dynamics_names
    return chosen


def task_id(id: str) -> str:
    """Returns the registered id that an id, or domain and task, means.

    >>> task_id("ball_in_cup/catch")
    'control/ball_in_cup_catch-v1'
    """
    known = [name for name in WORLDS if name.startswith("control/")]
    long = f"control/{id.replace('/', '_')}-v1"
    if id not in known and long not in known:
        raise UnknownNameError(unknown("control task", id, known))
    return id if id in known else long


def _ends(seeds: range, levels: int | None, levels_seed: int, name: str) -> tuple[int, int]:
    """Returns the first and the last seed of a split, or of so many levels in it."""
    if levels is None:
        return seeds[0], seeds[-1]
    if levels > len(seeds):
        raise InvalidValueError(f"num_levels is {levels}", allowed=f"at most {len(seeds)}")
    draw = generator(seed=check_seed(levels_seed), name=name)
    start = seeds[int(draw.integers(len(seeds) - levels + 1))]
    return start, start + levels - 1
