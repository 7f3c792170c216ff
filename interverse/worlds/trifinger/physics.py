"""The store meets the simulator: what is written where, how a step runs, what is read back.

The store holds every value a world shows, (N, ...) by key. `Physics` writes changed rows of it into
the engine's model and state, advances the engine with the drag law, and reads the state back.
Pictures have an engine of their own (`interverse.worlds.trifinger.studio`), so looks never touch
the physics.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, final

import numpy as np

from interverse.scm import Binding
from interverse.sim import Engine, ScaledInertia, Solid, make_engine
from interverse.sim import Scene as EngineScene
from interverse.worlds.trifinger.contacts import (
    FINGERS,
    WALL_GEOMS,
    Contact,
    contacts,
    pair_frictions,
)
from interverse.worlds.trifinger.drag import JOINT_DAMPING, add_drag, drag_law
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.penetration import Capsules
from interverse.worlds.trifinger.robot import (
    DATUM,
    HINGED,
    KD,
    KP,
    SAFETY_DAMPING,
    TORQUE_LIMIT,
)
from interverse.worlds.trifinger.rotation import (
    conjugate,
    from_mujoco,
    rotate,
    to_mujoco,
)
from interverse.worlds.trifinger.scene import (
    FINGER_FRICTION,
    Block,
    Scene,
    box_inertia,
    parking_position,
)
from interverse.worlds.trifinger.store import COMMANDS
from interverse.worlds.world import Index, State

Array = Any
Rows = dict[str, Array]  # rows of the store, by key

JOINTS = tuple(f"{finger}_{link.name}" for finger in FINGERS for link in HINGED)
_LEAST_FRICTION = 1e-5  # MuJoCo's least
POSES = ("block/position", "block/orientation", "block/linear_velocity", "block/angular_velocity")
STATE = ("joint_positions", "joint_velocities", *POSES, "obstacle/position")
_FRICTIONS = ("floor/friction", "stage/friction", "block/friction")
_INERTIAS = ("link/mass", "block/mass", "block/size")


@final
class Physics:
    """N worlds of a scene: an engine, and the drag that acts in each of its substeps."""

    def __init__(self, scene: Scene, *, num_worlds: int, device: str, threads: int) -> None:
        self.scene = scene
        self.model = _compiled(scene)
        self.engine: Engine = make_engine(
            EngineScene(model=self.model, inertia=_inertia_rules(scene)),
            num_worlds=num_worlds,
            device=device,
            threads=threads,
        )
        self.everyone = np.arange(num_worlds)
        self._pairs: tuple[Contact, ...] = contacts(scene)
        self._drag = None
        self._qpos, self._qvel, self._qfrc = (
            np.asarray(self.engine.live(field)) for field in ("qpos", "qvel", "qfrc_applied")
        )
        slow = scene.servo_lag > 0
        self._targets = np.asarray(self.engine.live("act")) if slow else None  # of the servos
        self._blocks = scene.block_count
        parking = [parking_position(i) for i in range(self._blocks)]
        self._parking = np.array(parking).reshape(-1, 3)

    def capsules(self) -> Capsules:
        """Returns the links' collision shapes as the model has them."""
        names = (*(link.name for link in HINGED), "tip")
        ends, radii = [], []
        for name in names:
            geom = self.model.geom(f"{FINGERS[0]}_{name}")
            axis = rotate(from_mujoco(geom.quat), np.array([0.0, 0.0, 1.0]))
            reach = axis * geom.size[1]  # 0 for a sphere
            ends.append([geom.pos - reach, geom.pos + reach])
            radii.append(geom.size[0])
        return Capsules(names, np.array(ends), np.array(radii))

    # ------------------------------------------------------------------- writing

    def write(
        self,
        store: Mapping[str, Array],
        keys: Collection[str],
        worlds: Index,
        before: Mapping[str, Array] | None = None,
    ) -> None:
        """Brings the engine up to date with some keys of the store, in some worlds.

        Args:
            store: every world's values.
            keys: which of them changed.
            worlds: where.
            before: their rows before the change, so that only what differs is written.
        """
        edits = []
        for key in keys:
            if key in _MODEL_KEYS:
                rows = store[key][worlds]
                old = None if before is None else before[key]
                edits += _MODEL_KEYS[key](self.scene, rows, _changed_columns(rows, old))
        if any(key in _FRICTIONS for key in keys):
            edits += self._friction_edits(store, worlds)
        if edits:
            self.engine.write(edits, worlds)
        if any(key in _INERTIAS for key in keys):
            self._drag = None
        self._write_state(store, keys, worlds)

    def _write_state(
        self, store: Mapping[str, Array], keys: Collection[str], worlds: Index
    ) -> None:
        if "joint_positions" in keys:
            self._qpos[worlds, :9] = store["joint_positions"][worlds]
            if self._targets is not None:
                self._targets[worlds] = store["joint_positions"][worlds]
        if "joint_velocities" in keys:
            self._qvel[worlds, :9] = store["joint_velocities"][worlds]
        if "joint_positions" in keys or "joint_velocities" in keys:
            self.engine.wrote(worlds)
        if any(key in POSES or key == "block/used" for key in keys):
            self._write_blocks(store, worlds)
        if "obstacle/position" in keys or "obstacle/used" in keys:
            for i, obstacle in enumerate(self.scene.obstacles):
                place = _above(store["obstacle/position"][worlds, i])
                used = store["obstacle/used"][worlds, i, None]
                place = np.where(used, place, (0.0, 0.0, -3.0 - i))
                self.engine.set_pose(obstacle.name, worlds, position=place)

    def _write_blocks(self, store: Mapping[str, Array], worlds: Index) -> None:
        n, count = len(worlds), self._blocks
        used = store["block/used"][worlds][..., None]
        turn = store["block/orientation"][worlds]
        place = np.where(used, _above(store["block/position"][worlds]), self._parking)
        spin = _turned(conjugate(turn), store["block/angular_velocity"][worlds])
        motion = np.concatenate([store["block/linear_velocity"][worlds], spin], axis=-1)
        pose = np.concatenate([place, to_mujoco(turn)], axis=-1)
        self._qpos[worlds, 9:] = pose.reshape(n, 7 * count)
        self._qvel[worlds, 9:] = np.where(used, motion, 0.0).reshape(n, 6 * count)
        self.engine.wrote(worlds)

    def _friction_edits(self, store: Mapping[str, Array], worlds: Index) -> list[Any]:
        n = len(worlds)
        surfaces = {
            "floor": store["floor/friction"][worlds],
            "stage": store["stage/friction"][worlds],
            "finger": np.full(n, FINGER_FRICTION),
        }
        for i in range(self._blocks):
            surfaces[f"block_{i}"] = store["block/friction"][worlds, i]
        for obstacle in self.scene.obstacles:
            surfaces[obstacle.name] = np.full(n, obstacle.friction)
        field = Binding("pair_friction")
        rows = np.array(self.engine.field(field))[worlds].reshape(n, len(self._pairs), 5)
        slide = np.maximum(pair_frictions(self._pairs, surfaces), _LEAST_FRICTION)
        rows[..., :2] = slide[..., None]
        wall = np.maximum(surfaces["stage"] * FINGER_FRICTION, _LEAST_FRICTION)[:, None]
        return [
            (field, rows.reshape(n, -1)),
            *((Binding("geom_friction", geom, 0), wall) for geom in WALL_GEOMS),
        ]

    # ---------------------------------------------------------------------- time

    def step(self, store: Mapping[str, Array], command: Array, worlds: Index, count: int) -> None:
        """Advances some worlds by `count` substeps under a command, (n, 9)."""
        self.engine.set_controls(JOINTS, command, worlds)
        parked = self._parked(store, worlds)
        if self.scene.drag == "joint_damping" and parked is None:
            self.engine.step(worlds, count)
            return
        if self._drag is None:
            self._drag = self._law(store)
        everyone = len(worlds) == len(self.everyone)
        force = self._qfrc if everyone else np.empty_like(self._qfrc)
        exact = self.scene.drag == "exact"

        def push() -> None:
            if parked is not None:
                self._qvel[parked] = 0.0
            if exact:
                add_drag(self._drag, self._qpos, self._qvel, force)
                if not everyone:
                    self._qfrc[worlds] = force[worlds]

        self.engine.step(worlds, count, before=push)

    def _parked(self, store: Mapping[str, Array], worlds: Index) -> Any:
        """Returns rows and columns of the velocities of parked blocks, or None."""
        absent = ~store["block/used"][worlds]
        if not absent.any():
            return None
        row, block = np.nonzero(absent)
        return worlds[row][:, None], 9 + 6 * block[:, None] + np.arange(6)

    def _law(self, store: Mapping[str, Array]) -> Any:
        mass, size = store["block/mass"], store["block/size"]
        return drag_law(store["link/mass"], mass, box_inertia(mass, size))

    def torques(self, store: Mapping[str, Array]) -> Array:
        """Returns what the joints get from their motors now, (N, 9), N m."""
        command = store[COMMANDS][:, 0] if self._targets is None else self._targets
        joints, rates = store["joint_positions"], store["joint_velocities"]
        return applied_torques(command, joints, rates, motors=self.scene.torques)

    def read_back(self, store: Rows, worlds: Index) -> None:
        """Brings the store's state up to date with the engine, in some worlds."""
        everyone = len(worlds) == len(self.everyone)
        qpos, qvel = (a if everyone else a[worlds] for a in (self._qpos, self._qvel))
        rows: Rows = {"joint_positions": qpos[:, :9], "joint_velocities": qvel[:, :9]}
        if self._blocks:
            pose = qpos[:, 9:].reshape(len(worlds), self._blocks, 7)
            motion = qvel[:, 9:].reshape(len(worlds), self._blocks, 6)
            turn = from_mujoco(pose[..., 3:])
            spin = _turned(turn, motion[..., 3:])
            rows["block/position"] = pose[..., :3] - (0.0, 0.0, DATUM)
            rows["block/orientation"] = turn
            rows["block/linear_velocity"], rows["block/angular_velocity"] = motion[..., :3], spin
            absent = ~store["block/used"][worlds]
            if absent.any():
                for key in POSES:
                    rows[key] = np.where(absent[..., None], _NOWHERE[key], rows[key])
        for key, values in rows.items():
            store[key][worlds] = values
        if self._blocks and absent.any():
            away = worlds[absent.any(axis=1)]
            self._write_blocks(store, away)

    # --------------------------------------------------------------------- saving

    def save(self, worlds: Index) -> State:
        """Returns the engine's rows."""
        return self.engine.save(worlds)

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows back."""
        self.engine.load(state, worlds)
        self._drag = None

    def close(self) -> None:
        """Releases the engine."""
        self.engine.close()


@functools.lru_cache(maxsize=16)
def _compiled(scene: Scene) -> Any:
    """Returns the model of a scene; nobody may change it."""
    return compile_scene(scene)


def applied_torques(command: Array, joints: Array, rates: Array, *, motors: bool) -> Array:
    """Returns what the joints get from their motors, (N, 9), N m: the law of every substep."""
    kp, kd, ks = (np.array(gains * 3) for gains in (KP, KD, SAFETY_DAMPING))
    wanted = command if motors else kp * (command - joints) - kd * rates
    clipped = np.clip(wanted, -TORQUE_LIMIT, TORQUE_LIMIT)
    return np.clip(clipped - ks * rates, -TORQUE_LIMIT, TORQUE_LIMIT)


_NOWHERE = {
    "block/position": (0.0, 0.0, 0.0),
    "block/orientation": (0.0, 0.0, 0.0, 1.0),
    "block/linear_velocity": (0.0, 0.0, 0.0),
    "block/angular_velocity": (0.0, 0.0, 0.0),
}


def _turned(turn: Array, vector: Array) -> Array:
    """Returns vectors turned by quaternions, (..., 3), in few operations: it runs every step."""
    x, y, z, w = turn[..., 0], turn[..., 1], turn[..., 2], turn[..., 3]
    a, b, c = vector[..., 0], vector[..., 1], vector[..., 2]
    s, t, u = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    out = np.empty_like(vector)
    out[..., 0] = a + w * s + (y * u - z * t)
    out[..., 1] = b + w * t + (z * s - x * u)
    out[..., 2] = c + w * u + (x * t - y * s)
    return out


def _above(position: Array) -> Array:
    """Returns world coordinates of points measured from the datum."""
    return position + np.array([0.0, 0.0, DATUM])


def _inertia_rules(scene: Scene) -> tuple[Solid | ScaledInertia, ...]:
    links = tuple(
        ScaledInertia(body=f"{finger}_{link.name}", mass=link.mass, inertia=link.inertia)
        for finger in FINGERS
        for link in HINGED
    )
    meshed = tuple(
        ScaledInertia(body=f"block_{i}", mass=block.mass, inertia=_inertia(block))
        for i, block in enumerate(scene.blocks)
        if block.mesh is not None
    )
    solid = [
        i for i in range(scene.block_count) if i >= len(scene.blocks) or not scene.blocks[i].mesh
    ]
    return links + meshed + tuple(Solid(f"block_{i}", f"block_{i}") for i in solid)


def _inertia(block: Block) -> tuple[float, float, float]:
    x, y, z = box_inertia(np.array(block.mass), np.array(block.size)).tolist()
    return x, y, z


def _changed_columns(rows: Array, before: Array | None) -> Array:
    """Returns which objects (second axis) differ in any world; all where nothing is known."""
    if rows.ndim < 2:
        return np.ones(1, dtype=bool)
    if before is None:
        return np.ones(rows.shape[1], dtype=bool)
    unequal = rows != before
    return unequal.reshape(len(rows), rows.shape[1], -1).any(axis=(0, 2))


def _link_masses(scene: Scene, rows: Array, changed: Array) -> list[Any]:
    return [
        (Binding("body_mass", f"{FINGERS[f]}_{link.name}"), rows[:, f, j])
        for f in np.flatnonzero(changed)
        for j, link in enumerate(HINGED)
    ]


def _damping(scene: Scene, rows: Array, changed: Array) -> list[Any]:
    stand_in = JOINT_DAMPING if scene.drag == "joint_damping" else (0.0, 0.0, 0.0)
    return [
        (Binding("dof_damping", f"{finger}_{link.name}"), rows + extra)
        for finger in FINGERS
        for link, extra in zip(HINGED, stand_in, strict=True)
    ]


def _block_masses(scene: Scene, rows: Array, changed: Array) -> list[Any]:
    return [(Binding("body_mass", f"block_{i}"), rows[:, i]) for i in np.flatnonzero(changed)]


def _block_sizes(scene: Scene, rows: Array, changed: Array) -> list[Any]:
    return [
        (Binding("geom_size", f"block_{i}", None, 0.5), rows[:, i])
        for i in np.flatnonzero(changed)
        if i >= len(scene.blocks) or scene.blocks[i].mesh is None
    ]


def _obstacle_sizes(scene: Scene, rows: Array, changed: Array) -> list[Any]:
    return [
        (Binding("geom_size", scene.obstacles[i].name, None, 0.5), rows[:, i])
        for i in np.flatnonzero(changed)
    ]


# Which model fields a key of the store is written to.
_MODEL_KEYS = {
    "gravity": lambda scene, rows, changed: [(Binding("opt.gravity", None, 2), rows)],
    "robot/height": lambda scene, rows, changed: [(Binding("body_pos", "robot", 2), rows)],
    "robot/joint_damping": _damping,
    "link/mass": _link_masses,
    "block/mass": _block_masses,
    "block/size": _block_sizes,
    "obstacle/size": _obstacle_sizes,
}
