"""The slider's model, built from the variables' defaults, as an edited world must equal it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interverse.scm import Variable
from interverse.sim import Scene, Solid

from .variables import TABLE

SUBSTEPS = 10  # of the simulator in one step of the world
CAMERA = "view"

_MODEL = """
<mujoco model="slider">
  <option timestep="0.004" cone="elliptic" impratio="100" gravity="0 0 {gravity}"/>
  <statistic center="0 0 0" extent="1.2"/>
  <visual>
    <quality shadowsize="1024"/>
    <headlight ambient="0.45 0.45 0.48" diffuse="0.12 0.12 0.12" specular="0 0 0"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1="0.75 0.82 0.9" rgb2="1 1 1"
             width="64" height="64"/>
    <texture name="checker" type="2d" builtin="checker" rgb1="0.9 0.88 0.84" rgb2="0.78 0.76 0.73"
             width="256" height="256" mark="edge" markrgb="0.7 0.68 0.66"/>
    <material name="table" texture="checker" texrepeat="6 6" reflectance="0.05"/>
    <material name="box" specular="0.25" shininess="0.4"/>
  </asset>
  <worldbody>
    <light pos="-1 -0.6 1.5" dir="0.55 0.3 -0.75" diffuse="0.6 0.58 0.55" directional="true"/>
    <camera name="view" pos="0 -1.05 0.9" xyaxes="1 0 0 0 0.68 0.73" fovy="45"/>
    <geom name="table" type="plane" size="{table} {table} 0.05" material="table"
          contype="0" conaffinity="0"/>
    <site name="goal" type="cylinder" pos="{goal} 0.001" size="0.06 0.001" rgba="0.2 0.65 0.4 0.7"/>
    <body name="box">
      <!-- a rim: the middle of the box never leaves the table, nor its declared domain -->
      <joint name="x" type="slide" axis="1 0 0" range="-{table} {table}" limited="true"/>
      <joint name="y" type="slide" axis="0 1 0" range="-{table} {table}" limited="true"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom name="box" type="box" size="{half_size}" mass="{mass}" material="box" rgba="{color} 1"
            contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <!-- solreffriction: with MuJoCo's own a sliding box hops; see test_slides_as_coulomb_says -->
    <pair name="box_table" geom1="box" geom2="table" condim="3" friction="{friction} {friction}"
          solreffriction="0.1 1"/>
  </contact>
</mujoco>
"""


def build_scene(variables: Mapping[str, Variable]) -> Scene:
    """Returns the scene in which every variable has its default."""
    model = _MODEL.format(
        table=TABLE,
        gravity=_text(variables["gravity"].default),
        mass=_text(variables["box/mass"].default),
        friction=_text(variables["box/friction"].default),
        half_size=_text(0.5 * variables["box/size"].default),
        color=_text(variables["box/color"].default),
        goal=_text(variables["goal/position"].default),
    )
    return Scene(model=model, inertia=(Solid("box", "box"),))


def _text(values: Any) -> str:
    """Returns numbers so that reading them gives the same bits."""
    return " ".join(repr(float(v)) for v in values.ravel())
