"""`interverse demo`: do, imagine, generalise, see, learn; in pictures, as one HTML page."""

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

from interverse.cli.flags import AsJson, tell
from interverse.core.errors import install_line, missing_extra
from interverse.envs import make
from interverse.protocols.evaluate import evaluate
from interverse.reports import palette
from interverse.reports.page import report
from interverse.results import Results
from interverse.rollouts import Episode, counterfactual, rollout
from interverse.rollouts.saved import trained_policy
from interverse.rollouts.video import episode_frames
from interverse.worlds.rooms import CLASS_NAMES

try:
    import jinja2
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
except ImportError as error:
    raise missing_extra(error.name or "matplotlib", "report") from error

_SLIDER = "tutorial/slider-v1"
_MOST_SHOWN = 2  # changed variables under a picture


class DemoChange(NamedTuple):
    """An intervention worth a picture; `needs` is a module without which it is left out."""

    world: str
    do: dict[str, Any]
    caption: str
    options: Mapping[str, Any] = MappingProxyType({})
    needs: str = "numpy"
    seed: int | None = None  # the demo's own unless given
    start: Mapping[str, Any] = MappingProxyType({})  # set before both pictures


CHANGES = (
    DemoChange(
        "trifinger/pushing-v1",
        {"block_0/size": [0.09, 0.09, 0.09], "floor/color": [0.2, 0.3, 0.45]},
        "the goal follows the block's size, the floor changes its colour",
    ),
    DemoChange(
        "blocks/observed-5-v1",
        {"block_0/position": [2, 2], "block_0/shape": 2},
        "the heaviest block is moved and becomes a square",
    ),
    DemoChange(
        "chemistry/chain-v1",
        {"object_0/color": 0, "object_2/color": 4, "object_4/color": 2},
        "three objects are painted by hand",
    ),
    DemoChange(
        "control/walker_walk-v1",
        {"visual_seed": 7},
        "another look: sky, floor, colours, light",
        {"visual_seed": 3, "image_size": 240},
        "dm_control",
    ),
    DemoChange(
        "rooms/single-v1",
        {"object/state": [0.9, 0, 0, 0], "light/time_of_day": 22.5, "light/color": [1, 0.75, 0.5]},
        "the fridge is open, and it is evening",
        {"image_size": 240},
        "PIL",
        8,
        {"object/class": CLASS_NAMES.index("Fridge"), "light/time_of_day": 13.0},
    ),
)
# Policies that come with the package; each learned with all variables drawn from space A.
_POLICIES = ("pushing", "picking", "pick_and_place")
# Looks under which a policy that learned from pictures plays the same start again; both pictures
# are held out from every training space.
_PIXEL_TASK, _PIXEL_POLICY = "control/cartpole_balance-v1", "cartpole_balance_paper"
_SKY = {"background/texture": 107}
_LOOKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "as it was trained": (_PIXEL_POLICY, {}),
    "another floor": (_PIXEL_POLICY, {"floor/texture": 311}),
    "another body": (_PIXEL_POLICY, {"body/color": [0.1, 0.6, 0.3, 1.0]}),
    "another sky": (_PIXEL_POLICY, _SKY),
    "that sky, SVEA": ("cartpole_balance_svea", _SKY),
}
_WALK_TASK, _WALK_POLICY, _WALK_DECISIONS = "control/walker_walk-v1", "walker_walk_paper", 60
_WALKS: Mapping[str, Mapping[str, Any]] = {
    "walker, as it was trained": {},
    "walker, another floor": {"floor/texture": 311},
}
_LEFT_OUT = f"Left out, for want of Torch: {install_line('torch')} adds it."
_PROTOCOLS = {"P0": "as it is", "P2": "masses of B", "P10": "all of A", "P11": "all of B"}
_MODELS = {"gnn": "messages without actions", "action_gnn": "messages with actions"}


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Makes a tour in pictures: do, imagine, generalise, see, learn. Takes a minute or two."""

    out: Path = Path("demo")
    """The folder for the page."""
    episodes: int = 3
    """Episodes of every policy per protocol."""
    seed: int = 0
    """The seed of everything."""
    hero: Path | None = None
    """Make the picture of the front page alone, as this PNG, and one for dark pages beside it:
    which variable breaks a robot, by the scores and by do. Some five minutes."""
    json: AsJson = False


def demo(config: Demo) -> Path:
    """Writes the page and says where it is."""
    console = Console(stderr=True)
    if config.hero is not None:
        from interverse.reports.hero import make_hero

        files = make_hero(config.hero, seed=config.seed)
        tell(config, {"page": files[0].resolve(), "left_out": []}, *map(str, files))
        return files[0]
    config.out.mkdir(parents=True, exist_ok=True)
    sections = []
    for title, make_section in (
        ("Do: change a variable, and everything that follows from it", _do_section),
        ("Imagine: the same noise, the same actions, another world", _imagine_section),
        ("Generalise: trained robot policies where the world was changed", _policy_section),
        ("See: a policy that learned from pictures, under other looks", _looks_section),
        ("Learn: two world models of the same play, and what they miss", _model_section),
    ):
        with console.status(title):
            sections.append({"title": title, "captions": [], **make_section(config)})
        told = "[yellow]left out[/]" if sections[-1].get("missing") else "[green]done[/]"
        console.print(f"{told}  {title}")
    page = config.out / "index.html"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("interverse.cli"), autoescape=True, trim_blocks=True
    )
    page.write_text(environment.get_template("demo.html.j2").render(sections=sections))
    missing = [section["title"] for section in sections if section.get("missing")]
    tell(config, {"page": page.resolve(), "left_out": missing}, str(page.resolve()))
    return page


def _do_section(config: Demo) -> dict[str, Any]:
    shown = [change for change in CHANGES if importlib.util.find_spec(change.needs)]
    figure, axes = plt.subplots(2, len(shown), figsize=(2.4 * len(shown), 5.6), squeeze=False)
    for column, change in enumerate(shown):
        env = make(change.world, render_mode="rgb_array", **change.options)
        try:
            env.reset(seed=config.seed if change.seed is None else change.seed)
            if change.start:
                env.do(change.start, check=False)
            frames = [env.render()]
            changed = sorted(env.do(change.do, check=False).changed)
            frames.append(env.render())
        finally:
            env.close()
        for row, frame in enumerate(frames):
            axes[row, column].imshow(_square(frame), interpolation="nearest")
            axes[row, column].set_axis_off()
        more = [f"and {len(changed) - _MOST_SHOWN} more"] if len(changed) > _MOST_SHOWN else []
        told = "\n".join(["changed:", *changed[:_MOST_SHOWN], *more])
        axes[0, column].set_title(change.world, fontsize=11)
        axes[1, column].set_title(told, fontsize=9, color=palette.DO)
    absent = [change.world for change in CHANGES if change not in shown]
    left = f" Left out: {', '.join(absent)}; {install_line('control')} adds it." if absent else ""
    values = ", ".join(f'"{name}": {value}' for name, value in shown[0].do.items())
    return {
        "text": f"Above: the world as it is. Below: after one <code>env.do({{...}})</code>.{left}",
        "captions": [f"{c.world}: {c.caption}" for c in shown],
        "image": _save(figure, config.out / "do.png"),
        "code": f'env = iv.make("{shown[0].world}")\nenv.reset(seed=0)\nenv.do({{{values}}})',
    }


def _imagine_section(config: Demo) -> dict[str, Any]:
    fact = rollout(_SLIDER, circling(), seed=config.seed)
    twins = {
        "fact": fact,
        "lighter: box/mass 0.3": counterfactual(fact, {"box/mass": 0.3}),
        "slippery from step 40": counterfactual(fact, {"box/friction": 0.2}, at=40),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for (label, episode), colour in zip(
        twins.items(), (palette.FACT, palette.TWIN, palette.DO), strict=True
    ):
        place = episode.values["box/position"]
        left.plot(place[:, 0], place[:, 1], color=colour, label=label, lw=2)
        right.plot(np.linalg.norm(episode.values["box/velocity"], axis=1), color=colour, lw=2)
    left.set(xlabel="x (m)", ylabel="y (m)", title="path of the box", ylim=(-1.1, 0.7))
    left.set_aspect("equal")
    right.set(xlabel="step", ylabel="speed (m/s)", title="speed")
    left.legend(frameon=False, fontsize=9, loc="lower left")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return {
        "text": "One episode and what it would have been. With an empty <code>do</code> the twin "
        "is the fact, bit for bit.",
        "image": _save(figure, config.out / "imagine.png"),
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


def _policy_section(config: Demo) -> dict[str, Any]:
    """Returns policies that come with the package on some protocols, and one of their episodes."""
    code = (
        "from interverse.agents.policies import trained_policy\n\n"
        'iv.evaluate(trained_policy("picking_2"), task="trifinger/picking-v1", protocols="P0-P11")'
    )
    if importlib.util.find_spec("torch") is None:
        return {"text": _LEFT_OUT, "code": code, "missing": True}
    results = Results.concat(
        evaluate(
            trained_policy(f"{task}_2"),
            f"trifinger/{task}-v1",
            ",".join(_PROTOCOLS),
            episodes=config.episodes,
            seed=config.seed,
            workers=2,
            skip_frame=3,
        )
        for task in _POLICIES
    )
    page = report(results, config.out / "report")
    env = make("trifinger/picking-v1", skip_frame=3, render_mode="rgb_array")
    heavy = rollout(env, trained_policy("picking_2"), seed=config.seed, do={"block_0/mass": 0.09})
    env.close()
    return {
        "text": "Trained on a GPU with variables drawn from space A, played on this machine. "
        "Below the bars: a block of 90 g, twice the heaviest that the policy has met.",
        "captions": [f"{name}: {what}" for name, what in _PROTOCOLS.items()],
        "image": _save(_policies(results, heavy), config.out / "policy.png"),
        "link": str(page.relative_to(config.out)),
        "code": code,
    }


def _policies(results: Results, heavy: Episode) -> Any:
    """Returns a figure of mean scores by policy and protocol, over pictures of an episode."""
    shots = [_square(shot) for shot in episode_frames(heavy, every=119)][:6]
    figure = plt.figure(figsize=(11, 5.6))
    grid = figure.add_gridspec(2, len(shots), height_ratios=[1.5, 1])
    bars = figure.add_subplot(grid[0, :])
    for place, task in enumerate(_POLICIES):
        one = results.select(task=f"trifinger/{task}-v1")
        means = [
            np.nanmean(one.select(protocol=name).scores("last_fractional_success"))
            for name in _PROTOCOLS
        ]
        at = np.arange(len(means)) + 0.26 * (place - 1)
        drawn = bars.bar(at, means, 0.24, label=f"{task}_2", color=palette.POLICIES[place])
        bars.bar_label(drawn, fmt="%.2f", fontsize=9)
    bars.set_xticks(
        range(len(_PROTOCOLS)), [f"{n}: {t}" for n, t in _PROTOCOLS.items()], fontsize=11
    )
    bars.set_ylabel("fraction of the goal that is met\nat the end of an episode")
    bars.set_ylim(0, 1.3)
    bars.legend(frameon=False, ncols=3, loc="upper center")
    bars.spines[["top", "right"]].set_visible(False)
    for column, shot in enumerate(shots):
        axis = figure.add_subplot(grid[1, column])
        axis.imshow(shot)
        axis.set_axis_off()
    return figure


def _looks_section(config: Demo) -> dict[str, Any]:
    """Returns the same episode of a pixel policy under several looks, as the policy sees it."""
    code = (
        f'policy = trained_policy("{_PIXEL_POLICY}")\n'
        f'iv.rollout("{_PIXEL_TASK}", policy, seed=0, do={{"background/texture": 107}})\n'
        f'print(iv.attribute(policy, "{_PIXEL_TASK}").page())'
    )
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("dm_control") is None:
        left = (
            f"Left out, for want of Torch or dm_control: {install_line('torch,control')} adds both."
        )
        return {"text": left, "code": code, "missing": True}
    played = {
        look: rollout(_PIXEL_TASK, trained_policy(name), seed=config.seed, do=do)
        for look, (name, do) in _LOOKS.items()
    }
    walker, brief = (
        trained_policy(_WALK_POLICY),
        {"seed": config.seed, "max_steps": _WALK_DECISIONS},
    )
    played |= {look: rollout(_WALK_TASK, walker, do=do, **brief) for look, do in _WALKS.items()}
    columns = 8
    figure, axes = plt.subplots(len(played), columns, figsize=(11, 1.5 * len(played)))
    for row, (look, episode) in zip(axes, played.items(), strict=True):
        for axis, step in zip(row, np.linspace(0, len(episode), columns).astype(int), strict=True):
            axis.imshow(episode.observations[step, -3:].transpose(1, 2, 0))
            axis.set_axis_off()
            axis.set_title(f"decision {step}", fontsize=8, color=palette.SOFT)
        told = f"{look}\nreturn {episode.rewards.sum():.0f}"
        row[0].text(-0.12, 0.5, told, transform=row[0].transAxes, ha="right", va="center")
    return {
        "text": "SAC+AUG learned to balance a pole from pictures in one look. Here it balances the "
        "same pole from the same start, and one thing looks different: the small pictures are what "
        "it sees. SVEA, in the fifth row, saw changed pictures in training (by one random filter a "
        "batch, unlike the published one). A whole episode earns at most 1,000. Below, SAC+AUG "
        f"makes the first {_WALK_DECISIONS} decisions of a walk, which earn at most "
        f"{2 * _WALK_DECISIONS}. <code>interverse explain</code> tells what each factor costs over "
        "many episodes.",
        "image": _save(figure, config.out / "looks.png"),
        "code": code,
    }


def _model_section(config: Demo) -> dict[str, Any]:
    """Returns how well two small world models predict which block pushes which."""
    code = "interverse fit blocks/observed-3-v1 --model action_gnn --out runs/fit"
    if importlib.util.find_spec("torch") is None:
        return {"text": _LEFT_OUT, "code": code, "missing": True}
    figure, axis = plt.subplots(figsize=(8, 3.4))
    for colour, (name, hits) in zip(palette.POLICIES, _model_hits(config).items(), strict=False):
        axis.plot(list(hits), list(hits.values()), "o-", color=colour, lw=2, label=name)
    axis.set(xlabel="steps ahead", ylabel="own future told from 199 others, %", ylim=(0, 105))
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return {
        "text": "Three blocks push each other; the heavier wins. Both models learn from the same "
        "4,000 random moves. One tells a block's neighbours nothing of its action, so it cannot "
        "know that a block is pushed; the other does.",
        "image": _save(figure, config.out / "model.png"),
        "code": code,
    }


def _model_hits(config: Demo) -> dict[str, dict[int, float]]:
    """Returns the share of right futures by model and number of steps."""
    from interverse.data import Collect, collect, open_dataset
    from interverse.models import Fit, WorldModelConfig, evaluate_ranking, fit_world_model
    from interverse.models.datasets import dataset_source

    sizes = {"train": (200, 20), "valid": (20, 20), "test": (200, 10)}
    train, valid, test = (
        dataset_source(
            open_dataset(
                collect(
                    Collect(
                        id="blocks/observed-3-v1",
                        out=config.out / f"{name}.h5",
                        episodes=episodes,
                        steps=steps,
                        seed=config.seed + place,
                        overwrite=True,  # a demo of before may have been other code's
                    )
                )
            )
        )
        for place, (name, (episodes, steps)) in enumerate(sizes.items())
    )
    small = {"encoder": "small", "embedding": 8, "hidden": 64, "encoder_channels": 8}
    found = {}
    for name, words in _MODELS.items():
        like = WorldModelConfig.named(
            "reference", model=name, objects=3, loss="contrastive", **small
        )
        how = Fit(epochs=12, batch_size=128, seeds=(config.seed,))
        (fitted,) = fit_world_model(like, how, train, valid)
        scores = evaluate_ranking(fitted.model(), test, horizons=(1, 2, 5, 10))
        found[f"{name}: {words}"] = {steps: score.hits for steps, score in scores.items()}
    return found


def _square(picture: NDArray[Any]) -> NDArray[Any]:
    """Returns the middle of a wide picture; of chemistry's two the first, the present scene."""
    rows, columns = picture.shape[:2]
    start = 0 if columns > 2 * rows else (columns - rows) // 2
    return picture[:, start : start + rows]


def _save(figure: Any, path: Path) -> str:
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path.name
