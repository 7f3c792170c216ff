"""interverse: worlds you can intervene on.

Importing registers the worlds with Gymnasium as lazy strings and does nothing else; every public
name below is loaded when first used.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import gymnasium

from interverse import _gl_backend, errors  # noqa: F401 - the first before MuJoCo is imported
from interverse._version import __version__
from interverse.core.errors import InterventionError, InterverseError
from interverse.core.registry import lazy_names as _lazy_names
from interverse.worlds import WORLDS as _WORLDS

if TYPE_CHECKING:
    from interverse.data import load_dataset
    from interverse.data.pairs.scoring import score_pairs
    from interverse.envs import Snapshot
    from interverse.envs.make import make, make_vec, register
    from interverse.protocols.evaluate import evaluate
    from interverse.reports.attribute import attribute
    from interverse.reports.export import export
    from interverse.reports.page import report
    from interverse.results import Results
    from interverse.rollouts import Episode, rollout
    from interverse.rollouts.counterfactual import counterfactual
    from interverse.scm import CausalGraph, Do, Outcome, Replace, Shift, Variable
    from interverse.scoring.world_model import score_world_model
    from interverse.viewer.server import view

_LAZY = {
    "CausalGraph": "scm",
    "Do": "scm",
    "Episode": "rollouts",
    "Outcome": "scm",
    "Replace": "scm",
    "Shift": "scm",
    "Snapshot": "envs",
    "Variable": "scm",
    "Results": "results",
    "attribute": "reports.attribute",
    "counterfactual": "rollouts.counterfactual",
    "evaluate": "protocols.evaluate",
    "export": "reports.export",
    "report": "reports.page",
    "load_dataset": "data",
    "make": "envs",
    "make_vec": "envs",
    "register": "envs",
    "rollout": "rollouts",
    "score_pairs": "data.pairs.scoring",
    "score_world_model": "scoring.world_model",
    "view": "viewer.server",
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
    "score_world_model",
    "view",
]

__getattr__ = _lazy_names(__name__, _LAZY)


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
