"""`interverse demo`: see, do, imagine, measure; in pictures, as one HTML page."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from interverse.agents.policies import trained_policy
from interverse.core.errors import missing_extra
from interverse.envs import make
from interverse.protocols.evaluate import evaluate
from interverse.reports.page import report
from interverse.results import Results
from interverse.rollouts import Episode, counterfactual, rollout
from interverse.rollouts.video import episode_frames

try:
    import jinja2
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
except ImportError as error:
    raise missing_extra(error.name or "matplotlib", "report") from error

_SLIDER = "tutorial/slider-v1"
_MOST_SHOWN = 3  # changed variables under a picture
_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#999999"


class DemoChange(NamedTuple):
    """An intervention worth a picture; `needs` is a module without which it is left out."""

    world: str
    do: dict[str, Any]
    caption: str
    options: Mapping[str, Any] = MappingProxyType({})
    needs: str = "numpy"


CHANGES = (
    DemoChange(
        "trifinger/pushing-v1",
        {"block_0/size": [0.09, 0.09, 0.09], "floor/color": [0.2, 0.3, 0.45]},
        "the goal follows the block's size, the floor changes its colour",
    ),
    DemoChange(
        "trifinger/towers-v1",
        {"tower/counts": [2, 2, 1], "tower/dims": [0.1, 0.1, 0.08]},
        "another tower: fewer and larger blocks",
    ),
    DemoChange(
        "blocks/observed-5-v1",
        {"block_0/position": [2, 2], "block_0/shape": 2},
        "the heaviest block is moved and becomes a square",
    ),
    DemoChange(
        "chemistry/chain-v1",
        {"object_0/color": 0, "object_2/color": 4, "object_4/color": 2},
        "three objects are painted by hand (right: the target)",
    ),
    DemoChange(
        "control/walker_walk-v1",
        {"visual_seed": 7},
        "another look: sky, floor, colours, light",
        {"visual_seed": 3, "image_size": 240},
        "dm_control",
    ),
    DemoChange(
        "rooms/multi-v1",
        {"light/time_of_day": 0.0, "light/color": [1.0, 0.75, 0.45]},
        "evening in the same room",
        {"image_size": 240},
        "PIL",
    ),
    DemoChange(
        _SLIDER,
        {"box/size": [0.15, 0.15, 0.15], "box/color": [0.1, 0.3, 0.45]},
        "a larger box is put back on the table",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Makes a tour in pictures: see, do, imagine, measure. Takes about a minute."""

    out: Path = Path("demo")
    """The folder for the page."""
    episodes: int = 50
    """Episodes per protocol in the small evaluation."""
    seed: int = 0
    """The seed of everything."""


def demo(config: Demo) -> Path:
    """Writes the page and says where it is."""
    console = Console(stderr=True)
    config.out.mkdir(parents=True, exist_ok=True)
    sections = []
    for title, make_section in (
        ("Do: change a variable, and everything that follows from it", _do_section),
        ("Imagine: the same noise, the same actions, another world", _imagine_section),
        ("Measure: scores under protocols, with intervals", _measure_section),
        ("Generalise: a trained robot policy where the world was changed", _policy_section),
    ):
        with console.status(title):
            sections.append({"title": title, **make_section(config)})
        console.print(f"[green]done[/]  {title}")
    page = config.out / "index.html"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("interverse.cli"), autoescape=True, trim_blocks=True
    )
    page.write_text(environment.get_template("demo.html.j2").render(sections=sections))
    Console().print(str(page.resolve()), soft_wrap=True)
    return page


def _do_section(config: Demo) -> dict[str, Any]:
    shown = [change for change in CHANGES if importlib.util.find_spec(change.needs)]
    figure, axes = plt.subplots(2, len(shown), figsize=(2.6 * len(shown), 5.4), squeeze=False)
    for column, change in enumerate(shown):
        before, after, changed = _frames(change, config.seed)
        for row, frame in enumerate((before, after)):
            axes[row, column].imshow(frame, interpolation="nearest")
            axes[row, column].set_axis_off()
        axes[0, column].set_title(change.world, fontsize=9)
        axes[1, column].set_title(f"changed: {_wrapped(changed)}", fontsize=7, color=_GREY)
    return {
        "text": "Above: the world as it is. Below: after one <code>env.do({...})</code>.",
        "captions": [f"{c.world}: {c.caption}" for c in shown],
        "image": _save(figure, config.out / "do.png"),
        "code": _code(shown[0]),
    }


def _frames(change: DemoChange, seed: int) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    env = make(change.world, render_mode="rgb_array", **change.options)
    try:
        env.reset(seed=seed)
        before = env.render()
        outcome = env.do(change.do, check=False)
        return before, env.render(), sorted(outcome.changed)
    finally:
        env.close()


def _imagine_section(config: Demo) -> dict[str, Any]:
    fact = rollout(_SLIDER, circling(), seed=config.seed)
    twins = {
        "fact": fact,
        "lighter: box/mass 0.3": counterfactual(fact, {"box/mass": 0.3}),
        "slippery from step 40": counterfactual(fact, {"box/friction": 0.2}, at=40),
    }
    return {
        "text": "One episode and what it would have been. With an empty <code>do</code> the twin "
        "is the fact, bit for bit.",
        "captions": [],
        "image": _save(_paths(twins), config.out / "imagine.png"),
        "code": "fact = iv.rollout(env, policy, seed=0)\n"
        'twin = iv.counterfactual(fact, {"box/friction": 0.2}, at=40)',
    }


def circling() -> Callable[[NDArray[Any]], NDArray[np.float32]]:
    """Returns a policy that pushes the box round, by its step count."""
    step = 0

    def act(observations: NDArray[Any]) -> NDArray[np.float32]:
        nonlocal step
        step += 1
        angle = 0.12 * step
        push = 0.42 * np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
        return np.broadcast_to(push, (len(observations), 2))

    return act


def _paths(twins: dict[str, Episode]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for (label, episode), colour in zip(twins.items(), (_GREY, _BLUE, _ORANGE), strict=True):
        place = episode.values["box/position"]
        left.plot(place[:, 0], place[:, 1], color=colour, label=label, lw=2)
        right.plot(np.linalg.norm(episode.values["box/velocity"], axis=1), color=colour, lw=2)
    left.set(xlabel="x (m)", ylabel="y (m)", title="path of the box", aspect="equal")
    right.set(xlabel="step", ylabel="speed (m/s)", title="speed")
    left.legend(frameon=False, fontsize=8)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def to_goal(observations: NDArray[Any]) -> NDArray[np.float32]:
    """A hand-written slider policy: push towards the goal, brake by the velocity."""
    place, velocity, goal = observations[:, 0:2], observations[:, 3:5], observations[:, 9:11]
    push = np.clip(12.0 * (goal - place) - 3.0 * velocity, -1.0, 1.0)
    return push.astype(np.float32)


def _measure_section(config: Demo) -> dict[str, Any]:
    runs = [
        evaluate(policy, task=_SLIDER, episodes=config.episodes, seed=config.seed)
        for policy in ("random", to_goal)
    ]
    results = Results.concat(runs)
    page = report(results, config.out / "report")
    return {
        "text": "Two policies on the slider's protocols: what holds up when mass, friction and "
        "gravity leave the range they were met in.",
        "captions": [],
        "link": str(page.relative_to(config.out)),
        "table": results.table("markdown"),
        "code": 'results = iv.evaluate(policy, task="tutorial/slider-v1", protocols="P0-P5")\n'
        'iv.report(results, "report/")',
    }


def _policy_section(config: Demo) -> dict[str, Any]:
    """Returns a policy that comes with the package on some protocols, and one of its episodes."""
    code = (
        "from interverse.agents.policies import trained_policy\n\n"
        'iv.evaluate(trained_policy("picking_2"), task="trifinger/picking-v1", protocols="P0-P11")'
    )
    if importlib.util.find_spec("torch") is None:
        return {"text": "The extra torch is not installed.", "captions": [], "code": code}
    policy, task = trained_policy("picking_2"), "trifinger/picking-v1"
    results = evaluate(policy, task, "P0,P2,P4,P7", episodes=min(config.episodes, 5), skip_frame=3)
    env = make(task, skip_frame=3, render_mode="rgb_array")
    heavy = rollout(env, policy, seed=config.seed, do={"block_0/mass": 0.09})
    env.close()
    shots = list(episode_frames(heavy, every=119))
    figure, axes = plt.subplots(1, len(shots), figsize=(2.1 * len(shots), 2.2), squeeze=False)
    for axis, shot in zip(axes[0], shots, strict=True):
        axis.imshow(shot)
        axis.set_axis_off()
    return {
        "text": "Trained on a GPU with all variables drawn from space A, played on this machine. "
        "The pictures show it with a block of 90 g, twice the heaviest that it has met.",
        "captions": [
            "P0: the default. P2: masses of B. P4: starts of A. P7: starts, goals, masses of A."
        ],
        "image": _save(figure, config.out / "policy.png"),
        "table": results.table("markdown"),
        "code": code,
    }


def _save(figure: Any, path: Path) -> str:
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path.name


def _wrapped(names: list[str]) -> str:
    shown = names[:_MOST_SHOWN]
    more = [f"and {len(names) - len(shown)} more"] if len(names) > len(shown) else []
    return "\n".join(shown + more)


def _code(change: DemoChange) -> str:
    values = ", ".join(f'"{name}": {value}' for name, value in change.do.items())
    return f'env = iv.make("{change.world}")\nenv.reset(seed=0)\nenv.do({{{values}}})'
