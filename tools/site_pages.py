"""Pages of the site that are made from the code: the gallery, a page a world, the flags of verbs.

MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import notebooks
import numpy as np
from mkdocs.structure.files import File, Files
from PIL import Image

from interverse.cli import VERBS, main
from interverse.envs import WorldEnv, make
from interverse.protocols import PROTOCOLS
from interverse.rollouts.saved import SHIPPED, trained_policy
from interverse.viewer.graph import GraphMarks, graph_svg, lights_of
from interverse.worlds import WORLDS

_ROOT = Path(__file__).resolve().parents[1]
_LIGHTS = "Lit up by `do {}` (orange): green changes at once, light green can follow later."
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" '
_MOST_LIT = 12  # a `do` that lights up everything shows nothing
_OPTIONS = {"chemistry/custom-v1": {"graph": "0->1->2->4,{0-2}->3"}}
_BOX = re.compile(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]+")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made, their pictures, and what pages link to outside docs/."""
    pages, pictures = gallery()
    pages["cli_reference.md"] = cli_reference()
    for path in sorted((_ROOT / "docs" / "tutorials").glob("*.ipynb")):
        pages[f"tutorials/{path.stem}.md"] = notebooks.markdown(path)
    for path in _outside():
        content = path.read_bytes()
        name = path.relative_to(_ROOT).as_posix()
        if path.suffix == ".md":
            content = content.replace(b"](docs/", b"](").replace(b"/docs/", b"/")
        files.append(File.generated(config, name, content=content))
    made: dict[str, str | bytes] = {**pages, **pictures}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Returns a page with links that leave docs/ led to their copies on the site."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
        markdown = markdown.replace("[all worlds](worlds.md)", "[gallery](gallery.md)")
    return markdown if "/" in page.file.src_uri else markdown.replace("](../", "](")


def _outside() -> Iterator[Path]:
    """Yields what pages link to outside docs/: the guide, the changelog, examples and results."""
    yield from (_ROOT / "CONTRIBUTING.md", _ROOT / "CHANGELOG.md")
    for folder, kinds in (("examples", (".py",)), ("results", (".md", ".json", ".png", ".svg"))):
        yield from (p for p in sorted((_ROOT / folder).rglob("*")) if p.suffix in kinds)


def gallery() -> tuple[dict[str, str], dict[str, bytes]]:
    """Returns the gallery and a page for every registered world, and their pictures, by file."""
    pages: dict[str, str] = {}
    pictures: dict[str, bytes] = {}
    tiles: list[str] = []
    asked = _questions()
    for family in asked:
        names = [name for name in WORLDS if name.partition("/")[0] == family]
        if not names:
            continue
        links = []
        for name in names:
            file = f"gallery/{name.replace('/', '-')}"
            pages[f"{file}.md"], shown = _world(name, file, asked[family])
            pictures |= shown
            links.append(f"[{name.partition('/')[2].removesuffix('-v1')}]({file}.md)")
        moving = f"images/moving_{family}.webp"
        still = moving if (_ROOT / "docs" / moving).exists() else f"{file}.png"
        tiles += [f"![{family}]({still})", f"**{family}**: {asked[family]}", " · ".join(links), ""]
    top = [
        f"# Gallery of {len(pages)} worlds",
        "",
        "Left, what happened; right, under one `do`.",
        "",
    ]
    pages["gallery.md"] = "\n".join([*top, '<div class="movies" markdown>', "", *tiles, "</div>"])
    return pages, pictures


def _questions() -> dict[str, str]:
    """Returns what each family asks: the first sentence of its section of the page of worlds."""
    text = (_ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\w+)\n\n(.*?[?.])(?: |\n)", text, re.M | re.S)
    return {name: " ".join(said.split()) for name, said in found}


def _world(name: str, file: str, asks: str) -> tuple[str, dict[str, bytes]]:
    """Returns a world's page and its pictures: the world, and its graph under a `do`."""
    env = make(name, render_mode="rgb_array", **_OPTIONS.get(name, {}))
    env.reset(seed=0)
    sink = io.BytesIO()
    Image.fromarray(env.render()).save(sink, "PNG")
    done, graph = _graph(env)
    picture = Path(file).name
    lines = ["---", "hide: [navigation]", "---", f"# {name}", "", asks, ""]
    lines += [f"![{name}]({picture}.png){{ width=420 }}", ""]
    lines += ["| | |", "|---|---|", *_facts(name, env), ""]
    lines += ["```python", "import interverse as iv", "", f'env = iv.make("{name}")']
    lines += ["observation, info = env.reset(seed=0)", "```", "", "## Variables", ""]
    lines += ["| name | kind | default | unit | space A | space B |", "|---|---|---|---|---|---|"]
    lines += _variables(env)
    lines += ["", "## Causal graph", "", _LIGHTS.format(done), ""]
    lines += [f"![{done}]({picture}.svg){{ .graph }}", ""]
    env.close()
    return "\n".join(lines), {f"{file}.png": sink.getvalue(), f"{file}.svg": graph}


def _facts(name: str, env: WorldEnv) -> Iterator[str]:
    """Yields the rows on observations, actions, steps, reward, protocols and shipped policies."""
    seen = env.observation_space
    parts = [f"`{part}`" for part in seen.spaces] if isinstance(seen, gym.spaces.Dict) else []
    yield f"| observation | {', '.join(parts) or f'`{seen.shape}`'} |"
    yield f"| action | {_acts(env)} |"
    yield f"| steps | {env.world.max_steps} |"
    yield f"| reward | {_reward(name.partition('/')[0])} |"
    if name in PROTOCOLS:
        yield f"| protocols | {', '.join(f'`{p.name}`' for p in PROTOCOLS.load(name))} |"
    card = f'"{name}"'
    shipped = [p for p in SHIPPED if card in (trained_policy(p) / "policy.json").read_text()]
    if shipped:
        yield f"| policies of the package | {'<br>'.join(map(_scored, shipped))} |"


def _reward(family: str) -> str:
    """Returns what the family's section of the page of worlds says of the reward."""
    text = (_ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
    section = re.split(rf"^## {family}$", text, maxsplit=1, flags=re.M)[1]
    (said,) = re.findall(r"The\sreward is (.*?)\.(?=\s)", section.partition("\n## ")[0], re.S)
    return " ".join(said.split())


def _scored(policy: str) -> str:
    """Returns a policy's name with its best and worst score, by protocol, where they are known."""
    card = json.loads((trained_policy(policy) / "policy.json").read_text())["trained"]
    scores = card.get("scores", {}).get("last_fractional_success", {})
    words, digits = "fraction of the goal", 2
    played = json.loads((_ROOT / "results" / "dmcr" / "shipped.json").read_text())["runs"]
    for run in (run for run in played if run["policy"] == policy):
        scores = {name: float(np.mean(of)) for name, of in run["returns"].items()}
        words, digits = "return", 0
    if not scores:
        return f"`{policy}`"
    ends = [pick(scores, key=scores.__getitem__) for pick in (max, min)]
    told = [f"{scores[end]:.{digits}f} in {end}" for end in ends]
    return f"`{policy}`: {words} {', '.join(told)}"


def _variables(env: WorldEnv) -> list[str]:
    """Returns a row for each variable; those that differ by a number alone share one."""
    rows: dict[tuple[str, ...], set[str]] = {}
    for variable in env.variables.values():
        name = re.sub(r"(?<=_)\d+", "{i}", variable.name)
        spaces = (_range(variable.space_a), _range(variable.space_b))
        default = "" if variable.default is None else _numbers(np.asarray(variable.default))
        rows.setdefault((name, variable.kind, variable.unit, *spaces), set()).add(default)
    shown = []
    for (name, kind, unit, a, b), defaults in rows.items():
        default = defaults.pop() if len(defaults) == 1 else "by number"
        shown.append(f"| `{name}` | {kind} | {default} | {unit} | {a} | {b} |")
    return shown


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
    return f"{_numbers(low)} to {_numbers(high)}"


def _numbers(values: Any) -> str:
    """Returns numbers as a reader would write them; equal ones once, long ones shortened."""
    flat = np.ravel(values)
    if flat.dtype.kind not in "biuf" or not flat.size:
        return ""
    if (flat == flat[0]).all():
        return f"{flat[0]:.4g}"
    comma = ",\N{NO-BREAK SPACE}" if flat.size <= 4 else ", "
    return f"({comma.join(f'{x:.3g}' for x in flat[:6])}{', ...' if flat.size > 6 else ''})"


def cli_reference() -> str:
    """Returns every verb's help, as its `--help` prints it."""
    lines = ["# Flags of every verb", ""]
    for verb in sorted(VERBS):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([verb, "--help"])
        told = "\n".join(_BOX.sub("", line).rstrip() for line in printed.getvalue().splitlines())
        lines += [f"## interverse {verb}", "", "```text", told.strip(), "```", ""]
    return "\n".join(lines)
