"""An exported policy as one TorchScript file, for robots that run LibTorch without Python."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.rollouts.exported import ExportedPolicy

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error


class _Deployed(torch.nn.Module):
    """Observations in, actions out: the normalisation and the bounds are inside."""

    def __init__(self, policy: ExportedPolicy) -> None:
        super().__init__()
        self._policy = policy
        for name, tensor in policy.weights.items():
            self.register_buffer(name.replace(".", "_"), tensor)

    def forward(self, observations: Any) -> Any:
        weights = self._policy.weights
        return self._policy.forward((observations - weights["obs.mean"]) / weights["obs.std"])


def save_torchscript(policy: ExportedPolicy, path: str | os.PathLike[str]) -> Path:
    """Writes a policy as TorchScript: float32 (N, observation) to (N, action); returns its path.

    Read it with `torch.jit.load` in Python or C++; interverse is not needed there.
    """
    target = Path(path)
    if target.suffix != ".pt":
        raise InvalidValueError(explain(f"the policy is named {target.name!r}", allowed="*.pt"))
    target.parent.mkdir(parents=True, exist_ok=True)
    width = policy.weights["obs.mean"].shape[0]
    with warnings.catch_warnings(), torch.no_grad():
        # Torch would like its own compiler used instead, which a robot without Python cannot run.
        warnings.simplefilter("ignore", DeprecationWarning)
        # The bounds shall be constants.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        traced = torch.jit.trace(_Deployed(policy), torch.zeros(2, width))
        torch.jit.save(traced, str(target))
    return target
