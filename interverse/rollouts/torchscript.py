"""An exported policy as one file for machines without Python: TorchScript or ONNX."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.core.files.atomic import atomic
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.pixels import PicturePolicy

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error


class _Deployed(torch.nn.Module):
    """Observations in, actions out: the normalisation and the bounds are inside."""

    def __init__(self, policy: ExportedPolicy | PicturePolicy) -> None:
        super().__init__()
        self._policy = policy
        for name, tensor in policy.weights.items():
            self.register_buffer(name.replace(".", "_"), tensor)

    def forward(self, observations: Any) -> Any:
        if isinstance(self._policy, ExportedPolicy):
            observations = self._policy.prepare(observations)
        return self._policy.forward(observations)


def save_torchscript(policy: ExportedPolicy | PicturePolicy, path: str | os.PathLike[str]) -> Path:
    """Writes a policy as TorchScript; returns its path.

    It takes float32 (N, observation), or uint8 (N, C, S, S) of a pixel policy, and gives (N,
    action). Read it with `torch.jit.load` in Python or C++; interverse is not needed there.
    """
    target = _named(path, ".pt")
    with warnings.catch_warnings(), torch.no_grad(), atomic(target) as partial:
        _quiet()
        torch.jit.save(torch.jit.trace(_Deployed(policy), _example(policy)), str(partial))
    return target


def save_onnx(policy: ExportedPolicy | PicturePolicy, path: str | os.PathLike[str]) -> Path:
    """Writes a policy as ONNX, input `observation`, output `action`; returns its path.

    Raises `MissingExtraError` without the package onnx.
    """
    try:
        import onnx  # noqa: F401 - Torch needs it, and would say so in many lines
    except ImportError as error:
        raise missing_extra("onnx", "onnx") from error
    target = _named(path, ".onnx")
    with warnings.catch_warnings(), torch.no_grad(), atomic(target) as partial:
        _quiet()
        torch.onnx.export(
            _Deployed(policy).eval(),
            (_example(policy),),
            str(partial),
            input_names=["observation"],
            output_names=["action"],
            dynamic_axes={"observation": {0: "worlds"}, "action": {0: "worlds"}},
            dynamo=False,  # the other way needs a compiler's worth of packages
        )
    return target


def _named(path: str | os.PathLike[str], suffix: str) -> Path:
    target = Path(path)
    if target.suffix != suffix:
        raise InvalidValueError(
            explain(f"the policy is named {target.name!r}", allowed=f"*{suffix}")
        )
    return target


def _example(policy: ExportedPolicy | PicturePolicy) -> Any:
    """Returns observations of two worlds, as the policy sees them."""
    if isinstance(policy, PicturePolicy):
        return torch.zeros(2, *policy.card.observation, dtype=torch.uint8)
    return torch.zeros(2, policy.weights["obs.mean"].shape[0])


def _quiet() -> None:
    # Torch would like its own compiler used instead, which a robot without Python cannot run.
    warnings.simplefilter("ignore", DeprecationWarning)
    # The bounds shall be constants.
    warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
