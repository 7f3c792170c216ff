"""`interverse doctor`: what is installed, what draws, what is missing and what mends it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from typing import Literal

from rich.text import Text

from interverse import __version__
from interverse.cli.flags import AsJson, sheet, tell
from interverse.core.errors import InterverseError, install_line

Status = Literal["ok", "missing", "broken"]

# extra -> the modules that show it is there
EXTRAS: dict[str, tuple[str, ...]] = {
    "control": ("dm_control",),
    "discovery": ("causallearn",),
    "gpu": ("warp", "mujoco_warp"),
    "lance": ("lance",),
    "minari": ("minari",),
    "onnx": ("onnx",),
    "ray": ("ray",),
    "report": ("matplotlib", "jinja2", "pandas", "imageio"),
    "rl": ("stable_baselines3",),
    "rooms": ("transformers", "sklearn", "PIL"),
    "torch": ("torch", "safetensors", "tensorboard"),
    "view": ("viser", "pygame"),
    "wandb": ("wandb",),
}
_BASE = ("numpy", "gymnasium", "mujoco", "networkx", "scipy", "h5py", "pyarrow")
_PROGRAMS = ("chromium", "ffmpeg")  # their packages are called so too


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Checks this machine: versions, GL back end, GPU, extras; names the line that mends each."""

    json: AsJson = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis."""

    name: str
    status: Status
    found: str
    fix: str = ""


def doctor(config: Doctor) -> None:
    """Writes the diagnosis."""
    findings = examine()
    marks = {"ok": ("ok", "green"), "missing": ("--", "yellow"), "broken": ("!!", "red")}
    rows = [(Text(*marks[f.status]), f.name, f.found, f.fix) for f in findings]
    tell(config, [asdict(f) for f in findings], sheet(("", "part", "found", "to mend"), rows))


def examine() -> list[Finding]:
    """Returns what there is and what is missing, part by part."""
    system = f"Python {platform.python_version()} on {platform.system()}, {os.cpu_count()} cores"
    findings = [Finding("interverse", "ok", f"{__version__}; {system}")]
    findings += [Finding(name, "ok", importlib.metadata.version(name)) for name in _BASE]
    findings += [_gl(), _gpu(), _pictures(), _friction()]
    findings += [_extra(name, modules) for name, modules in EXTRAS.items()]
    for name in _PROGRAMS:
        if shutil.which(name) is None:
            fix = f"apt-get install {name}"
            findings.append(Finding(name, "missing", "not on the path", fix))
        else:
            findings.append(Finding(name, "ok", "on the path"))
    return findings


def _gl() -> Finding:
    from interverse.sim import gl

    try:
        return Finding("rendering", "ok", gl.backend())
    except InterverseError as error:
        return Finding("rendering", "broken", "no GL library draws", str(error))


def _gpu() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("GPU", "missing", "no torch to look with", install_line("torch"))
    import torch

    if not torch.cuda.is_available():
        return Finding("GPU", "missing", "none; every world runs on the CPU")
    return Finding("GPU", "ok", torch.cuda.get_device_name(0))


def _pictures() -> Finding:
    from interverse.art.pictures.folder import cache_folder
    from interverse.core.files.atomic import VARIABLE

    folder = cache_folder()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        return Finding("picture cache", "broken", f"cannot write {folder}", f"set {VARIABLE}")
    files = list(folder.glob("*/*.pic"))
    size = sum(file.stat().st_size for file in files) / 1e6
    return Finding("picture cache", "ok", f"{folder}: {len(files)} pictures, {size:.0f} MB")


def _friction() -> Finding:
    from interverse.sim import coulomb

    problem = coulomb.missing()
    if problem is None:
        return Finding("exact contacts", "ok", str(coulomb.library_path()))
    return Finding("exact contacts", "missing", 'TriFinger runs with contact="convex"', problem)


def _extra(name: str, modules: tuple[str, ...]) -> Finding:
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    if absent:
        return Finding(f"extra {name}", "missing", f"no {', '.join(absent)}", install_line(name))
    return Finding(f"extra {name}", "ok", ", ".join(modules))
