"""Pictures of every world of a MuJoCo Warp engine at once, by Warp's ray caster on its device.

Shapes, colours, textures, lights and cameras are those of each world; shading is Warp's own, so
pictures are like MuJoCo's and not the same to the pixel.
"""

from __future__ import annotations

from typing import Any, final

import mujoco
import torch

from interverse.sim.elements import element_ids
from interverse.sim.engine import Names
from interverse.sim.warp_device import load_warp, quiet
from interverse.sim.warp_fields import wp_to_torch


@final
class WarpRenderer:
    """Some cameras of a model, each drawing square pictures of one size."""

    def __init__(self, model: mujoco.MjModel, data: Any, cameras: Names, size: int) -> None:
        """Makes room for the pictures.

        Args:
            model: as the scene has it.
            data: Warp's, of every world.
            cameras: in the order of the pictures.
            size: pixels a side.
        """
        warp, mujoco_warp = load_warp()
        ids = element_ids(model, "camera", cameras).tolist()
        self._order = [sorted(ids).index(i) for i in ids]  # Warp draws them in the model's order
        self._size, self._device = size, data.qpos.device
        with quiet(), warp.ScopedDevice(self._device):
            self._context = mujoco_warp.create_render_context(
                model,
                nworld=data.nworld,
                cam_res=(size, size),
                render_rgb=True,
                render_depth=False,
                render_seg=False,
                cam_active=sorted(ids),
                use_shadows=bool(model.light_castshadow.any()),
                use_precomputed_rays=True,
            )

    def draw(self, model: Any, data: Any) -> torch.Tensor:
        """Returns the pictures as they are now, uint8 (N, cameras, size, size, 3)."""
        warp, mujoco_warp = load_warp()
        with quiet(), warp.ScopedDevice(self._device):
            mujoco_warp.kinematics(model, data)
            mujoco_warp.com_pos(model, data)
            mujoco_warp.camlight(model, data)
            mujoco_warp.refit_bvh(model, data, self._context)
            mujoco_warp.render(model, data, self._context)
        packed = wp_to_torch(self._context.rgb_data).view(torch.uint8)  # b, g, r, alpha
        shape = (data.nworld, len(self._order), self._size, self._size, 4)
        return packed.reshape(shape)[:, self._order][..., [2, 1, 0]]
