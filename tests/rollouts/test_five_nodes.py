"""Nodes unlike the process that asks: each plays the same bytes, or is refused by name."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest

import interverse as iv

pytestmark = [pytest.mark.ray, pytest.mark.slow]
RESULTS = "results.parquet"
SETTINGS = {
    "task": "trifinger/pushing-v1",
    "protocols": "P0,P5",
    "episodes": 3,
    "max_steps": 12,
}
_ASKS = f"""
import sys, interverse as iv
try:
    iv.evaluate("random", out=sys.argv[1], workers=2, cluster=sys.argv[2], **{SETTINGS})
except iv.InterverseError as error:
    sys.exit(f"refused: {{error}}")
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    out = tmp_path_factory.mktemp("here")
    iv.evaluate("random", out=out, **SETTINGS)
    return (out / RESULTS).read_bytes()


def _no_compiler(folder, root):
    return {"CC": "no-such-compiler", "INTERVERSE_CACHE": str(folder / "cache")}


def _other_threads(folder, root):
    return {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3"}


def _other_mujoco(folder, root):
    told = folder / "mujoco-3.9.0.dist-info" / "METADATA"
    told.parent.mkdir()
    told.write_text("Metadata-Version: 2.1\nName: mujoco\nVersion: 3.9.0\n")
    return {"PYTHONPATH": f"{folder}:{root}"}


def _edited_file(folder, root):
    shutil.copytree(root / "interverse", folder / "interverse")
    shutil.copytree(root / "tests", folder / "tests")
    with (folder / "interverse" / "worlds" / "trifinger" / "mjcf.py").open("a") as file:
        file.write("# edited\n")
    return {"PYTHONPATH": str(folder)}


def _other_solver(folder, root):
    """Another compiler, as far as the binary can tell."""
    compiler = folder / "compiler"
    compiler.write_text('#!/bin/sh\nexec cc -O1 "$@" -O1\n')
    compiler.chmod(0o755)
    return {"CC": str(compiler), "INTERVERSE_CACHE": str(folder / "cache")}


@pytest.mark.parametrize(
    ("differs", "refused"),
    [
        (_no_compiler, "friction solver missing .*no C compiler"),
        (_other_threads, None),
        (_other_mujoco, f"mujoco 3.9.0 instead of {version('mujoco')}"),
        (_edited_file, r"interverse's files \w+ instead of \w+"),
        (_other_solver, r"friction solver \w+ instead of \w+"),
    ],
)
def test_a_node_that_differs_is_equal_or_refused(differs, refused, here, tmp_path, repository):
    from ray.cluster_utils import Cluster

    node = tmp_path / "node"
    node.mkdir()
    before = dict(os.environ)
    os.environ |= {"PYTHONPATH": str(repository), "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= differs(node, repository)
    try:
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
        )
    finally:
        os.environ.clear()
        os.environ |= before
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASKS, str(tmp_path / "out"), cluster.address],
            env={**before, "PYTHONPATH": str(repository)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        cluster.shutdown()
    if refused is None:
        assert asked.returncode == 0, asked.stderr
        assert (tmp_path / "out" / RESULTS).read_bytes() == here
    else:
        said = asked.stderr.splitlines()[-1]
        assert asked.returncode == 1
        pattern = rf"refused: node \S+ of the cluster has .*{refused}.* on every node"
        assert re.search(pattern, said), said
        assert not (tmp_path / "out" / RESULTS).exists()
