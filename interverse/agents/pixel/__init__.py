"""Agents that learn from pictures, and the table of augmentations they learn with."""

from interverse.core.registry import Entry, Registry

_CROP = "interverse.agents.pixel.geometry:PadCrop"
_TRANSLATE = "interverse.agents.pixel.geometry:Translate"
_CUTOUT = "interverse.agents.pixel.geometry:Cutout"
_TURN = "interverse.agents.pixel.geometry:Turn"

# The eleven that the paper compares are tagged; the order of its table is not kept here.
AUGMENTATIONS = Registry(
    "augmentation",
    {
        "color_jitter": Entry("interverse.agents.pixel.recolor:ColorJitter"),
        "cutout": Entry(_CUTOUT, {"color": False}),
        "cutout_color": Entry(_CUTOUT, {"color": True}, ("paper",)),
        "drq": Entry(_CROP, {"pad": 4, "noise": True}, ("paper",)),
        "drq_no_noise": Entry(_CROP, {"pad": 4, "noise": False}, ("paper",)),
        "gamma": Entry("interverse.agents.pixel.recolor:Gamma"),
        "grayscale": Entry("interverse.agents.pixel.recolor:Grayscale"),
        "horizontal_flip": Entry("interverse.agents.pixel.geometry:MirrorSides"),
        "identity": Entry("interverse.agents.pixel.geometry:Identity"),
        "large_drq": Entry(_CROP, {"pad": 12, "noise": True}, ("paper",)),
        "large_drq_no_noise": Entry(_CROP, {"pad": 12, "noise": False}, ("paper",)),
        "large_translate": Entry(_TRANSLATE, {"reach": 12, "reach_in_code": 8}, ("paper",)),
        "network_randomization": Entry("interverse.agents.pixel.recolor:NetworkRandomization"),
        "rad": Entry("interverse.agents.pixel.geometry:ResizeCrop", {}, ("paper",)),
        "random_convolution": Entry("interverse.agents.pixel.recolor:RandomConvolution"),
        "rotate": Entry(_TURN, {"half_only": False}, ("paper",)),
        "translate": Entry(_TRANSLATE, {"reach": 4, "reach_in_code": 4}, ("paper",)),
        "vertical_flip": Entry(_TURN, {"half_only": True}, ("paper",)),
        "window": Entry("interverse.agents.pixel.geometry:Window", {}, ("paper",)),
    },
)

__all__ = ["AUGMENTATIONS"]
