"""A scene with one of everything the engine speaks of, built from plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interverse.scm import Binding
from interverse.sim import Edit, Engine, ScaledInertia, Scene, Solid

LINK = ScaledInertia(body="arm", mass=0.2, inertia=(0.001, 0.002, 0.0025))


@dataclass(frozen=True, kw_only=True)
class Values:
    """What can be edited, and what the scene can be built with."""

    gravity: float = -9.81
    arm_mass: float = 0.2
    arm_height: float = 0.5
    box_mass: float = 1.0
    box_size: tuple[float, float, float] = (0.2, 0.2, 0.2)  # full edges
    box_friction: float = 0.4
    ball_mass: float = 0.3
    ball_radius: float = 0.05
    rod_mass: float = 0.4
    rod_size: tuple[float, float] = (0.03, 0.1)
    drum_mass: float = 0.4
    drum_size: tuple[float, float] = (0.06, 0.04)
    red: float = 0.5


def build(values: Values) -> Scene:
    """Returns the scene of these values."""
    v = values
    x, y, z = (repr(0.5 * edge) for edge in v.box_size)
    inertia = " ".join(repr(i) for i in LINK.at(v.arm_mass))
    model = f"""
<mujoco>
  <option timestep="0.004" cone="elliptic" gravity="0 0 {v.gravity!r}"/>
  <statistic center="0 0 0" extent="2" meansize="0.1"/>
  <visual><global offwidth="64" offheight="64"/></visual>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="above" pos="0 0 2"/>
    <geom name="floor" type="plane" size="2 2 0.1" rgba="0.5 0.5 0.5 1"/>
    <body name="mark" mocap="true" pos="0.5 0.5 1">
      <geom name="mark" type="sphere" size="0.01" contype="0" conaffinity="0"/>
    </body>
    <body name="arm" pos="0.8 0 {v.arm_height!r}">
      <joint name="shoulder" axis="0 1 0"/>
      <inertial pos="0 0 -0.1" mass="{v.arm_mass!r}" diaginertia="{inertia}"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>
      <body name="hand" pos="0 0 -0.2">
        <joint name="wrist" axis="1 0 0"/>
        <geom name="hand" type="box" size="0.02 0.03 0.04" pos="0.01 0 -0.04" mass="0.1"/>
        <site name="tip" pos="0 0 -0.08"/>
      </body>
    </body>
    <body name="box" pos="0 0 0.1">
      <freejoint name="box"/>
      <geom name="box" type="box" size="{x} {y} {z}" mass="{v.box_mass!r}"
            rgba="{v.red!r} 0.2 0.2 1"/>
    </body>
    <body name="ball" pos="-0.5 0 0.3">
      <freejoint name="ball"/>
      <geom name="ball" type="sphere" size="{v.ball_radius!r}" mass="{v.ball_mass!r}"/>
    </body>
    <body name="rod" pos="-0.5 0.5 0.3">
      <freejoint name="rod"/>
      <geom name="rod" type="capsule" size="{v.rod_size[0]!r} {v.rod_size[1]!r}"
            mass="{v.rod_mass!r}"/>
    </body>
    <body name="drum" pos="-0.5 -0.5 0.3">
      <freejoint name="drum"/>
      <geom name="drum" type="cylinder" size="{v.drum_size[0]!r} {v.drum_size[1]!r}"
            mass="{v.drum_mass!r}"/>
    </body>
  </worldbody>
  <contact>
    <pair name="box_floor" geom1="box" geom2="floor" condim="3"
          friction="{v.box_friction!r} {v.box_friction!r}"/>
  </contact>
  <actuator>
    <motor name="shoulder" joint="shoulder"/>
    <motor name="wrist" joint="wrist"/>
  </actuator>
  <sensor>
    <contact name="touch" geom1="box" geom2="floor" num="1" data="found force" reduce="netforce"/>
    <jointvel name="swing" joint="shoulder"/>
  </sensor>
</mujoco>
"""
    solids = tuple(Solid(name, name) for name in ("box", "ball", "rod", "drum"))
    return Scene(model=model, inertia=(*solids, LINK))


BINDINGS = {
    "gravity": Binding("opt.gravity", index=2),
    "arm_mass": Binding("body_mass", "arm"),
    "arm_height": Binding("body_pos", "arm", 2),
    "box_mass": Binding("body_mass", "box"),
    "box_size": Binding("geom_size", "box", (0, 1, 2), scale=0.5),
    "box_friction": Binding("pair_friction", "box_floor", (0, 1)),
    "ball_mass": Binding("body_mass", "ball"),
    "ball_radius": Binding("geom_size", "ball", 0),
    "rod_mass": Binding("body_mass", "rod"),
    "rod_size": Binding("geom_size", "rod", (0, 1)),
    "drum_mass": Binding("body_mass", "drum"),
    "drum_size": Binding("geom_size", "drum", (0, 1)),
    "red": Binding("geom_rgba", "box", 0),
}


def edit(name: str, rows: object) -> Edit:
    """Returns the edit that gives one value of `Values` in some worlds."""
    return BINDINGS[name], rows


def place(engine: Engine, body: str, worlds: Any, position: Any) -> None:
    """Moves a free or a mocap body."""
    at = engine.model.body(body)
    if at.mocapid[0] >= 0:
        engine.live("mocap_pos")[worlds, int(at.mocapid[0])] = engine.asarray(position)
    else:
        start = int(engine.model.jnt_qposadr[at.jntadr[0]])
        engine.live("qpos")[worlds, start : start + 3] = engine.asarray(position)
    engine.wrote(worlds)


def push(engine: Engine, body: str, worlds: Any, linear: Any, spin: Any = None) -> None:
    """Gives a free body a velocity; its spin is in the body's own frame."""
    start = int(engine.model.jnt_dofadr[engine.model.body(body).jntadr[0]])
    engine.live("qvel")[worlds, start : start + 3] = engine.asarray(linear)
    if spin is not None:
        engine.live("qvel")[worlds, start + 3 : start + 6] = engine.asarray(spin)
    engine.wrote(worlds)
