"""`interverse report`: from results to one HTML page; `export`: a policy as a folder to publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from interverse.cli.flags import AsJson, Trust, check_once, tell, values_of
from interverse.core.errors import InvalidValueError
from interverse.protocols.evaluate import EVALUATION_FILE
from interverse.protocols.verify import policy_of_run
from interverse.reports.export import export as write_export
from interverse.reports.runs import is_of_policy, read_folder
from interverse.results import Results
from interverse.results.estimates import Unit
from interverse.rollouts.saved import SHIPPED, shipped_path


@dataclass(frozen=True, kw_only=True)
class Report:
    """Makes one static HTML page with tables and plots from evaluations."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `interverse evaluate --out` or `train --out` wrote; several are compared."""
    out: Path | None = None
    """Where to put the page; by default a folder `report` in the first one."""
    metric: str | None = None
    """The score that is plotted; the first that the results hold by default."""
    unit: Unit | None = None
    """What intervals of scores are over: episode or seed; by default seeds where an experiment has
    several trainings, episodes of one policy."""
    episodes: bool = True
    """Play episodes again and show them: of several policies the one they differ in most, of one
    its best, its median and its worst."""
    costs: bool | None = None
    """Play the policies with one group of variables moved at a time, some 20 s each; by default
    where episodes are played. Without it the page says nothing of causes."""
    policy: tuple[str, ...] = ()
    """Policies to play them with, as EXPERIMENT=PATH, or EXPERIMENT=NAME for one of the package; by
    default those that the results name, where they are unchanged."""
    trust: Trust = False
    json: AsJson = False

    def usual_out(self) -> Path | None:
        """Returns where the page goes if no folder is given."""
        return self.folders[0] / "report" if self.folders else None


def report(config: Report) -> Path:
    """Writes the page and says where it is."""
    from interverse.reports.page import PARTS  # loads matplotlib, which export does without
    from interverse.reports.page import report as write_page

    if not config.folders:
        raise InvalidValueError("no folder was given", fix="Name an evaluation's folder")
    parts = [read_folder(folder) for folder in config.folders]
    policies: dict[str, Path] = {}
    for folder, part in zip(config.folders, parts, strict=True):
        # A training's folder holds its own policy; an evaluation may lie in a run's, moved with it.
        is_run = (folder / EVALUATION_FILE).exists()
        own = folder / "policy" if is_run else policy_of_run(folder)
        if own is not None and (is_run or is_of_policy(part, own)):
            policies |= dict.fromkeys(part.experiments, own)
    named: dict[str, Path] = {}
    for pair in config.policy:
        name, _, where = pair.partition("=")
        if not (name and where and Path(shipped_path(where)).exists()):
            allowed = f"EXPERIMENT=PATH, or as NAME one of {', '.join(SHIPPED)}"
            raise InvalidValueError(f"policy {pair!r}", allowed=allowed)
        check_once(name, named, config.policy)
        named[name] = Path(shipped_path(where))
    target = config.out or config.folders[0] / "report"
    shown: bool | Mapping[str, Path] = policies | named if config.episodes else False
    given = values_of(config, "folders", "out", "policy") | {"episodes": shown}
    page = write_page(Results.concat(parts), target, trust=config.trust, **given)
    made = {"page": page, **{name: sorted((target / name).iterdir()) for name in PARTS}}
    tell(config, made, str(page))
    return page


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
    trust: Trust = False
    json: AsJson = False

    def usual_out(self) -> Path:
        """Returns where files go if no folder is given."""
        return self.run / "export"


def export(config: Export) -> Path:
    """Writes the folder and says what is in it."""
    given = values_of(config, "run", "out") | {"onnx": config.onnx or None}
    run = Path(shipped_path(str(config.run)))
    folder = write_export(run, config.out or config.usual_out(), **given)
    files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    shown = [f"{file}  {file.stat().st_size:,} bytes" for file in files]
    tell(config, {"folder": folder, "files": files}, *shown)
    return folder
