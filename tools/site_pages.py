"""Pages of the site that are made from the code: the gallery of all worlds, with pictures.

MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import notebooks
import numpy as np
from mkdocs.structure.files import File, Files
from PIL import Image

from interverse.envs import WorldEnv, make
from interverse.protocols import PROTOCOLS
from interverse.worlds import WORLDS

_ROOT = Path(__file__).resolve().parents[1]
# Worlds that differ in numbers alone share a graph; drawing the largest helps nobody.
_MOST_EDGES = 40
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
    return markdown if page.file.src_uri.startswith("results/") else markdown.replace("](../", "](")


def _outside() -> Iterator[Path]:
    """Yields what pages link to outside docs/: the guide, the changelog, examples and results."""
    yield from (_ROOT / "CONTRIBUTING.md", _ROOT / "CHANGELOG.md")
    for folder, kinds in (("examples", (".py",)), ("results", (".md", ".json", ".png", ".svg"))):
        yield from (p for p in sorted((_ROOT / folder).rglob("*")) if p.suffix in kinds)


def gallery() -> tuple[str, dict[str, bytes]]:
    """Returns a page with every registered world, and the pictures it shows by file name."""
    lines = [
        "# Gallery",
        "",
        f"All {len(WORLDS)} registered worlds, printed from the registry.",
        "",
    ]
    pictures: dict[str, bytes] = {}
    family = ""
    for name in WORLDS:
        if name.partition("/")[0] != family:
            family = name.partition("/")[0]
            lines += [f"## {family}", ""]
        env = make(name, render_mode="rgb_array", **_OPTIONS.get(name, {}))
        env.reset(seed=0)
        file = f"gallery/{name.replace('/', '-')}.png"
        pictures[file] = _png(env.render())
        lines += _world(name, env, file)
        env.close()
    return "\n".join(lines), pictures


def _png(frame: Any) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(frame).save(sink, "PNG")
    return sink.getvalue()


def _world(name: str, env: WorldEnv, picture: str) -> list[str]:
    about = (inspect.getdoc(type(env.world)) or "").partition("\n")[0]
    protocols = [p.name for p in PROTOCOLS.load(name)] if name in PROTOCOLS else []
    lines = [f"### {name}", "", f"![{name}]({picture}){{ width=320 }}", ""]
    lines += [f"{about} {env.world.max_steps} steps.", ""]
    if protocols:
        lines += [f"Protocols: {', '.join(f'`{p}`' for p in protocols)}.", ""]
    lines += ['??? note "Variables"', "", "    | name | kind | unit | space A | space B |"]
    lines += ["    |---|---|---|---|---|"]
    for variable in env.variables.values():
        a, b = _range(variable.space_a), _range(variable.space_b)
        lines.append(f"    | `{variable.name}` | {variable.kind} | {variable.unit} | {a} | {b} |")
    lines.append("")
    if env.graph.number_of_edges() <= _MOST_EDGES:
        mermaid = [f"    {line}" for line in env.graph.to_mermaid().splitlines()]
        lines += ['??? note "Causal graph"', "", "    ```mermaid", *mermaid, "    ```", ""]
    return lines


def _range(space: Any) -> str:
    if space is None or callable(space):
        return ""
    low, high = np.asarray(space.low).ravel(), np.asarray(space.high).ravel()
    if not low.size:
        return ""
    if (low == low[0]).all() and (high == high[0]).all():
        return f"{low[0]:g} to {high[0]:g}"
    return f"({', '.join(f'{x:.3g}' for x in low)}) to ({', '.join(f'{x:.3g}' for x in high)})"
