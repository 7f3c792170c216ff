"""Checks of hyper-parameters that Stable-Baselines3 takes and then fails or stands still with."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from interverse.core.errors import check_number, check_whole
from interverse.core.type_checks import check_type

_MOST = 10**12
_LEAST = {  # of whole numbers
    "batch_size": 1,
    "buffer_size": 1,
    "gradient_steps": -1,  # as many as steps were made
    "learning_starts": 0,
    "n_epochs": 1,
    "n_steps": 1,
    "policy_delay": 1,
    "stats_window_size": 1,
    "target_update_interval": 1,
    "train_freq": 1,
}
_SHARES = ("gae_lambda", "gamma", "tau")
_ABOVE_ZERO = ("clip_range", "clip_range_vf", "learning_rate", "max_grad_norm", "target_kl")
_FROM_ZERO = ("ent_coef", "target_noise_clip", "target_policy_noise", "vf_coef")


def check_hyper(kind: Any, given: Mapping[str, Any]) -> None:
    """Raises for a hyper-parameter of another type than an SB3 class declares, or out of range."""
    declared = kind.__init__.__annotations__
    for name, value in given.items():
        check_type(name, value, declared.get(name, Any))
        if not isinstance(value, Real):  # a schedule, "auto", or nothing
            continue
        if name in _LEAST:
            check_whole(value, name, _MOST, least=_LEAST[name])
        elif name in _SHARES:
            check_number(value, name, most=1.0)
        elif name in (*_ABOVE_ZERO, *_FROM_ZERO):
            check_number(value, name, most=_MOST, above=name in _ABOVE_ZERO)
