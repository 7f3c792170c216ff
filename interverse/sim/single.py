"""One MuJoCo world that another library holds (dm_control): constants, moments, struct fields."""

from __future__ import annotations

import operator
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

_SIGNATURE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_STRUCTS = {"mjdata": mujoco.MjData, "mjmodel": mujoco.MjModel}


def struct_fields(struct: str) -> set[str]:
    """Returns the names that MuJoCo's "mjmodel" or "mjdata" has in the installed version."""
    return set(dir(_STRUCTS[struct]))


def derive_constants(model: Any, scratch: Any) -> None:
    """Recomputes what follows from edited masses, sizes, cameras and lights; `scratch` is used."""
    mujoco.mj_setConst(model, scratch)


def put_field(model: Any, name: str, values: NDArray[Any]) -> None:
    """Writes a whole field of a model, or of a part of it ("opt.viscosity")."""
    part, _, last = name.rpartition(".")
    owner = operator.attrgetter(part)(model) if part else model
    field = getattr(owner, last)
    if isinstance(field, np.ndarray):
        np.copyto(field, values)
    else:
        setattr(owner, last, values.item())


def scratch_data(model: Any) -> Any:
    """Returns data to derive constants in."""
    return mujoco.MjData(model)


def settle(model: Any, data: Any) -> None:
    """Brings places, velocities and their sensors up to date with an edited state or model."""
    mujoco.mj_step1(model, data)


def place_cameras(model: Any, data: Any) -> None:
    """Brings cameras and lights up to date with an edited model."""
    mujoco.mj_camlight(model, data)


def steps_whole(model: Any) -> bool:
    """Returns whether a step cannot be halved: that of Runge and Kutta."""
    return bool(model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4)


def advance(model: Any, data: Any, substeps: int, *, whole: bool) -> None:
    """Steps as dm_control does, with places and velocities brought up to date at the end.

    Args:
        model: MuJoCo's.
        data: its moment.
        substeps: physics steps to make.
        whole: what `steps_whole` says of the model; asking costs as much as a small step.
    """
    if whole:
        mujoco.mj_step(model, data, substeps)
    else:
        mujoco.mj_step2(model, data)
        if substeps > 1:
            mujoco.mj_step(model, data, substeps - 1)
    mujoco.mj_step1(model, data)


def state_size(model: Any) -> int:
    """Returns how many numbers integration starts from; asking costs as much as reading them."""
    return int(mujoco.mj_stateSize(model, _SIGNATURE))


def save_moment(model: Any, data: Any, size: int) -> NDArray[np.float64]:
    """Returns the `state_size` numbers that integration starts from, then the sensors' last."""
    moment = np.empty(size + len(data.sensordata))
    mujoco.mj_getState(model, data, moment[:size], _SIGNATURE)
    moment[size:] = data.sensordata
    return moment


@final
class KeptMoment:
    """A moment of one world's data, kept in other data: a fifth of the cost of `save_moment`."""

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data, self._there = model, data, mujoco.MjData(model)
        self._sensors = self._there.sensordata, data.sensordata  # views; asking takes as long

    def keep(self) -> None:
        """Keeps what the data is now."""
        mujoco.mj_copyState(self._model, self._data, self._there, _SIGNATURE)
        if self._sensors[0].size:
            np.copyto(*self._sensors)

    def restore(self) -> None:
        """Goes back to what was kept; see `load_moment`."""
        mujoco.mj_copyState(self._model, self._there, self._data, _SIGNATURE)
        settle(self._model, self._data)
        self._data.sensordata[:] = self._there.sensordata


def load_moment(model: Any, data: Any, moment: NDArray[np.float64]) -> None:
    """Goes to a saved moment.

    Sensors of accelerations and forces read the step before and cannot be recomputed, so they are
    put back as they were.
    """
    size = state_size(model)
    mujoco.mj_setState(model, data, np.ascontiguousarray(moment[:size]), _SIGNATURE)
    settle(model, data)
    data.sensordata[:] = moment[size:]
