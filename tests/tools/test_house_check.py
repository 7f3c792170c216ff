"""The house: each rule of its checker fires alone, steps stay short, own warnings are errors."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from interverse.worlds import WORLDS
from tools import house_check
from tools.trace_step import USES, main, trace_step

GOOD = {
    "interverse/__init__.py": "from interverse.worlds import WORLDS\n",
    "interverse/core/errors.py": "class WorldError(ValueError): ...\n",
    "interverse/core/registry.py": "from interverse.core.errors import WorldError\n",
    "interverse/cli/__init__.py": "from interverse import WORLDS\nprint(WORLDS)\n",
    "interverse/scm/__init__.py": "from .graph import Graph\n",
    "interverse/scm/graph.py": "from interverse.core import errors\nclass Graph: ...\n",
    "interverse/sim/engine.py": "import mujoco\n",
    "interverse/worlds/__init__.py": (
        'PUSH = "interverse.worlds.push.world:Push"\n'
        'WORLDS = Registry("world", {\n'
        '    "pull-v1": Entry("interverse.worlds.pull:PULL", {"graph": "chain"}),\n'
        '    "push-v1": Entry(PUSH),\n'
        "})\n"
    ),
    "interverse/worlds/pull.py": "PULL: int = 1\n",
    "interverse/worlds/push/__init__.py": "",
    "interverse/worlds/push/scene.py": "import mujoco\n",
    "interverse/worlds/push/world.py": (
        "from interverse.worlds.push.scene import mujoco\n"
        "class Push:\n"
        "    def build(self, spec, xml_text):\n"
        '        object.__setattr__(self, "n", 1)\n'
        '        return spec.body("block"), spec.bodies["block"], xml_text["a"], self.geoms[0]\n'
    ),
    "interverse/envs/gym.py": "from interverse.worlds import WORLDS\nclass Env: ...\n",
    "interverse/benchmarks/one/__init__.py": "",
    "interverse/benchmarks/one/rows.py": "from interverse.benchmarks import clock\n",
    "interverse/benchmarks/two/__init__.py": "",
    "interverse/benchmarks/two/plain.py": "",
    "README.md": "See https://example.org/home/page and shared/work/notes.\n",
    "docs/names.md": "Mentioned, so not dead: Env, Graph, MORE, A, Forgotten, PUL, PULL, f.\n",
}


def _tree(root: Path, **changes: str) -> Path:
    for name, text in {**GOOD, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def _table(rows: str) -> str:
    return GOOD["interverse/worlds/__init__.py"] + f"MORE = {rows}\n"


PULL = '"interverse.worlds.pull:PULL"'
BAD = [
    # rule, file, its text, what the message says
    ("rule 3", "interverse/scm/utils.py", "", "'utils'"),
    ("rule 3", "tests/helpers/trees.py", "", "'helpers'"),
    ("rule 13", "interverse/worlds/pull.py", "PULL = 1\nsetattr(PULL, 'mass', 2)\n", "setattr"),
    ("rule 13", "interverse/worlds/pull.py", "import mujoco\nPULL = 1\n", "imports mujoco"),
    ("rule 13", "interverse/envs/gym.py", "import mujoco.batch\nEnv = 1\n", "imports mujoco.batch"),
    ("rule 13", "interverse/envs/gym.py", "from mujoco_warp import a as Env\n", "mujoco_warp.a"),
    ("rule 13", "interverse/worlds/pull.py", "PULL = xml[7][1]\n", "xml[7] is positional"),
    ("rule 13", "interverse/sim/engine.py", "def f(spec): return spec.geoms[-1]\n", "geoms[-1]"),
    (
        "rule 22",
        "interverse/scm/graph.py",
        "from interverse.worlds import WORLDS as Graph\n",
        "scm",
    ),
    ("rule 22", "interverse/scm/graph.py", "from ..worlds import WORLDS as Graph\n", "scm may not"),
    ("rule 22", "interverse/scm/graph.py", "def Graph():\n    import interverse.envs.gym\n", "gym"),
    ("rule 22", "interverse/scm/graph.py", "from interverse import make as Graph\n", "make"),
    (
        "rule 22",
        "interverse/metrics/iqm.py",
        "from interverse.scm import graph\n",
        "metrics may not",
    ),
    ("rule 22", "interverse/scm/__init__.py", "import interverse.cli\n", "scm may not import"),
    ("rule 22", "interverse/novelty/thing.py", "", "'novelty' has no place"),
    ("rule 24", "interverse/worlds/__init__.py", _table(f'{{"b": {PULL}, "a": {PULL}}}'), "sorted"),
    ("rule 24", "interverse/worlds/__init__.py", _table(f'{{"a": {PULL}, "a": {PULL}}}'), "twice"),
    ("rule 24", "interverse/worlds/__init__.py", _table(f'{{f"a-{{1}}": {PULL}}}'), "not literal"),
    ("rule 24", "interverse/worlds/__init__.py", _table(f'{{**x, "a": {PULL}}}'), "not literal"),
    ("rule 24", "interverse/worlds/__init__.py", _table(f"{{k: {PULL} for k in x}}"), "literal"),
    (
        "rule 24",
        "interverse/worlds/__init__.py",
        _table('{"a": "interverse.worlds.gone:Gone"}'),
        "gone:Gone: there is no such module",
    ),
    ("rule 24", "interverse/worlds/pull.py", "PUL = 1\n", "it defines no 'PULL'"),
    ("rule 24", "interverse/worlds/forgotten.py", "class Forgotten: ...\n", "add its row"),
    ("rule 24", "interverse/worlds/push/forgotten.py", "", "imported by nothing"),
    ("rule 26", "interverse/envs/gym.py", "class Env: ...\nprint(1)\n", "print"),
    *(
        ("rule 22", "interverse/scm/graph.py", f"Graph = {call}\n", "hides what is imported")
        for call in (
            "importlib.import_module(name)",
            'import_module(f"interverse.{name}")',
            'import_module("inter" + "verse.envs")',
            "__import__(name)",
        )
    ),
    *(
        ("rule 22", "interverse/scm/graph.py", f"Graph = {text}\n", "scm may not import")
        for text in ('import_module(f"interverse.envs.{name}")', 'modules["interverse.envs." + x]')
    ),
    ("rule 22", "interverse/scm/graph.py", 'Graph = load("interverse.envs.gym")\n', "gym"),
    ("cycle", "interverse/scm/graph.py", "import interverse.scm\nclass Graph: ...\n", "circle"),
    *(
        ("worlds", "interverse/envs/gym.py", f"{line}\nclass Env: ...\n", "inside of a world")
        for line in (
            "from interverse.worlds.push.world import Push as Shown",
            "from interverse.worlds.push import world",
            "import interverse.worlds.push.world",
            "from interverse.worlds import push\npush.world.Push",
            "from ..worlds.push import world",
            'import_module("interverse.worlds.push.world")',
            "import interverse.worlds\ninterverse.worlds.push.world.Push",
        )
    ),
    (
        "worlds",
        "interverse/worlds/pull.py",
        "from interverse.worlds.push import world\nPULL = 1\n",
        "inside of a world",
    ),
    ("rule 13", "interverse/worlds/pull.py", "PULL.opt.density = 3\nPULL = 1\n", "a binding"),
    ("dead", "interverse/envs/gym.py", "class Env: ...\ndef _alone(): ...\n", "mentions _alone"),
    ("dead", "interverse/envs/gym.py", "class Env: ...\nUNUSED = 1\n", "mentions UNUSED"),
    (
        "benchmarks",
        "interverse/benchmarks/two/run.py",
        "from interverse.benchmarks.one import rows\n",
        "of another benchmark",
    ),
    ("words", "interverse/envs/gym.py", '"""What it is."""\nclass Env: ...\n', "name it"),
    ("paths", "README.md", "one\n`" + "/home" + "/me/x`\n", "machine path"),
    ("paths", ".ci/run", "cd " + "/work" + "/main\n", "machine path"),
    ("paths", "tests/data.json", '{"at": "' + "/root" + '/x"}', "machine path"),
]


def test_a_good_tree_passes(tmp_path: Path) -> None:
    assert house_check.check(_tree(tmp_path)) == []


@pytest.mark.parametrize(("rule", "file", "text", "message"), BAD)
def test_each_rule_fires_alone(
    tmp_path: Path, rule: str, file: str, text: str, message: str
) -> None:
    findings = house_check.check(_tree(tmp_path, **{file: text}))
    assert {finding.rule for finding in findings} == {rule}
    assert message in " ".join(finding.message for finding in findings)


def test_findings_name_the_line() -> None:
    finding = house_check.Finding("interverse/a.py", 3, "rule 26", "print: log it, or return it")
    assert str(finding) == "interverse/a.py:3: rule 26: print: log it, or return it"


def test_the_line_of_a_finding_is_where_it_stands(tmp_path: Path) -> None:
    tree = _tree(tmp_path, **{"interverse/envs/gym.py": "class Env: ...\n\nprint(1)\n"})
    assert [finding.line for finding in house_check.check(tree)] == [3]


def test_the_virtual_environment_is_not_read(tmp_path: Path) -> None:
    tree = _tree(tmp_path, **{".venv/lib/utils.py": "'" + "/home" + "/me'"})
    assert house_check.check(tree) == []


@pytest.mark.parametrize(("change", "status"), [({}, 0), ({"interverse/scm/misc.py": ""}, 1)])
def test_the_exit_status_tells(tmp_path: Path, change: dict[str, str], status: int) -> None:
    tree = _tree(tmp_path, **change)
    command = [sys.executable, house_check.__file__, str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, bool(done.stdout)) == (status, bool(status))
    assert done.stderr == ""


TRIFINGER = [name for name in WORLDS if name.startswith("trifinger/")]


@pytest.mark.parametrize("world_id", [*TRIFINGER, "tutorial/slider-v1"])
def test_a_step_with_default_options_executes_few_files_and_lines(world_id):
    files, lines = (12, 300) if world_id in TRIFINGER else (9, 155)
    trace = trace_step(world_id)
    assert len(trace.files) <= files, sorted(trace.files)
    assert len(trace.lines) <= lines, trace.files.most_common()


@pytest.mark.parametrize(
    ("world_id", "use", "files", "lines"),
    [
        ("trifinger/pushing-v1", "do", 13, 320),
        ("trifinger/pushing-v1", "make", 27, 515),
        ("trifinger/pushing-v1", "reset", 13, 265),
        ("trifinger/pushing-v1", "update", 14, 340),
        ("tutorial/slider-v1", "do", 12, 265),
        ("tutorial/slider-v1", "evaluate", 38, 1450),
    ],
)
def test_a_use_executes_no_more_files_and_lines_than_it_did(world_id, use, files, lines):
    found = USES[use](world_id)
    assert len(found.files) <= files, sorted(found.files)
    assert len(found.lines) <= lines, found.files.most_common()


def test_it_prints_a_line_for_each_id(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["trace_step", "tutorial/slider-v1", "--files"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert printed.startswith("tutorial/slider-v1 step: ")
    assert "worlds/tutorial/world.py" in printed


CODE = """
import warnings
import numpy as np

def warn():
    warnings.warn("spoken by the module", UserWarning)

def divide():
    return np.ones(1) / np.zeros(1)
"""


def _module(name: str) -> dict[str, Callable[[], object]]:
    namespace: dict[str, Callable[[], object]] = {"__name__": name}  # type: ignore[dict-item]
    exec(compile(CODE, f"{name}.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", ["interverse", "interverse.scm", "interverse.worlds.chemistry"])
def test_a_warning_in_our_module_is_an_error(name: str) -> None:
    module = _module(name)
    with pytest.raises(UserWarning, match="spoken by the module"):
        module["warn"]()
    with pytest.raises(RuntimeWarning, match="divide by zero"):
        module["divide"]()


@pytest.mark.parametrize("name", ["interversed", "numpy.interverse", "elsewhere"])
def test_a_warning_elsewhere_stays_a_warning(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        _module(name)["warn"]()
    assert [str(warning.message) for warning in caught] == ["spoken by the module"]
