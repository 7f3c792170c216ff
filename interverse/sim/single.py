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


@final
class SingleWorld:
    """A model and its data: steps and moments."""

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data, self._there = model, data, mujoco.MjData(model)
        self._sensors = self._there.sensordata, data.sensordata  # views; asking takes as long
        # asked once: it costs as much as a small step
        self._whole = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4  # steps have no halves
        self._size = mujoco.mj_stateSize(model, _SIGNATURE)

    def advance(self, substeps: int) -> None:
        """Steps as dm_control does, with places and velocities brought up to date at the end."""
        if self._whole:
            mujoco.mj_step(self._model, self._data, substeps)
        else:
            mujoco.mj_step2(self._model, self._data)
            if substeps > 1:
                mujoco.mj_step(self._model, self._data, substeps - 1)
        mujoco.mj_step1(self._model, self._data)

    def save(self) -> NDArray[np.float64]:
        """Returns the numbers that integration starts from, then the sensors' last."""
        moment = np.empty(self._size + len(self._data.sensordata))
        mujoco.mj_getState(self._model, self._data, moment[: self._size], _SIGNATURE)
        moment[self._size :] = self._data.sensordata
        return moment

    def load(self, moment: NDArray[np.float64]) -> None:
        """Goes to a saved moment.

        Sensors of accelerations and forces read the step before and cannot be recomputed, so they
        are put back as they were.
        """
        state = np.ascontiguousarray(moment[: self._size])
        mujoco.mj_setState(self._model, self._data, state, _SIGNATURE)
        settle(self._model, self._data)
        self._data.sensordata[:] = moment[self._size :]

    def keep(self) -> None:
        """Keeps what the data is now, at a fifth of the cost of `save`."""
        mujoco.mj_copyState(self._model, self._data, self._there, _SIGNATURE)
        if self._sensors[0].size:
            np.copyto(*self._sensors)

    def restore(self) -> None:
        """Goes back to what was kept; see `load`."""
        mujoco.mj_copyState(self._model, self._there, self._data, _SIGNATURE)
        settle(self._model, self._data)
        self._data.sensordata[:] = self._there.sensordata
