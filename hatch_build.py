"""Puts the native friction solver into the wheel, compiled for the MuJoCo that is installed.

Where that cannot be done, the wheel is pure Python and compiles the solver where it runs.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "py3-none-manylinux_2_17_x86_64"  # the solver asks for nothing newer than GLIBC 2.14
FOLDER = "interverse/sim/native"


class SolverHook(BuildHookInterface):
    """Compiles the solver, and tags the wheel for the machines that it runs on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the solver to the files of a wheel."""
        if version == "editable":  # a checkout compiles what is edited
            return
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            self.app.display_warning("The friction solver is compiled on Linux x86-64 alone.")
            return
        found = importlib.util.find_spec("mujoco")
        if found is None or found.origin is None:
            self.app.display_warning("Without MuJoCo's headers the wheel holds no friction solver.")
            return
        import mujoco  # the version of the headers, not of the metadata

        spec = importlib.util.spec_from_file_location("native", f"{self.root}/{FOLDER}/__init__.py")
        assert spec is not None
        assert spec.loader is not None
        native = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(native)
        name = native.file_name(mujoco.__version__)
        self.scratch = Path(tempfile.mkdtemp())
        try:
            native.compile_solver(Path(found.origin).parent, self.scratch / name)
        except (OSError, native.CompileError) as error:
            self.app.display_warning(f"The wheel holds no friction solver: {error}.")
            return
        build_data["force_include"][str(self.scratch / name)] = f"{FOLDER}/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = TAG

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was compiled."""
        if hasattr(self, "scratch"):
            shutil.rmtree(self.scratch, ignore_errors=True)
