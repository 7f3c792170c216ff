"""dm_control made to work with the MuJoCo that is installed: the only file that imports it first.

dm_control 1.0.50 lists array fields of MuJoCo's structs in a table and looks every one of them up.
Nine of them (seven of the model, two of the data, all of flexible bodies) are gone in MuJoCo 4, and
the suite uses none of them; they are struck from the table before anything reads it.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from interverse.core.errors import RenderError, missing_extra
from interverse.sim import gl
from interverse.sim.single import struct_fields

# dm_control picks its GL library when it is imported and asks for a display unless told; ours is
# found first, so that both draw with the same one. Without any, state observations still work.
with contextlib.suppress(RenderError):
    gl.backend()

try:
    from dm_control.mujoco.wrapper.mjbindings import sizes
except ImportError as error:
    raise missing_extra("dm_control", "control") from error

for _struct in ("mjmodel", "mjdata"):
    _table = sizes.array_sizes[_struct]
    for _name in sorted(_table.keys() - struct_fields(_struct)):
        del _table[_name]

from dm_control import suite  # noqa: E402 - after the guard
from dm_control.mujoco import wrapper  # noqa: E402
from dm_control.mujoco.engine import NamedIndexStructs  # noqa: E402
from dm_control.mujoco.index import FieldIndexer  # noqa: E402
from dm_control.rl.control import PhysicsError  # noqa: E402
from dm_control.utils import rewards  # noqa: E402

__all__ = [
    "FieldIndexer",
    "NamedIndexStructs",
    "PhysicsError",
    "quiet",
    "rewards",
    "suite",
    "wrap_model",
]


def wrap_model(model: Any) -> Any:
    """Returns dm_control's form of a MuJoCo model."""
    return wrapper.MjModel(model)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Holds back MuJoCo's note that an attribute of the suite's own cheetah is out of date."""
    log = logging.getLogger("absl")
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*settotalmass.*")
            yield
    finally:
        log.disabled = before
