"""`interverse export`: a trained policy as a folder to publish."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from interverse.cli.json_output import print_json
from interverse.reports.export import export as write_export
from interverse.rollouts.shipped import shipped_path


@dataclass(frozen=True, kw_only=True)
class Export:
    """Writes a folder ready for the Hugging Face Hub: card, weights, TorchScript, ONNX, video."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of a training run or of its policy, or a policy of the package."""
    out: Path | None = None
    """Where to write; by default a folder `export` in the run."""
    results: tuple[Path, ...] = ()
    """Folders of evaluations of this policy, for the card; by default the run's own."""
    onnx: bool = False
    """Insist on ONNX; without the flag it is written where the package onnx is installed."""
    video: bool = True
    """Play an episode and film it."""
    seed: int = 0
    """The seed of that episode."""
    trust: bool = False
    """Import the code of a world of one's own (MODULE:ID) that the policy names."""
    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""


def out_folder(config: Export) -> Path:
    """Returns where files go if no folder is given."""
    return config.run / "export"


def export(config: Export) -> Path:
    """Writes the folder and says what is in it."""
    given: dict[str, Any] = {item.name: getattr(config, item.name) for item in fields(config)}
    given["onnx"] = config.onnx or None
    given["run"] = Path(shipped_path(str(config.run)))
    del given["trust"]
    as_json, out = given.pop("json"), given.pop("out") or out_folder(config)
    with redirect_stdout(sys.stderr):  # a policy may print, and Torch does while it writes ONNX
        folder = write_export(given.pop("run"), out, **given)
    files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    if as_json:
        print_json({"folder": folder, "files": files})
    else:
        console = Console()
        for file in files:
            console.print(f"{file}  {file.stat().st_size:,} bytes", soft_wrap=True)
    return folder
