"""Devices of MuJoCo Warp: finding one, keeping it quiet, what to say when there is none."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from interverse.core.errors import InvalidValueError, missing_extra

__all__ = ["find_device", "load_warp", "quiet", "wp_to_torch"]


@functools.cache
def load_warp() -> tuple[Any, Any]:
    """Returns the modules `warp` and `mujoco_warp`; Warp prints nothing from then on."""
    try:
        warp = importlib.import_module("warp")
        warp.config.log_level = logging.ERROR
        with quiet(), _no_errors_shown():
            warp.init()  # it writes to standard error itself where there is no CUDA driver
            return warp, importlib.import_module("mujoco_warp")
    except ImportError as error:
        raise missing_extra("mujoco-warp", "gpu") from error


def find_device(device: str) -> Any:
    """Returns Warp's device for ours: "cuda", "cuda:1", or "warp" for Warp on the CPU."""
    warp, _ = load_warp()
    if device == "warp":
        return warp.get_device("cpu")
    if not warp.is_cuda_available():
        raise InvalidValueError(
            f"device is {device!r}, but there is no CUDA device", allowed="cpu, torch, warp"
        )
    known = [f"cuda:{i}" for i in range(warp.get_cuda_device_count())]
    name = "cuda:0" if device == "cuda" else device
    if name not in known:
        raise InvalidValueError(f"device is {device!r}", allowed=", ".join(known))
    return warp.get_device(name)


def wp_to_torch(array: Any) -> Any:
    """Returns a Torch tensor that shares a Warp array's memory."""
    return load_warp()[0].to_torch(array, requires_grad=False)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps warnings of Warp's packages from users: what matters raises an error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _no_errors_shown() -> Iterator[None]:
    """Sends what native code writes to standard error nowhere."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
