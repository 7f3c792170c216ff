"""Pages of the site that are made from the code: the gallery of all worlds, with pictures.

MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import notebooks
import numpy as np
from markdown.extensions.toc import slugify
from mkdocs.structure.files import File, Files
from PIL import Image

from interverse.envs import WorldEnv, make
from interverse.protocols import PROTOCOLS
from interverse.viewer.graph import GraphMarks, graph_svg, lights_of
from interverse.worlds import WORLDS

_ROOT = Path(__file__).resolve().parents[1]
_LIGHTS = "Lit up by `do {}` (orange): green changes at once, light green can follow later."
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" '
_MOST_LIT = 12  # a `do` that lights up everything shows nothing
_OPTIONS = {"chemistry/custom-v1": {"graph": "0->1->2->4,{0-2}->3"}}


def on_files(files: Files, config: Any) -> Files:
    """Adds the gallery and its pictures."""
    text, pictures = gallery()
    files.append(File.generated(config, "gallery.md", content=text))
    for path in _outside():
        content = path.read_bytes()
        name = path.relative_to(_ROOT).as_posix()
        if path.suffix == ".md":
            content = content.replace(b"](docs/", b"](").replace(b"/docs/", b"/")
        files.append(File.generated(config, name, content=content))
    for name, picture in pictures.items():
        files.append(File.generated(config, name, content=picture))
    for path in sorted((_ROOT / "docs" / "tutorials").glob("*.ipynb")):
        page = f"tutorials/{path.stem}.md"
        files.append(File.generated(config, page, content=notebooks.markdown(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Returns a page with links that leave docs/ led to their copies on the site."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
        markdown = markdown.replace("[Gallery of all worlds](worlds.md)", "[Gallery](gallery.md)")
    return markdown if page.file.src_uri.startswith("results/") else markdown.replace("](../", "](")


def _outside() -> Iterator[Path]:
    """Yields what pages link to outside docs/: the guide, the changelog, examples and results."""
    yield from (_ROOT / "CONTRIBUTING.md", _ROOT / "CHANGELOG.md")
    for folder, kinds in (("examples", (".py",)), ("results", (".md", ".json", ".png", ".svg"))):
        yield from (p for p in sorted((_ROOT / folder).rglob("*")) if p.suffix in kinds)


def gallery() -> tuple[str, dict[str, bytes]]:
    """Returns a page with every registered world, and the pictures it shows by file name."""
    pictures: dict[str, bytes] = {}
    sections: list[str] = []
    thumbnails: list[str] = []
    family = ""
    for name in sorted(WORLDS, key=_place):
        if name.partition("/")[0] != family:
            family = name.partition("/")[0]
            sections += [f"## {family}", "", _FAMILIES[family], ""]
        env = make(name, render_mode="rgb_array", **_OPTIONS.get(name, {}))
        env.reset(seed=0)
        file = f"gallery/{name.replace('/', '-')}.png"
        pictures[file] = _png(env.render())
        thumbnails += [f"[![{name}]({file})](#{slugify(name, '-')}) {name}", ""]
        graph = file.replace(".png", ".svg")
        done, pictures[graph] = _graph(env)
        sections += [*_world(name, env, file), '??? note "Causal graph"', ""]
        sections += [f"    {_LIGHTS.format(done)}", "", f"    ![{done}]({graph}){{ .graph }}", ""]
        env.close()
    top = ["# Gallery", "", f"All {len(WORLDS)} worlds, printed from the registry.", ""]
    grid = ['<div class="thumbnails" markdown>', "", *thumbnails, "</div>", ""]
    return "\n".join([*top, *grid, *sections]), pictures


def _families() -> dict[str, str]:
    """Returns what each family asks, by the README's table, in its order."""
    rows = re.findall(
        r"^\| `(\w+)` \| `.*` \| (.*) \| .*\|$", (_ROOT / "README.md").read_text(), re.M
    )
    return {name: text[0].upper() + text[1:] for name, text in rows}


_FAMILIES = _families()


def _place(name: str) -> int:
    return list(_FAMILIES).index(name.partition("/")[0])


def _png(frame: Any) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(frame).save(sink, "PNG")
    return sink.getvalue()


def _world(name: str, env: WorldEnv, picture: str) -> list[str]:
    protocols = [p.name for p in PROTOCOLS.load(name)] if name in PROTOCOLS else []
    lines = [f"### {name}", "", f"![{name}]({picture}){{ width=320 }}", ""]
    seen = env.observation_space
    parts = [f"`{part}`" for part in seen.spaces] if isinstance(seen, gym.spaces.Dict) else []
    shown = ", ".join(parts) or f"`{seen.shape}`"
    lines += [f"Observes {shown}, acts by {_acts(env)}, {env.world.max_steps} steps.", ""]
    if protocols:
        lines += [f"Protocols: {', '.join(f'`{p}`' for p in protocols)}.", ""]
    lines += ['??? note "Variables"', "", "    | name | kind | unit | space A | space B |"]
    lines += ["    |---|---|---|---|---|"]
    for variable in env.variables.values():
        a, b = _range(variable.space_a), _range(variable.space_b)
        lines.append(f"    | `{variable.name}` | {variable.kind} | {variable.unit} | {a} | {b} |")
    lines.append("")
    return lines


def _graph(env: WorldEnv) -> tuple[str, bytes]:
    """Returns a variable with many effects and the graph as its `do` lights it up."""
    graph = env.graph
    free = [v.name for v in env.variables.values() if not v.read_only]
    reach = {name: len(graph.effects_now(name)) for name in free}
    done = max(free, key=lambda name: reach[name] if reach[name] <= _MOST_LIT else 0)
    marks = GraphMarks(chosen=done, lights=lights_of(graph, [done], graph.effects_now(done)))
    drawing = graph_svg(graph, env.variables, marks, whole=True)
    return done, drawing.replace("<svg ", _SVG, 1).encode()


def _acts(env: WorldEnv) -> str:
    space = env.action_space
    if isinstance(space, gym.spaces.Discrete):
        return f"one of {space.n} choices"
    return f"{space.shape[0]} numbers" if isinstance(space, gym.spaces.Box) else str(space)


def _range(space: Any) -> str:
    if space is None or callable(space):
        return ""
    low, high = np.asarray(space.low).ravel(), np.asarray(space.high).ravel()
    if not low.size:
        return ""
    if (low == low[0]).all() and (high == high[0]).all():
        return f"{low[0]:g} to {high[0]:g}"
    return f"({', '.join(f'{x:.3g}' for x in low)}) to ({', '.join(f'{x:.3g}' for x in high)})"
