"""The suite's models with what the original changed for every look, and room for other pictures.

Against the stock suite: the floor's checker is drawn at 800 pixels and repeated three times a
metre, cheetah's floor reaches the horizon, ball_in_cup's and pendulum's camera and reacher's lamp
stand elsewhere. All of it is seen and none of it is felt: collision planes are infinite.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.worlds.control.domains import DOMAINS, TILT_DEFAULT

PICTURE_SIZE = 256  # pixels of a floor picture and of a face of the sky
CHECKER_SIZE = 800
REPEATS = 3.0  # of the floor's picture in a metre
FLOOR, FLOOR_PICTURE = "grid", "floor_picture"
SKY, SKY_PICTURE = "skybox", "sky_picture"
STOCK_TEXTURES = {FLOOR_PICTURE: FLOOR, SKY_PICTURE: SKY}  # what a picture stands in for
STARS = 0.01  # of the sky's pixels


def domain_spec(domain: str, poles: int = 1) -> Any:
    """Returns the editable model of a domain as every look starts from it."""
    module = importlib.import_module(f"dm_control.suite.{domain}")
    count = {} if poles == 1 else {"num_poles": poles}
    text, files = module.get_model_and_assets(**count)
    if isinstance(text, bytes):
        text = text.decode()
    spec = mujoco.MjSpec.from_string(text, include=files)
    _remaster(spec, domain, poles)
    return spec


def compile_domain(domain: str, poles: int = 1) -> Any:
    """Returns the compiled model, with one more floor and sky texture to write pictures into."""
    spec = domain_spec(domain, poles)
    flat = {"builtin": mujoco.mjtBuiltin.mjBUILTIN_FLAT, "width": PICTURE_SIZE}
    spec.add_texture(
        name=FLOOR_PICTURE, type=mujoco.mjtTexture.mjTEXTURE_2D, height=PICTURE_SIZE, **flat
    )
    if DOMAINS[domain].background:
        # A built-in sky has six faces, each of which gets the picture.
        spec.add_texture(
            name=SKY_PICTURE,
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            height=PICTURE_SIZE,
            **flat,
        )
    return spec.compile()


def _remaster(spec: Any, name: str, poles: int) -> None:
    domain = DOMAINS[name]
    checker = spec.texture(FLOOR)
    checker.width = checker.height = CHECKER_SIZE
    spec.material(FLOOR).texrepeat = [REPEATS, REPEATS]
    if domain.floor_half_width is not None:
        floor = spec.geom(domain.floor)
        floor.size = [floor.size[0], domain.floor_half_width, floor.size[2]]
    if poles == 1:  # the suite has moved the camera back for more
        spec.camera(domain.camera).pos = domain.camera_at
    if domain.turn == "tilt":
        spec.camera(domain.camera).alt.xyaxes = [1.0, 0.0, 0.0, 0.0, TILT_DEFAULT, 1.0]
    spec.light(domain.lamp).pos = domain.lamp_at


@functools.cache
def checker_parts() -> NDArray[np.intp]:
    """Returns which of the checker's three colours each pixel has: first, second, lines."""
    spec = mujoco.MjSpec()
    spec.add_texture(
        name=FLOOR,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        mark=mujoco.mjtMark.mjMARK_EDGE,
        width=PICTURE_SIZE,
        height=PICTURE_SIZE,
        rgb1=[1.0, 0.0, 0.0],
        rgb2=[0.0, 1.0, 0.0],
        markrgb=[0.0, 0.0, 1.0],
    )
    return spec.compile().tex_data.reshape(PICTURE_SIZE, PICTURE_SIZE, 3).argmax(axis=-1)


@functools.cache
def sky_stars() -> NDArray[np.intp]:
    """Returns which pixels of the six faces of a sky MuJoCo makes stars, counted from the first."""
    spec = mujoco.MjSpec()
    spec.add_texture(
        name=SKY,
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        mark=mujoco.mjtMark.mjMARK_RANDOM,
        width=PICTURE_SIZE,
        height=PICTURE_SIZE,
        rgb1=[0.0, 0.0, 0.0],
        rgb2=[0.0, 0.0, 0.0],
        markrgb=[1.0, 1.0, 1.0],
        random=STARS,
    )
    return np.flatnonzero(spec.compile().tex_data.reshape(-1, 3).any(axis=-1))
