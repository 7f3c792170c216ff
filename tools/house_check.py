"""Finds breaches of the house rules that no other tool knows, by reading the sources.

Usage: python tools/house_check.py [ROOT]; prints `path:line: rule: message`, exits 1 on any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

PACKAGE = "interverse"
VAGUE_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
SIMULATORS = {"mujoco", "mujoco_warp", "warp"}
# Low to high; names on one line do not see each other, but for the first line's. What stands above
# __init__ uses the library as its users do.
IMPORT_ORDER = (
    "_gl_backend _version",
    "core",
    "errors",
    "scm metrics",
    "art",
    "sim",
    "worlds",
    "envs",
    "actors",
    "rollouts",
    "data",
    "models",
    "agents",
    "results",
    "protocols",
    "scoring",
    "reports",
    "viewer",
    "fit",
    "benchmarks",
    "__init__",
    "bench",
    "cli",
    "__main__",
)
RANK = {name: rank for rank, line in enumerate(IMPORT_ORDER) for name in line.split()}
# What a world's scene is built in, also one that is only drawn: they never step a simulator.
SCENE_FILES = {"arena.py", "device_pictures.py", "elements.py", "fingers.py", "mjcf.py", "scene.py"}
# Lists of an MjSpec, and what XML trees are called: elements have names, so no code counts them.
SPEC_LISTS = {"bodies", "cameras", "geoms", "joints", "lights", "materials", "sites", "textures"}
SPEC_NAME = re.compile(r"(^|_)(spec|body|worldbody)$")
XML_NAME = re.compile(r"(^|_)(xml|mjcf|etree)(_|$)")
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root|home)/")
TARGET = re.compile(rf"{PACKAGE}(\.\w+)*:\w+")
MODULE_TEXT = re.compile(rf"{PACKAGE}(\.\w+)+(:\w+|\.)?")  # whole, or the start of one
TEXT_SUFFIXES = {"", ".cfg", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
CODE_SUFFIXES = {".html", ".ipynb", ".js", ".md", ".py", ".toml", ".txt"}
WORD = re.compile(r"[A-Za-z_]\w*")
IMPORTERS = {"__import__", "import_module"}
# Files that import what a table names, beside the lazy tables of packages.
LOADERS = {"core/registry.py", "models/table.py", "rollouts/witnesses.py", "sim/filament.py"}
# Openings that ask instead of naming the thing a module holds.
RIDDLES = {"how", "what", "where", "which", "who", "whether", "why"}
SKIPPED_FOLDERS = {"__pycache__", "build", "dist", "node_modules"}


class Finding(NamedTuple):
    """One breach, printed as editors and CI logs expect it."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


class Import(NamedTuple):
    """One imported dotted name and the line it stands on."""

    name: str
    line: int


@dataclass(frozen=True)
class Source:
    """One Python file of the package, parsed once."""

    root: Path
    path: Path

    @property
    def where(self) -> str:
        """Returns the path from the root, as it is printed."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def module(self) -> str:
        """Returns the dotted name: `interverse.scm` for `interverse/scm/__init__.py`."""
        parts = self.path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def layer(self) -> str:
        """Returns the folder or file just below the package that it belongs to."""
        return self.path.relative_to(self.root / PACKAGE).parts[0].removesuffix(".py")

    @cached_property
    def tree(self) -> ast.Module:
        """Returns the syntax tree."""
        return ast.parse(self.path.read_text(encoding="utf-8"), filename=self.where)

    @cached_property
    def imports(self) -> list[Import]:
        """Returns every name imported anywhere in the file; `from a import b` gives `a.b`."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [Import(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                origin = ".".join(filter(None, [self._parent(node.level), node.module]))
                found += [Import(f"{origin}.{alias.name}", node.lineno) for alias in node.names]
        return found

    @cached_property
    def attributes(self) -> list[Import]:
        """Returns attributes of imported names: `b.c.d` after `from a import b` gives `a.b.c.d`."""
        bound: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and not node.level:
                bound |= {n.asname or n.name: f"{node.module}.{n.name}" for n in node.names}
            elif isinstance(node, ast.Import):
                roots = {n.name.partition(".")[0] for n in node.names if not n.asname}
                bound |= {n.asname: n.name for n in node.names if n.asname}
                bound |= {root: root for root in roots}
        dotted = [
            (_dotted(n), n.lineno) for n in ast.walk(self.tree) if isinstance(n, ast.Attribute)
        ]
        return [
            Import(".".join([bound[names[0]], *names[1:]]), line)
            for names, line in dotted
            if names and names[0] in bound
        ]

    @cached_property
    def module_texts(self) -> list[Import]:
        """Returns strings that name a module of the package, such as `import_module` takes."""
        return [
            Import(node.value.partition(":")[0].rstrip("."), node.lineno)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and MODULE_TEXT.fullmatch(node.value)
        ]

    @cached_property
    def typing_lines(self) -> set[int]:
        """Returns the lines that only a type checker reads."""
        blocks = [n for n in self.tree.body if isinstance(n, ast.If)]
        typed = [n for n in blocks if ast.unparse(n.test) == "TYPE_CHECKING"]
        return {inner.lineno for block in typed for inner in block.body}

    def _parent(self, level: int) -> str:
        folders = self.path.relative_to(self.root).parts[:-1]
        return ".".join(folders[: len(folders) - level + 1]) if level else ""

    def finding(self, line: int, rule: str, message: str) -> Finding:
        """Returns a breach in this file."""
        return Finding(self.where, line, rule, message)


Rule: TypeAlias = Callable[[list[Source]], Iterator[Finding]]


def library(root: Path) -> list[Source]:
    """Returns every module of the package, sorted by path."""
    return [Source(root, path) for path in sorted((root / PACKAGE).rglob("*.py"))]


def vague_names(root: Path) -> Iterator[Finding]:
    """Rule 3: a file or folder of code is named after its idea."""
    for path in _files(root):
        where = path.relative_to(root)
        vague = VAGUE_NAMES.intersection([*where.parts[:-1], where.stem])
        if path.suffix == ".py" and vague:
            yield Finding(where.as_posix(), 1, "rule 3", f"name the idea, not {min(vague)!r}")


def machine_paths(root: Path) -> Iterator[Finding]:
    """A path of one machine never enters the project."""
    for path in _files(root):
        if path.suffix in TEXT_SUFFIXES:
            text = path.read_text(encoding="utf-8", errors="replace")
            for match in MACHINE_PATH.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                where = path.relative_to(root).as_posix()
                yield Finding(where, line, "paths", f"machine path {match.group()!r}")


def dead_names(root: Path) -> Iterator[Finding]:
    """What a module of the package defines is mentioned elsewhere: in code, tests, docs, tools."""
    texts = [p.read_text(encoding="utf-8") for p in _files(root) if p.suffix in CODE_SUFFIXES]
    words = Counter(word for text in texts for word in WORD.findall(text))
    everything = ((s, node, name) for s in library(root) for node, name in _defined(s.tree))
    defined = [found for found in everything if not found[2].startswith("__")]
    times = Counter(name for _, _, name in defined)
    for source, node, name in defined:
        if words[name] <= times[name]:
            yield source.finding(node.lineno, "dead", f"nothing mentions {name}: delete it")


def _defined(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yields the functions, classes and names that a module defines, with their statements."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node, node.name
        if isinstance(node, ast.Assign | ast.AnnAssign):
            stored = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            names = [n.id for n in stored if isinstance(n.ctx, ast.Store)]
            yield from ((node, name) for name in names)


def no_poking(sources: list[Source]) -> Iterator[Finding]:
    """Rule 13: only `sim` and the builders of scenes touch a simulator, and by name."""
    for source in sources:
        if source.layer not in ("sim", "bench") and source.path.name not in SCENE_FILES:
            for name, line in source.imports:
                if name.split(".")[0] in SIMULATORS:
                    yield source.finding(line, "rule 13", f"imports {name} outside sim and scenes")
        for node in ast.walk(source.tree):
            if _sets_option(node) and source.layer != "sim":
                text = ast.unparse(node)
                yield source.finding(node.lineno, "rule 13", f"{text}: declare a binding instead")
            elif _calls(node, "setattr") and source.layer != "sim":
                yield source.finding(node.lineno, "rule 13", "setattr: declare a binding instead")
            elif isinstance(node, ast.Subscript) and _is_positional(node):
                text = ast.unparse(node)
                yield source.finding(node.lineno, "rule 13", f"{text} is positional: use the name")


def _sets_option(node: ast.AST) -> TypeGuard[ast.Assign | ast.AugAssign]:
    """Whether a statement sets an option of a simulator's model, as `model.opt.density = 1`."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(".opt." in ast.unparse(target) for target in targets)


def import_order(sources: list[Source]) -> Iterator[Finding]:
    """Rule 22: imports point one way; every part of the package has its place in the order."""
    for source in sources:
        if source.layer not in RANK:
            message = f"{source.layer!r} has no place in IMPORT_ORDER of tools/house_check.py"
            yield source.finding(1, "rule 22", message)
            continue
        texts = [text for text in source.module_texts if text.name.split(".")[1] in RANK]
        named = [*source.imports, *texts]
        for name, line in dict.fromkeys(named):
            if name.split(".")[0] == PACKAGE and not _may_import(source.layer, name):
                yield source.finding(line, "rule 22", f"{source.layer} may not import {name}")


def readable_imports(sources: list[Source]) -> Iterator[Finding]:
    """Rule 22: a module imported by its name is named where it is imported, or by a table."""
    for source in sources:
        where = source.where.removeprefix(f"{PACKAGE}/")
        if source.path.name == "__init__.py" or where in LOADERS:
            continue
        for node in ast.walk(source.tree):
            called = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
            if called in IMPORTERS and isinstance(node, ast.Call) and node.args:
                name = node.args[0]
                start = _text(source, name.values[0] if isinstance(name, ast.JoinedStr) else name)
                if start in ("", f"{PACKAGE}."):
                    message = f"{ast.unparse(node)} hides what is imported: write its name"
                    yield source.finding(node.lineno, "rule 22", message)


def registry_tables(sources: list[Source]) -> Iterator[Finding]:
    """Rule 24: tables are literal and sorted, their targets exist, and no module is left out."""
    modules = {source.module: source for source in sources}
    reached = {name for source in sources for name, _ in source.imports}
    reached |= {name.rpartition(".")[0] for name in reached}
    folders: list[str] = []
    for source in sources:
        if source.path.name == "__init__.py":
            for table in _tables(source):
                folders.append(source.module)
                yield from _check_table(source, table, modules)
                reached |= {target.split(":")[0] for target in _targets(source, table)}
    for name, source in modules.items():
        inside = any(name.startswith(f"{folder}.") for folder in folders)
        if inside and source.path.name != "__init__.py" and name not in reached:
            yield source.finding(1, "rule 24", "in no table and imported by nothing: add its row")


def no_print(sources: list[Source]) -> Iterator[Finding]:
    """Rule 26: library code never prints; the command line does."""
    for source in sources:
        for node in ast.walk(source.tree):
            if source.layer != "cli" and _calls(node, "print"):
                yield source.finding(node.lineno, "rule 26", "print: log it, or return it")


def no_cycles(sources: list[Source]) -> Iterator[Finding]:
    """Imports never form a cycle, those inside functions included; each is reported once."""
    modules = {source.module: source for source in sources}
    edges = {name: set(_imported(source, modules)) for name, source in modules.items()}
    for component in _components(edges):
        if len(component) > 1:
            first = modules[min(component)]
            yield first.finding(1, "cycle", f"imports in a circle: {', '.join(sorted(component))}")


def worlds_are_closed(sources: list[Source]) -> Iterator[Finding]:
    """Code outside a world's folder imports no module of it, in whichever form.

    What a world shows is in its `__init__`. The benchmarks of speed measure the inside.
    """
    worlds = f"{PACKAGE}.worlds"
    folders = tuple(f"{s.module}." for s in sources if s.module.rpartition(".")[0] == worlds)
    hidden = {s.module for s in sources if s.module.startswith(folders)}
    for source in sources:
        if source.layer == "bench" or source.module == worlds:  # the table of worlds
            continue
        own = tuple(folder for folder in folders if f"{source.module}.".startswith(folder))
        named = [*source.imports, *source.attributes, *source.module_texts]
        for name, line in dict.fromkeys(named):
            if own and f"{name}.".startswith(own):
                continue  # a world's own inside
            if name in hidden or name.rpartition(".")[0] in hidden:
                message = f"imports {name}, the inside of a world"
                yield source.finding(line, "worlds", message)


def benchmarks_are_apart(sources: list[Source]) -> Iterator[Finding]:
    """The folder of one benchmark imports none of another: what they share stands above them."""
    above = f"{PACKAGE}.benchmarks"
    folders = {s.module for s in sources if s.module.rpartition(".")[0] == above}
    folders &= {s.module.rpartition(".")[0] for s in sources}
    for source in sources:
        own = {source.module, source.module.rpartition(".")[0]} & folders
        for name, line in source.imports if own else ():
            if {".".join(name.split(".")[:3])} & folders - own:
                yield source.finding(line, "benchmarks", f"imports {name} of another benchmark")


def plain_docstrings(sources: list[Source]) -> Iterator[Finding]:
    """A module's docstring starts by naming the thing."""
    for source in sources:
        words = (ast.get_docstring(source.tree) or "").split()
        if words and words[0].strip(":,").lower() in RIDDLES:
            yield source.finding(1, "words", f"the docstring starts with {words[0]!r}: name it")


FILE_RULES = (vague_names, machine_paths, dead_names)
SOURCE_RULES: tuple[Rule, ...] = (
    no_poking,
    import_order,
    readable_imports,
    registry_tables,
    no_print,
    no_cycles,
    worlds_are_closed,
    benchmarks_are_apart,
    plain_docstrings,
)


def check(root: Path) -> list[Finding]:
    """Returns every breach below `root`, sorted by place."""
    sources = library(root)
    found = [finding for rule in FILE_RULES for finding in rule(root)]
    found += [finding for rule in SOURCE_RULES for finding in rule(sources)]
    return sorted(found)


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.is_dir() and path.name not in SKIPPED_FOLDERS:
            if not path.name.startswith(".") or path.name == ".ci":
                yield from _files(path)
        elif path.is_file() and path.name != ".git":  # of a worktree: not part of the project
            yield path


def _imported(source: Source, modules: dict[str, Source]) -> Iterator[str]:
    """Yields the modules of the package that a module imports, at its top or in a function."""
    for name, line in source.imports:
        if line in source.typing_lines:
            continue
        found = name if name in modules else name.rpartition(".")[0]
        if found in modules and found != source.module and found != PACKAGE:
            yield found


def _components(edges: dict[str, set[str]]) -> Iterator[set[str]]:
    """Yields the strongly connected sets of a graph."""
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        _visit(start, edges, seen, order.append)
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            back[target].add(name)
    seen = set()
    for start in reversed(order):
        component: set[str] = set()
        _visit(start, back, seen, component.add)
        if component:
            yield component


def _visit(
    start: str, edges: dict[str, set[str]], seen: set[str], leave: Callable[[str], None]
) -> None:
    """Walks a graph in depth from a node and calls `leave` with new nodes, deepest first."""
    stack = [(start, iter(edges[start]))] if start not in seen else []
    seen.add(start)
    while stack:
        name, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            leave(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges[following])))


def _calls(node: ast.AST, function: str) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    )


def _dotted(node: ast.expr) -> list[str]:
    """Returns the names of `a.b.c`; empty where the first is no name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _is_positional(node: ast.Subscript) -> bool:
    index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
    if not (isinstance(index, ast.Constant) and isinstance(index.value, int)):
        return False
    owner, _, name = ast.unparse(node.value).rpartition(".")
    return bool(XML_NAME.search(name) or (name in SPEC_LISTS and SPEC_NAME.search(owner)))


def _may_import(layer: str, name: str) -> bool:
    parts = name.split(".")
    other = parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"
    return other == layer or RANK[other] < RANK[layer] or RANK[other] == RANK[layer] == 0


def _tables(source: Source) -> Iterator[ast.Dict | ast.DictComp]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Dict | ast.DictComp) and any(_targets(source, node)):
            yield node


def _targets(source: Source, table: ast.Dict | ast.DictComp) -> Iterator[str]:
    for value in table.values if isinstance(table, ast.Dict) else [table.value]:
        target = _text(
            source, value.args[0] if isinstance(value, ast.Call) and value.args else value
        )
        if TARGET.fullmatch(target):
            yield target


def _text(source: Source, node: ast.expr) -> str:
    """Returns the string a node is, or that the module-level constant it names is; else ''."""
    if isinstance(node, ast.Name):
        for statement in source.tree.body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == node.id:
                return _text(source, statement.value)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _check_table(
    source: Source, table: ast.Dict | ast.DictComp, modules: dict[str, Source]
) -> Iterator[Finding]:
    keys = [_text(source, key) if key else "" for key in getattr(table, "keys", [])]
    if isinstance(table, ast.DictComp) or not all(keys):
        yield source.finding(
            table.lineno, "rule 24", "the table is not literal: write its rows out"
        )
    elif keys != sorted(keys):
        first = next(a for a, b in zip(keys, sorted(keys), strict=True) if a != b)
        yield source.finding(table.lineno, "rule 24", f"the table is not sorted, from {first!r} on")
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        yield source.finding(table.lineno, "rule 24", f"{key!r} stands in the table twice")
    for target in sorted(set(_targets(source, table))):
        module, _, attribute = target.partition(":")
        if module not in modules:
            yield source.finding(table.lineno, "rule 24", f"{target}: there is no such module")
        elif attribute not in _top_names(modules[module].tree):
            yield source.finding(table.lineno, "rule 24", f"{target}: it defines no {attribute!r}")


def _top_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def main() -> int:
    """Prints every breach and returns the exit status."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    findings = check(root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
