"""A trained policy as a folder to publish: card, weights, TorchScript, ONNX, scores and a video."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interverse.core.errors import InvalidValueError, install_line
from interverse.core.files.atomic import write_text
from interverse.core.files.json_text import read_json_object
from interverse.envs import make
from interverse.protocols.evaluate import RESULT_FILE
from interverse.reports.runs import is_of_policy, read_folder, run_scores
from interverse.results import Results, tables
from interverse.rollouts.policy_world import PolicyWorld, policy_world
from interverse.rollouts.saved import CARD
from interverse.worlds.own_code import check_trusted

CARD_FILE, VIDEO_FILE = "README.md", "replay.mp4"
SCRIPT_FILE, ONNX_FILE = "policy.pt", "policy.onnx"
_PICTURES = 250  # of a video, about: ten seconds


def export(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    results: Sequence[str | os.PathLike[str]] = (),
    onnx: bool | None = None,
    video: bool = True,
    seed: int = 0,
) -> Path:
    """Writes a folder that can be published as it is, on the Hugging Face Hub for instance.

    It holds a model card with the scores and their intervals, the policy (safetensors and JSON),
    TorchScript, ONNX where it is installed, the table of scores, and a video of one episode. The
    folder is a policy like any other: `evaluate`, `explain` and `view` take it.

    Args:
        run: the folder of a training run or of its policy.
        out: where to write; by default a folder `export` in the run.
        results: folders of evaluations of this policy; by default the largest one in the run, or
            else the scores of its last checkpoint.
        onnx: whether to write ONNX; None does where the package onnx is installed.
        video: whether to play an episode and film it.
        seed: of that episode.

    Returns:
        The folder.
    """
    known = policy_world(Path(run))
    if known.task is None or not (Path(known.policy) / CARD).is_file():
        raise InvalidValueError(
            f"{run} holds no policy that names its world",
            allowed="the folder of a run of `interverse train`, or of its policy",
        )
    check_trusted(Path(run), known.task, known.options)
    source = Path(known.policy)
    target = Path(run) / "export" if out is None else Path(out)
    parts = [read_folder(Path(folder)) for folder in results]
    for folder, part in zip(results, parts, strict=True):
        if not is_of_policy(part, source):
            raise InvalidValueError(
                f"{os.fspath(folder)} holds scores of another policy than {source}",
                fix=f"Evaluate this one: interverse evaluate {run} --out {run}/results",
            )
    scores = Results.concat(parts) if parts else run_scores(Path(run), source)
    from interverse.rollouts.exported import save_onnx, save_torchscript
    from interverse.rollouts.policy import load_policy  # loads Torch

    policy = load_policy(source)
    policy.save(target)
    save_torchscript(policy, target / SCRIPT_FILE)
    if onnx or (onnx is None and importlib.util.find_spec("onnx") is not None):
        save_onnx(policy, target / ONNX_FILE)
    if scores is not None:
        scores.to_parquet(target / RESULT_FILE)
    if video:
        from interverse.rollouts import rollout
        from interverse.rollouts.video import record_episode  # or the line naming imageio-ffmpeg

        env = make(str(known.task), **known.options)
        try:
            episode = rollout(env, known.policy, seed=seed)
        finally:
            env.close()
        every = -(-len(episode.actions) // _PICTURES)
        record_episode(episode, target / VIDEO_FILE, every=every)
    write_text(target / CARD_FILE, _card(known, target, scores, video=video))
    return target


def _card(known: PolicyWorld, folder: Path, scores: Results | None, *, video: bool) -> str:
    """Returns the model card: YAML front matter, then Markdown."""
    trained = read_json_object(folder / CARD)["trained"]
    name = f"{_algorithm(trained)}-{str(known.task).replace('/', '-')}"
    told: dict[str, Any] = {
        "library_name": "interverse",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["interverse", "reinforcement-learning", "causality", str(known.task)],
    }
    if scores is not None:
        told["model-index"] = [{"name": name, "results": _index(scores)}]
    front = "\n".join(f"{k}: {json.dumps(v)}" for k, v in told.items())
    options = ", ".join(f"`{n}={json.dumps(v)}`" for n, v in known.options.items())
    about = [
        f"A policy for the world `{known.task}` of interverse: worlds you can intervene on.",
        f"Trained with {_algorithm(trained)} for {trained.get('steps', 'unknown')} steps"
        f" (interverse {trained.get('version', 'unknown')}).",
        *([f"Options of the world: {options}."] if options else []),
    ]
    parts = [f"---\n{front}\n---", f"# {name}", "\n".join(about)]
    if video:
        parts.append(f'<video src="{VIDEO_FILE}" controls muted loop></video>')
    if scores is None:
        parts += ["## Scores", "This policy was not evaluated."]
    else:
        made = scores.provenance.get("command")
        parts += ["## Scores", str(tables.scores(scores).render("markdown"))]
        parts += [f"Made by: `{made}`"] if made else []
    parts += ["## Use", _use(folder, str(known.task))]
    parts += ["## Training", "```json\n" + json.dumps(trained, indent=1) + "\n```"]
    return "\n\n".join(parts) + "\n"


def _algorithm(trained: Mapping[str, Any]) -> str:
    config = trained.get("config")
    return str(config.get("algorithm", "ppo")) if isinstance(config, Mapping) else "policy"


def _index(scores: Results) -> list[dict[str, Any]]:
    """Returns the scores as the Hub reads them: one entry per protocol, a metric each."""
    last = scores.final()
    found = {metric: tables.estimates(last, metric) for metric in last.metrics}
    out = []
    for key in tables.groups(last):
        metrics = []
        for metric, rows in found.items():
            score = rows[key]
            if math.isnan(score.value):
                continue
            row: dict[str, Any] = {"type": metric, "name": metric, "value": round(score.value, 6)}
            if not math.isnan(score.low):  # the interval as the Hub keeps it
                row["args"] = {"interval_95": [round(score.low, 6), round(score.high, 6)]}
            metrics.append(row)
        _, task, protocol = key
        out.append(
            {
                "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
                "dataset": {"type": task, "name": f"{task} {protocol}", "config": protocol},
                "metrics": metrics,
            }
        )
    return out


def _use(folder: Path, task: str) -> str:
    text = f"""The folder is a policy that carries its world: id, options and observation layout.

With interverse installed, from its checkout or a wheel built there:

```shell
{install_line("torch")}
interverse evaluate PATH_OF_THIS_FOLDER --episodes 20
```

```python
import interverse as iv

results = iv.evaluate("PATH_OF_THIS_FOLDER", task="{task}")
```

Without interverse, `{SCRIPT_FILE}` takes observations (N, ...) and gives actions (N, ...):

```python
import torch

policy = torch.jit.load("{SCRIPT_FILE}")
```"""
    if (folder / ONNX_FILE).exists():
        text += f"\n\n`{ONNX_FILE}` does the same: input `observation`, output `action`."
    return text
