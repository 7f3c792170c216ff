"""The physics of N TriFinger worlds: an engine, the drag in each of its substeps, reading back.

Values reach the engine by the store's bindings alone; this file advances it and reads its state.
Pictures have an engine of their own (`interverse.worlds.trifinger.pictures`), so looks never touch
the physics.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from interverse.core.arrays import Array, from_mujoco, host_view, like, namespace, rotate
from interverse.scm.store import Index, Rows, Store
from interverse.sim import Engine, ScaledInertia, Scene, Solid, make_engine
from interverse.worlds.trifinger.contacts import FINGERS, ActiveEdges
from interverse.worlds.trifinger.drag import DragLaw, RecordedDrag, add_drag, drag_law
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.penetration import Capsules
from interverse.worlds.trifinger.robot import DATUM, HINGED, KD, KP, SAFETY_DAMPING, TORQUE_LIMIT
from interverse.worlds.trifinger.scene import ArenaScene, Block, box_inertia, parking_position
from interverse.worlds.trifinger.variables import JOINTS

PHYSICAL = ("latent", "robot", "state")  # kinds of variable that the engine follows
_MASSES = ("link/mass", "block/mass", "block/size")


@final
class _Parked(NamedTuple):
    """The blocks of all worlds that are not in use: P rows and columns of positions, velocities."""

    rows: Array  # (P, 1)
    qpos: Array  # (P, 7)
    qvel: Array  # (P, 6)
    pose: Array  # (P, 7)


@final
class Physics:
    """N worlds of a scene in an engine, and the drag law that acts on them."""

    def __init__(self, scene: ArenaScene, *, num_worlds: int, options: TriFingerOptions) -> None:
        self.scene = scene
        self.model = _compiled(scene)
        self.engine: Engine = make_engine(
            Scene(
                model=self.model,
                inertia=_inertia_rules(scene),
                contacts=options.contacts,
                constraints=options.constraints,
            ),
            num_worlds=num_worlds,
            device=options.device,
            threads=options.threads,
        )
        live, self.asarray = self.engine.live, self.engine.asarray
        # on the CPU the drag is NumPy code, whichever arrays the world is made of: the same bits
        self._moving = [host_view(live(name)) for name in ("qpos", "qvel", "qfrc_applied")]
        on_cpu = isinstance(self._moving[0], np.ndarray)
        self._recorded = None if on_cpu else RecordedDrag(*self._moving)
        self._qpos, self._qvel, self._controls = live("qpos"), live("qvel"), live("ctrl")
        self._targets = live("act") if scene.servo_lag > 0 else None  # of the servos
        self._blocks = scene.block_count
        self.watch: ActiveEdges | None = None  # sampled before every substep
        self._datum = like((0.0, 0.0, DATUM), self._qpos)
        self._xyzw = self.asarray([4, 5, 6, 3])  # columns of a free body's pose, which has w first

    def capsules(self) -> Capsules:
        """Returns the links' collision shapes as the model has them."""
        return _capsules(self.scene)

    # ---------------------------------------------------------------------- time

    def step(self, store: Store, command: Array, worlds: Index, count: int) -> None:
        """Advances some worlds by `count` substeps under a command, (n, 9); reads them back."""
        # the dampers behind the joints take none
        self._controls[store.index(worlds), : len(JOINTS)] = command
        parked = store.cached("parked", ("block/used",), lambda: self._parked(store.rows))
        push = self._push(store, worlds, parked)
        if self.watch is not None:
            self.watch.clear(worlds)
            push = functools.partial(_watched, functools.partial(self.watch.sample, worlds), push)
        self.engine.step(worlds, count, before=push)
        self._read_back(store, worlds)
        if parked is not None:  # they go back to where they wait, and out of sight
            self._qpos[parked.rows, parked.qpos] = parked.pose
            self._keep_still(parked)
            self.engine.wrote(worlds)
            rows, where = store.rows, store.index(worlds)
            used = rows["block/used"][where][..., None]
            for key, nowhere in _NOWHERE.items():
                values = rows[key][where]
                rows[key][where] = namespace(used).where(used, values, like(nowhere, values))

    def _push(
        self, store: Store, worlds: Index, parked: _Parked | None
    ) -> Callable[[], None] | None:
        """Returns what happens before every substep: drag, and parked blocks are kept still."""
        if self.scene.drag != "exact":
            return None if parked is None else functools.partial(self._keep_still, parked)
        law, whole = store.cached("drag", _MASSES, lambda: self._drags(store.rows))
        if parked is None and len(worlds) == self.engine.num_worlds:
            return whole
        qpos, qvel, applied = self._moving
        force = namespace(applied).empty_like(applied)
        rows = store.index(worlds)  # sent to a device once, not in every substep
        where = rows if isinstance(rows, slice) else host_view(rows)

        def push() -> None:
            if parked is not None:
                self._keep_still(parked)
            add_drag(law, qpos, qvel, force)
            applied[where] = force[where]

        return push

    def _keep_still(self, parked: _Parked) -> None:
        self._qvel[parked.rows, parked.qvel] = 0.0

    def _parked(self, rows: Rows) -> _Parked | None:
        """Returns the blocks that are not in use, or None."""
        xp = namespace(rows["block/used"])
        row, block = xp.nonzero(~rows["block/used"])
        if row.shape[0] == 0:
            return None
        pose = [(*parking_position(i), 1.0, 0.0, 0.0, 0.0) for i in range(self._blocks)]
        six, seven = like(np.arange(6), block), like(np.arange(7), block)
        return _Parked(
            rows=row[:, None],
            qpos=9 + 7 * block[:, None] + seven,
            qvel=9 + 6 * block[:, None] + six,
            pose=like(pose, self._qpos)[block],
        )

    def _drags(self, rows: Rows) -> tuple[DragLaw, Callable[[], None]]:
        """Returns the drag's coefficients for the present masses, and what acts on every world."""
        links, mass, size = (host_view(rows[key]) for key in _MASSES)
        law = drag_law(links, mass, box_inertia(mass, size))
        if self._recorded is not None:
            return law, self._recorded.follow(law)
        return law, functools.partial(add_drag, law, *self._moving)

    def torques(self, rows: Rows, commands: Array) -> Array:
        """Returns what the joints get from their motors now, (N, 9), N m."""
        command = commands[:, 0] if self._targets is None else self._targets
        joints, rates = rows["joint_positions"], rows["joint_velocities"]
        return applied_torques(command, joints, rates, motors=self.scene.torques)

    def _read_back(self, store: Store, worlds: Index) -> None:
        """Brings the store's state up to date with the engine, in some worlds."""
        where, rows = store.index(worlds), store.rows
        qpos, qvel, blocks = self._qpos[where], self._qvel[where], self._blocks
        rows["joint_positions"][where], rows["joint_velocities"][where] = qpos[:, :9], qvel[:, :9]
        if not blocks:
            return
        pose, motion = qpos[:, 9:].reshape(-1, blocks, 7), qvel[:, 9:].reshape(-1, blocks, 6)
        turn, slide, spin = pose[..., self._xyzw], motion[..., :3], motion[..., 3:]
        rows["block/position"][where] = pose[..., :3] - self._datum
        rows["block/orientation"][where], rows["block/linear_velocity"][where] = turn, slide
        rows["block/angular_velocity"][where] = rotate(turn, spin)

    def close(self) -> None:
        """Releases the engine."""
        self.engine.close()


def _watched(watch: Callable[[], None], push: Callable[[], None] | None) -> None:
    watch()
    if push is not None:
        push()


_NOWHERE = {  # what stands for the place of a block that is not in use
    "block/position": (0.0, 0.0, 0.0),
    "block/orientation": (0.0, 0.0, 0.0, 1.0),
    "block/linear_velocity": (0.0, 0.0, 0.0),
    "block/angular_velocity": (0.0, 0.0, 0.0),
}


@functools.lru_cache(maxsize=16)
def _compiled(scene: ArenaScene) -> Any:
    """Returns the model of a scene; nobody may change it."""
    return compile_scene(scene)


@functools.lru_cache(maxsize=16)
def _capsules(scene: ArenaScene) -> Capsules:
    model, names = _compiled(scene), (*(link.name for link in HINGED), "tip")
    ends, radii = [], []
    for name in names:
        geom = model.geom(f"{FINGERS[0]}_{name}")
        axis = rotate(from_mujoco(geom.quat), np.array([0.0, 0.0, 1.0]))
        reach = axis * geom.size[1]  # 0 for a sphere
        ends.append([geom.pos - reach, geom.pos + reach])
        radii.append(geom.size[0])
    return Capsules(names, np.array(ends), np.array(radii))


def applied_torques(command: Array, joints: Array, rates: Array, *, motors: bool) -> Array:
    """Returns what the joints get from their motors, (N, 9), N m: the law of every substep."""
    kp, kd, ks = (like(gains * 3, joints) for gains in (KP, KD, SAFETY_DAMPING))
    wanted = command if motors else kp * (command - joints) - kd * rates
    clipped = wanted.clip(-TORQUE_LIMIT, TORQUE_LIMIT)
    return (clipped - ks * rates).clip(-TORQUE_LIMIT, TORQUE_LIMIT)


@functools.lru_cache(maxsize=16)
def _inertia_rules(scene: ArenaScene) -> tuple[Solid | ScaledInertia, ...]:
    links = tuple(
        ScaledInertia(body=f"{finger}_{link.name}", mass=link.mass, inertia=link.inertia)
        for finger in FINGERS
        for link in HINGED
    )
    blocks: list[Solid | ScaledInertia] = []
    for i in range(scene.block_count):
        block = scene.blocks[i] if i < len(scene.blocks) else Block()
        name, inertia = f"block_{i}", box_inertia(np.array(block.mass), np.array(block.size))
        x, y, z = inertia.tolist()
        meshed = ScaledInertia(body=name, mass=block.mass, inertia=(x, y, z))
        blocks.append(meshed if block.mesh else Solid(name, name))
    return (*links, *blocks)
