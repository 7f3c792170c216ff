"""A look inside a model's source, compiled: what editing a compiled model must equal."""

import io

import mujoco
import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.scene import PICTURE_SIZE, domain_spec
from interverse.worlds.control.suite import quiet


def rebuilt_model(domain, look, gallery):
    """The domain's model with everything of the look written into its source."""
    spec, has = domain_spec(domain), DOMAINS[domain]
    _surfaces(spec, look, gallery)
    for factor, material in (("body", "self"), ("effector", "effector"), ("target", "target")):
        if f"{factor}/color" in look:
            spec.material(material).rgba = look[f"{factor}/color"]
    spec.material("grid").reflectance = float(look["reflectance"])
    camera, lamp = spec.camera(has.camera), spec.light(has.lamp)
    if np.any(look["camera/rotation"]):
        compiled = quietly(spec)
        default = compiled.cam_quat[compiled.camera(has.camera).id][[1, 2, 3, 0]]
        turned = Rotation.from_quat(default) * Rotation.from_rotvec(look["camera/rotation"])
        camera.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
        camera.quat = turned.as_quat()[[3, 0, 1, 2]]
    camera.pos, lamp.pos = look["camera/position"], look["light/position"]
    head = spec.visual.headlight
    head.ambient, head.diffuse = look["light/ambient"], look["light/diffuse"]
    head.specular = look["light/specular"]
    if "light/lamp_diffuse" in look:
        lamp.diffuse, lamp.specular = look["light/lamp_diffuse"], look["light/lamp_specular"]
    return quietly(spec)


def quietly(spec):
    with quiet():
        return spec.compile()


def _surfaces(spec, look, gallery):
    for part, name in (("floor", "grid"), ("background", "skybox")):
        if f"{part}/texture" not in look:
            continue
        texture, index = spec.texture(name), int(look[f"{part}/texture"])
        if index >= 0:
            stream = io.BytesIO()
            Image.fromarray(np.asarray(gallery.picture(part, index))).save(stream, "png")
            spec.assets[f"{part}.png"] = stream.getvalue()
            texture.file, texture.builtin = f"{part}.png", mujoco.mjtBuiltin.mjBUILTIN_NONE
            texture.mark = mujoco.mjtMark.mjMARK_NONE
            texture.width = texture.height = 0
            continue
        colours = [look[f"{part}/color_{i}"] for i in (1, 2)]
        if not np.allclose([texture.rgb1, texture.rgb2], colours):
            texture.rgb1, texture.rgb2 = colours
            texture.width = texture.height = PICTURE_SIZE
