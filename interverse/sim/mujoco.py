"""The MuJoCo 4 engine: N worlds of one model on `mujoco.batch.Batch`, on all cores.

State fields are read straight from the batch's rows; derived ones (places of links, sensors) are
brought up to date when read, or within the step once somebody has read them. Results do not depend
on threads or on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, final

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from numpy.typing import NDArray

from interverse.core.arrays import Array, as_rows, batch_ids, giver
from interverse.core.errors import explain
from interverse.sim.elements import Rule, compiled, find_rule, needs_constants
from interverse.sim.engine import LIVE, Engine, Fields, Index, Scene, SimulationError

_VEL, _ACC = int(mujoco.mjtStage.mjSTAGE_VEL), int(mujoco.mjtStage.mjSTAGE_ACC)
_NONE = int(mujoco.mjtStage.mjSTAGE_NONE)


@final
class _BatchFields(Fields):
    """The fields of a batch; constants are derived again for the worlds concerned."""

    given = staticmethod(as_rows)

    def __init__(
        self, model: mujoco.MjModel, batch: mujoco_batch.Batch, rules: Sequence[Rule]
    ) -> None:
        super().__init__(model, batch.nsim, rules)
        self._batch = batch

    def index(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the numbers."""
        return numbers

    def asarray(self, values: Any) -> NDArray[Any]:
        """Returns values as NumPy has them."""
        return np.asarray(values)

    def put(self, held: NDArray[Any], rows: Index, columns: Any, values: NDArray[Any]) -> None:
        """Writes into columns of some rows."""
        held[rows[:, None], columns] = values

    def own_rows(self, field: str) -> NDArray[Any]:
        """Gives every world its own row of a field."""
        return self._batch.expand(field).reshape(self._worlds, -1)

    def derive(self, rows: Index) -> bool:
        """Derives what follows from masses and sizes in some worlds."""
        if len(rows):
            self._batch.set_const(batch_ids(rows, self._worlds))
        return len(rows) > 0

    def load(self, saved: Mapping[str, Any], rows: Index) -> None:
        """Writes saved fields, the scene's where a field was not; `load({}, rows)` undoes edits."""
        for name in saved:
            self.expand(name)
        changed = np.zeros(len(rows), dtype=bool)
        for name, held in self._rows.items():
            new = np.asarray(saved[name] if name in saved else self.scene(name).reshape(-1))
            if needs_constants(name):
                changed |= np.any(held[rows] != new, axis=1)
            held[rows] = new
        self.derive(rows[changed])


@final
class MujocoEngine(Engine):
    """N worlds of a scene in MuJoCo on the CPU."""

    def __init__(
        self, scene: Scene, *, num_worlds: int, device: str = "cpu", threads: int = 0
    ) -> None:
        self.model = compiled(scene.model)
        self.num_worlds = num_worlds
        self.timestep = float(self.model.opt.timestep)
        self._batch = mujoco_batch.Batch(self.model, num_worlds, threads)
        self._give = giver(device)
        rules = [find_rule(self.model, rule) for rule in scene.inertia]
        self._fields = _BatchFields(self.model, self._batch, rules)
        self._state = {name: self._batch.bind(name) for name in LIVE}
        self._outputs: dict[str, NDArray[Any]] = {}  # derived fields that somebody reads
        self._stage = _NONE  # up to which derived fields are computed
        self._stale = np.zeros(num_worlds, dtype=bool)  # worlds where they are out of date
        self._before = np.empty_like(self._batch.state)

    def reset(self, worlds: Index) -> None:
        """Puts state and model fields of some worlds back to the scene's."""
        self._fields.load({}, worlds)
        self._batch.reset(batch_ids(worlds, self.num_worlds), stage=_NONE)
        self._outdated(worlds)

    def step(
        self, worlds: Index, substeps: int = 1, before: Callable[[], None] | None = None
    ) -> None:
        """Advances some worlds; raises SimulationError and changes nothing if one breaks down."""
        ids = batch_ids(worlds, self.num_worlds)
        np.copyto(self._before, self._batch.state)
        rounds = [substeps] if before is None else [1] * substeps
        try:
            for count in rounds:
                if before is not None:
                    before()
                self._batch.step(ids, count, self._stage)
                self._stale[slice(None) if ids is None else ids] = False
        except mujoco_batch.SimulationError as error:
            self._broke_down(error.ids, str(error))
        if self._batch.warning.any():
            counts = self._batch.warning[:, :, 1]
            kinds = [mujoco.mjtWarning(k).name for k in np.flatnonzero(counts.any(axis=0))]
            self._broke_down(np.flatnonzero(counts.any(axis=1)), ", ".join(kinds))

    def _broke_down(self, worlds: NDArray[Any], problem: str) -> NoReturn:
        np.copyto(self._batch.state, self._before)
        self._batch.warning[:] = 0
        self._stale[:] = True
        shown = ", ".join(str(i) for i in worlds[:8].tolist())
        more = f" and {len(worlds) - 8} more" if len(worlds) > 8 else ""
        raise SimulationError(
            explain(
                f"the physics of world {shown}{more} broke down: {problem}",
                fix="Every world is as it was before the step. Check forces, masses and velocities",
            ),
            worlds.tolist(),
        )

    def asarray(self, values: Any) -> Array:
        """Returns values as an array of this engine's kind."""
        return self._give(np.asarray(values))

    def _rows(self, worlds: Index) -> Index:
        return worlds

    def _output(self, field: str, stage: int = _VEL) -> NDArray[Any]:
        if field not in self._outputs or stage > self._stage:
            self._outputs[field] = self._batch.bind(field)
            self._stage = max(self._stage, stage, _VEL)
            self._stale[:] = True
        if self._stale.any():
            stale = batch_ids(np.flatnonzero(self._stale), self.num_worlds)
            self._batch.forward(stale, stage=self._stage)
            self._stale[:] = False
        return self._outputs[field]

    def _outdated(self, worlds: Index, *, places: bool = True) -> None:
        if (_VEL if places else _ACC) <= self._stage:
            self._stale[worlds] = True

    def _state_size(self) -> int:
        return int(self._batch.nstate)

    def _save_physics(self, rows: Index, count: int) -> NDArray[Any]:
        return self._batch.state[rows]

    def _load_physics(self, physics: Any, rows: Index) -> None:
        self._batch.state[rows] = np.asarray(physics)

    def _to_host(self, world: int, model: Any, data: Any) -> None:
        self._batch.get_model(world, model)
        self._batch.get_data(world, data)
