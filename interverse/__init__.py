"""Interverse: worlds you can intervene on.

Importing registers the worlds with Gymnasium as lazy strings and does nothing else; every public
name below is loaded when first used.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

import gymnasium

from interverse import _gl_backend, errors  # noqa: F401 - the first before MuJoCo is imported
from interverse._version import __version__
from interverse.core.errors import InterventionError, InterverseError
from interverse.worlds import WORLDS as _WORLDS

if TYPE_CHECKING:
    from interverse.data import load_dataset
    from interverse.data.pairs.scoring import score_pairs
    from interverse.envs import Snapshot, make, make_vec, register
    from interverse.protocols.evaluate import evaluate
    from interverse.reports.attribute import attribute
    from interverse.reports.export import export
    from interverse.reports.page import report
    from interverse.results import Results
    from interverse.rollouts import Episode, rollout
    from interverse.rollouts.counterfactual import counterfactual
    from interverse.scm import CausalGraph, Do, Outcome, Replace, Shift, Variable
    from interverse.viewer.live import view

_LAZY = {
    "CausalGraph": "interverse.scm",
    "Do": "interverse.scm",
    "Episode": "interverse.rollouts",
    "Outcome": "interverse.scm",
    "Replace": "interverse.scm",
    "Shift": "interverse.scm",
    "Snapshot": "interverse.envs",
    "Variable": "interverse.scm",
    "Results": "interverse.results",
    "attribute": "interverse.reports.attribute",
    "counterfactual": "interverse.rollouts",
    "evaluate": "interverse.protocols.evaluate",
    "export": "interverse.reports.export",
    "report": "interverse.reports.page",
    "load_dataset": "interverse.data",
    "make": "interverse.envs",
    "make_vec": "interverse.envs",
    "register": "interverse.envs",
    "rollout": "interverse.rollouts",
    "score_pairs": "interverse.data.pairs.scoring",
    "view": "interverse.viewer.live",
}

__all__ = [
    "CausalGraph",
    "Do",
    "Episode",
    "InterventionError",
    "InterverseError",
    "Outcome",
    "Replace",
    "Results",
    "Shift",
    "Snapshot",
    "Variable",
    "__version__",
    "attribute",
    "counterfactual",
    "evaluate",
    "export",
    "load_dataset",
    "make",
    "make_vec",
    "register",
    "report",
    "rollout",
    "score_pairs",
    "view",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'interverse' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__


def _register() -> None:
    for world_id in _WORLDS:
        if world_id not in gymnasium.registry:
            gymnasium.register(
                id=world_id,
                entry_point="interverse.envs:WorldEnv",
                vector_entry_point="interverse.envs:WorldVectorEnv",
                kwargs={"world_id": world_id},
                disable_env_checker=True,
                order_enforce=False,
            )


logging.getLogger(__name__).addHandler(logging.NullHandler())
_register()
