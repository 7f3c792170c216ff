"""Pictures of a TriFinger world: an engine of one world that is dressed up and photographed.

Looks live here alone, so colours, textures, lights and cameras cost the physics nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.scm import Binding
from interverse.sim import Engine, make_engine
from interverse.sim import Scene as EngineScene
from interverse.sim.engine import Picture
from interverse.sim.shapes import Shape
from interverse.worlds.trifinger.contacts import FINGERS
from interverse.worlds.trifinger.physics import JOINTS
from interverse.worlds.trifinger.robot import DATUM, HINGED, action_bounds
from interverse.worlds.trifinger.rotation import (
    from_mujoco,
    from_rotation_vector,
    multiply,
    to_mujoco,
)
from interverse.worlds.trifinger.scene import FLOOR_TEXTURES, LIGHTS, OBSERVATION_CAMERAS, Scene

Array = Any
_ONE = np.arange(1)
_GOAL_ALPHA = 0.3
_QUICK_SHADOWS = 512  # texels along an edge: enough for pictures of 128 pixels


@final
class Studio:
    """Draws one world at a time."""

    def __init__(
        self, model: Any, scene: Scene, *, quick: bool = False, shadows: bool = True
    ) -> None:
        """Makes a studio for a model.

        Args:
            model: the compiled scene; it is copied.
            scene: what it was compiled from.
            quick: whether to draw small pictures fast: coarse shadows, no smoothing of edges.
            shadows: whether lights cast shadows.
        """
        self._scene = scene
        model = copy.copy(model)
        if quick:
            model.vis.quality.shadowsize = _QUICK_SHADOWS
            model.vis.quality.offsamples = 0
            model.vis.global_.offwidth = model.vis.global_.offheight = 1
        if not shadows:
            model.light_castshadow[:] = False
        self._engine: Engine = make_engine(EngineScene(model=model), num_worlds=1, threads=1)
        self._camera_turns = np.array([model.camera(c.name).quat for c in OBSERVATION_CAMERAS])
        self._textures = [model.texture(f"floor_{name}").id for name in FLOOR_TEXTURES[1:]]

    def view(self, rows: Mapping[str, Array], size: tuple[int, int]) -> NDArray[np.uint8]:
        """Returns a picture for people: blocks and goals together."""
        self._dress(rows, blocks=1.0, goals=_GOAL_ALPHA)
        return self._engine.picture(0, camera="viewer", size=size)

    def shapes(self, rows: Mapping[str, Array]) -> tuple[Shape, ...]:
        """Returns the solids of that picture."""
        self._dress(rows, blocks=1.0, goals=_GOAL_ALPHA)
        return self._engine.shapes(0)

    def live(
        self, rows: Mapping[str, Array], cameras: Sequence[int], size: int, kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns what the cameras see: robot and blocks, no goals, (cameras, size, size, ...)."""
        self._dress(rows, blocks=1.0, goals=0.0)
        return self._pictures(cameras, size, kind)

    def goal(
        self, rows: Mapping[str, Array], cameras: Sequence[int], size: int, kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns pictures of the goal: goals as solids, no blocks, fingers out of the way."""
        low, _ = action_bounds("joint_positions")
        self._dress({**rows, "joint_positions": low[None]}, blocks=0.0, goals=1.0)
        return self._pictures(cameras, size, kind)

    def _pictures(self, cameras: Sequence[int], size: int, kind: Picture) -> NDArray[Any]:
        names = [OBSERVATION_CAMERAS[c].name for c in cameras]
        shots = [
            self._engine.picture(0, camera=name, size=(size, size), kind=kind) for name in names
        ]
        return np.stack(shots)

    def close(self) -> None:
        """Releases the GL contexts."""
        self._engine.close()

    # ------------------------------------------------------------------ dressing

    def _dress(self, rows: Mapping[str, Array], *, blocks: float, goals: float) -> None:
        engine = self._engine
        engine.set_joints(JOINTS, _ONE, position=rows["joint_positions"])
        edits = [
            (Binding("body_pos", "robot", 2), rows["robot/height"]),
            (Binding("mat_rgba", "floor", (0, 1, 2)), rows["floor/color"]),
            (Binding("mat_rgba", "stage", (0, 1, 2)), rows["stage/color"]),
            *self._light_edits(rows),
            *self._camera_edits(rows),
        ]
        if self._scene.look == "default":
            edits += [
                (
                    Binding("mat_rgba", f"{finger}_{link.name}", (0, 1, 2)),
                    rows["link/color"][:, f, j],
                )
                for f, finger in enumerate(FINGERS)
                for j, link in enumerate(HINGED)
            ]
        for kind, alpha in (("block", blocks), ("goal", goals)):
            for i in range(rows[f"{kind}/used"].shape[1]):
                edits += self._place(rows, kind, i, f"{kind}_{i}", alpha)
        for i, obstacle in enumerate(self._scene.obstacles):
            edits += self._place(rows, "obstacle", i, obstacle.name, 1.0)
        engine.write(edits, _ONE)

    def _place(
        self, rows: Mapping[str, Array], kind: str, i: int, name: str, alpha: float
    ) -> list[Any]:
        used = bool(rows[f"{kind}/used"][0, i])
        place = rows[f"{kind}/position"][:, i] + (0.0, 0.0, DATUM)
        self._engine.set_pose(
            name, _ONE, position=place, orientation=rows[f"{kind}/orientation"][:, i]
        )
        color = np.append(rows[f"{kind}/color"][0, i], alpha if used else 0.0)[None]
        edits = [(Binding("mat_rgba", name), color)]
        items = {"block": self._scene.blocks, "goal": self._scene.goals}.get(kind, ())
        meshed = i < len(items) and items[i].mesh is not None  # type: ignore[attr-defined]
        if not meshed:
            edits.append((Binding("geom_size", name, None, 0.5), rows[f"{kind}/size"][:, i]))
        return edits

    def _light_edits(self, rows: Mapping[str, Array]) -> list[Any]:
        key = LIGHTS[0].name
        way = rows["light/direction"]
        unit = way / np.sqrt((way * way).sum(axis=-1, keepdims=True))
        return [
            (Binding("light_dir", key), unit),
            (Binding("light_pos", key), -1.2 * unit),
            (Binding("light_diffuse", key), rows["light/color"]),
            *self._texture_edits(int(rows["floor/texture"][0])),
        ]

    def _texture_edits(self, texture: int) -> list[Any]:
        chosen = -1 if texture == 0 else self._textures[texture - 1]
        return [(Binding("mat_texid", "floor", 1), np.array([chosen]))]

    def _camera_edits(self, rows: Mapping[str, Array]) -> list[Any]:
        edits: list[Any] = []
        for i, camera in enumerate(OBSERVATION_CAMERAS):
            turn = from_rotation_vector(rows["camera/rotation"][:, i])
            pose = multiply(turn, from_mujoco(self._camera_turns[i])[None])
            edits += [
                (Binding("cam_pos", camera.name), rows["camera/position"][:, i]),
                (Binding("cam_quat", camera.name), to_mujoco(pose)),
            ]
        return edits
