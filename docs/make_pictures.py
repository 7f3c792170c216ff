"""Draws the pictures of the documentation into docs/images.

python docs/make_pictures.py [FOLDER]
"""

from __future__ import annotations

import fnmatch
import io
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import networkx as nx
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

import interverse as iv
from interverse.art.pictures import (
    Procedural,
    procedural_backgrounds,
    procedural_floors,
)
from interverse.cli.demo import circling
from interverse.reports import PLOTS
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.rooms.actions import CLASS_NAMES

QUALITY = 88  # of JPEG pictures
VIEWER_PORT, VIEWER_STEPS = 8096, 48
# Software GL, so that the picture is the same wherever it is drawn.
BROWSER_FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"


class Change(NamedTuple):
    """A world, one variable and its other value, and options that make it a good picture."""

    id: str
    name: str
    value: Any
    options: Mapping[str, Any] = {}
    seed: int = 0
    start: Mapping[str, Any] = {}  # what both pictures have

    @property
    def caption(self) -> str:
        """The whole intervention."""
        return f"do {self.name} = {self.value}"


CHANGES = (
    Change("trifinger/towers-v1", "tower/counts", [2, 2, 2], {"max_blocks": 8}),
    Change("control/walker_walk-v1", "visual_seed", 7, {"visual_seed": 3, "image_size": 240}),
    Change(
        "rooms/single-v1",
        "object/state",
        [0.9, 0, 0, 0],
        {"image_size": 240},
        8,
        {"object/class": CLASS_NAMES.index("Fridge"), "light/time_of_day": 13.0},
    ),
    Change("blocks/observed-5-v1", "block_0/position", [2, 2]),
    Change("chemistry/chain-v1", "object_0/color", 0),
)
COMMON: Mapping[str, Mapping[str, Any]] = {
    "at reset": {},
    "do floor/color, floor/texture": {"floor/color": [0.45, 0.6, 0.8], "floor/texture": 1},
    "do light/direction": {"light/direction": [0.8, 0.3, -0.5]},
    "do joint_positions": {"joint_positions": [-0.3, 1.2, -1.5] * 3},
    "do block_*/color": {"block_*/color": [0.95, 0.75, 0.1], "goal_*/color": [0.2, 0.4, 1.0]},
}
OWN: Mapping[str, Mapping[str, Any]] = {
    "reaching": {"obstacles/count": 5},
    "pushing": {"block_0/size": [0.09, 0.06, 0.09]},
    "picking": {"goal_0/cylindrical_position": [0.0, 0.0, 0.2]},
    "pick_and_place": {"obstacle/size": [0.5, 0.015, 0.1]},
    "stacking2": {"goal_tower/cylindrical_position": [0.1, 0.5, 0.065]},
    "towers": {"tower/counts": [2, 2, 2], "tower/dims": [0.12, 0.12, 0.12]},
    "stacked_blocks": {"stack/levels": 4, "stack/max_width": 0.12},
    "creative_stacked_blocks": {"stack/levels": 4},
    "general": {"general/size": 0.07},
}
MORE_BLOCKS = {"towers": 8}


def frame(id: str, do: Mapping[str, Any], seed: int = 0, **options: Any) -> np.ndarray:
    """Returns a picture of a world after an intervention; a name may be a pattern."""
    env = iv.make(id, render_mode="rgb_array", **options)
    env.reset(seed=seed)
    values = {n: v for pattern, v in do.items() for n in fnmatch.filter(env.variables, pattern)}
    if values:
        env.do(values, check=False)
    picture = env.render()
    env.close()
    if id.startswith("chemistry"):
        picture = picture[:, : picture.shape[0]]  # the present scene; the target stands beside it
    return picture


def worlds() -> Figure:
    """Returns each family before and after one intervention."""
    figure, axes = plt.subplots(2, len(CHANGES), figsize=(13, 5.6), layout="constrained")
    for column, change in zip(axes.T, CHANGES, strict=True):
        drawn = change.id.startswith(("blocks", "chemistry"))  # pixel by pixel; others: photographs
        for axis, do in zip(column, ({}, {change.name: change.value}), strict=True):
            picture = frame(change.id, {**change.start, **do}, change.seed, **change.options)
            axis.imshow(square(picture), interpolation="nearest" if drawn else "lanczos")
            axis.set_axis_off()
        column[0].set_title(change.id, fontsize=13)
        column[1].set_title(change.caption, fontsize=11.5, color="#b5442e")
    return figure


def to_goal(observations: np.ndarray) -> np.ndarray:
    """A hand-written slider policy: push towards the goal, brake by the velocity."""
    place, velocity, goal = observations[:, 0:2], observations[:, 3:5], observations[:, 9:11]
    return np.clip(12.0 * (goal - place) - 3.0 * velocity, -1.0, 1.0).astype(np.float32)


def square(picture: np.ndarray) -> np.ndarray:
    """Returns the middle of a picture."""
    rows, columns = picture.shape[:2]
    start = (columns - rows) // 2
    return picture[:, start : start + rows]


def counterfactual() -> Figure:
    """Returns one episode of the slider and two that might have been."""
    fact = iv.rollout("tutorial/slider-v1", circling(), seed=0)
    light = iv.counterfactual(fact, {"box/mass": 0.45})
    slippery = iv.counterfactual(fact, {"box/friction": 0.2}, at=40)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    lines = (
        (fact, GREY, "fact"),
        (light, BLUE, 'do {"box/mass": 0.45}'),
        (slippery, ORANGE, 'do {"box/friction": 0.2}, at=40'),
    )
    for episode, color, label in lines:
        place = episode.values["box/position"]
        speed = np.linalg.norm(episode.values["box/velocity"], axis=1)
        axes[0].plot(place[:, 0], place[:, 1], color=color, label=label, lw=2)
        axes[1].plot(speed, color=color, lw=2)
    axes[1].axvline(40, color=ORANGE, lw=0.8, ls=":")
    axes[0].set(xlabel="x (m)", ylabel="y (m)", title="path of the box", aspect="equal")
    axes[1].set(xlabel="step", ylabel="m/s", title="speed of the box")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def graphs() -> Figure:
    """Returns the graph of three objects of chemistry, and what a `do` of one leaves of it."""
    names = [f"object_{i}/color" for i in range(3)]
    where = {name: (float(i), 0.0) for i, name in enumerate(names)}
    chain = nx.DiGraph([(names[0], names[1]), (names[1], names[2])])
    cut = nx.DiGraph([(names[1], names[2])])
    cut.add_node(names[0])
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.6), layout="constrained")
    titles = ("see: each object follows its parent", 'do {"object_1/color": 3}')
    for axis, graph, title in zip(axes, (chain, cut), titles, strict=True):
        colors = [ORANGE if graph is cut and n == names[1] else "#56b4e9" for n in graph]
        nx.draw_networkx(
            graph, where, ax=axis, node_size=3600, node_color=colors, font_size=8, arrowsize=14
        )
        axis.set(title=title, ylim=(-1, 1), xlim=(-0.5, 2.5))
        axis.set_axis_off()
    return figure


def tasks() -> Figure:
    """Returns the tasks of TriFinger, before and after five kinds of intervention."""
    figure, axes = plt.subplots(
        len(OWN), len(COMMON) + 1, figsize=(11.5, 13.2), layout="constrained"
    )
    for row, (task, own) in zip(axes, OWN.items(), strict=True):
        id = f"trifinger/{task}-v1"
        for axis, do in zip(row, COMMON.values(), strict=False):
            axis.imshow(frame(id, do))
        row[-1].imshow(frame(id, own, max_blocks=MORE_BLOCKS.get(task)))
        row[-1].set_title("do " + ", ".join(own), fontsize=7)
        row[0].set_ylabel(task, fontsize=9)
    for axis, caption in zip(axes[0], COMMON, strict=False):
        axis.set_title(caption, fontsize=7)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    return figure


def scores() -> Figure:
    """Returns two slider policies under the slider's protocols."""
    runs = [iv.evaluate(p, task="tutorial/slider-v1", episodes=50) for p in ("random", to_goal)]
    return PLOTS.load("bars")(iv.Results.concat(runs), "return")


def floors() -> Figure:
    """Returns some painted floors of every kind."""
    return album(procedural_floors(), columns=10, cell=56)


def backgrounds() -> Figure:
    """Returns some painted backgrounds of every kind."""
    return album(procedural_backgrounds(), columns=8, cell=76)


def album(pictures: Procedural, columns: int, cell: int) -> Figure:
    """Returns a sheet with a row of pictures for every kind, as many as there are up to columns."""
    numbers: dict[str, list[int]] = {}
    for index in range(pictures.count):
        numbers.setdefault(pictures.kind(index), []).append(index)
    sheet = np.full((len(numbers) * cell, columns * cell, 3), 255, dtype=np.uint8)
    for row, group in enumerate(numbers.values()):
        for column, index in enumerate(group[:columns]):
            y, x = row * cell, column * cell
            sheet[y : y + cell - 2, x : x + cell - 2] = pictures.picture(index, cell - 2)
    margin, dpi = 72, 110
    width, height = columns * cell + margin, len(sheet)
    figure = plt.figure(figsize=(width / dpi, height / dpi), dpi=dpi)
    figure.figimage(sheet, margin, 0)
    for row, kind in enumerate(numbers):
        middle = 1 - (row + 0.5) * cell / height
        name = kind.replace("_", "\n")
        figure.text((margin - 6) / width, middle, name, ha="right", va="center", fontsize=7)
    return figure


def looks(domain: str) -> np.ndarray:
    """Returns twenty looks of a domain in the same state, the default one first."""
    env = iv.make(f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1", frame_stack=1, dynamics_seed=3)
    rows = []
    for seeds in ((0, *range(1, 10)), (*range(10, 16), *range(-4, 0))):
        seen = [env.reset(seed=0, options={"visual_seed": seed})[0] for seed in seeds]
        padded = [np.pad(frame, ((0, 0), (0, 2), (0, 2)), constant_values=255) for frame in seen]
        rows.append(np.concatenate(padded, axis=2))
    env.close()
    return np.concatenate(rows, axis=1).transpose(1, 2, 0)


def viewer(file: Path) -> None:
    """Photographs the viewer in a browser: a block that was moved, and its ghost that was not."""
    from playwright.sync_api import sync_playwright

    words = ["trifinger/pushing-v1", "--policy", "scripted", "--port", str(VIEWER_PORT)]
    command = [sys.executable, "-m", "interverse", "view", *words]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving,
        sync_playwright() as play,
    ):
        url = serving.stdout.readline().partition("open ")[2].split()[0]
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER_FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 810})
        page.set_default_timeout(120_000)
        page.goto(url)
        page.wait_for_selector("#message")
        page.locator(".mantine-Notification-closeButton").click()
        label = page.locator("label").filter(has_text="cartesian").locator("visible=true").first
        field = page.locator(f'[id="{label.get_attribute("for")}"]')
        field.fill("0.07")
        field.press("Enter")
        page.locator('.node[data-state="do"]').wait_for()
        page.get_by_role("tab", name="Imagine").click()
        page.get_by_role("button", name="Without my last do").click()
        page.locator("#verdict").wait_for()
        for _ in range(VIEWER_STEPS):
            page.get_by_role("button", name="Step", exact=True).click()
            page.wait_for_timeout(300)
        page.mouse.move(720, 700)
        page.wait_for_timeout(3000)
        page.screenshot(path=file)
        browser.close()
        serving.send_signal(signal.SIGINT)
    Image.open(file).convert("RGB").save(file, quality=QUALITY, optimize=True)
    print(file.name, file.stat().st_size)


def save(figure: Figure, file: Path) -> None:
    """Writes a figure: diagrams as PNG, photographs of worlds as JPEG."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    plt.close(figure)
    Image.open(drawn).convert("RGB").save(file, quality=QUALITY, optimize=True)
    print(file.name, file.stat().st_size)


def main(arguments: Sequence[str]) -> None:
    """Draws everything."""
    mpl.use("Agg")
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (counterfactual, graphs, scores):
        save(draw(), folder / f"{draw.__name__}.png")
    for draw in (worlds, tasks, floors, backgrounds):
        save(draw(), folder / f"{draw.__name__}.jpg")
    for domain in DOMAINS:
        file = folder / f"control_{domain}.jpg"
        Image.fromarray(looks(domain)).save(file, quality=QUALITY, optimize=True)
    viewer(folder / "viewer.jpg")


if __name__ == "__main__":
    main(sys.argv[1:])
