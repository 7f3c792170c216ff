"""Agents that learn from pictures, and the table of augmentations they learn with."""

from interverse.core.registry import Entry, Registry

_CROP = "interverse.agents.pixel.augment:PadCrop"
_TRANSLATE = "interverse.agents.pixel.augment:Translate"
_CUTOUT = "interverse.agents.pixel.augment:Cutout"
_TURN = "interverse.agents.pixel.augment:Turn"

# The eleven that the paper compares are tagged; the order of its table is not kept here.
AUGMENTATIONS = Registry(
    "augmentation",
    {
        "color_jitter": Entry("interverse.agents.pixel.augment:ColorJitter"),
        "cutout": Entry(_CUTOUT, {"color": False}),
        "cutout_color": Entry(_CUTOUT, {"color": True}, ("paper",)),
        "drq": Entry(_CROP, {"pad": 4, "noisy": True}, ("paper",)),
        "drq_no_noise": Entry(_CROP, {"pad": 4, "noisy": False}, ("paper",)),
        "gamma": Entry("interverse.agents.pixel.augment:Gamma"),
        "grayscale": Entry("interverse.agents.pixel.augment:Grayscale"),
        "horizontal_flip": Entry(_TURN, {"by": "sides"}),
        "identity": Entry("interverse.agents.pixel.augment:Identity"),
        "large_drq": Entry(_CROP, {"pad": 12, "noisy": True}, ("paper",)),
        "large_drq_no_noise": Entry(_CROP, {"pad": 12, "noisy": False}, ("paper",)),
        "large_translate": Entry(_TRANSLATE, {"reach": 12, "reach_in_code": 8}, ("paper",)),
        "network_randomization": Entry("interverse.agents.pixel.augment:NetworkRandomization"),
        "rad": Entry("interverse.agents.pixel.augment:ResizeCrop", {}, ("paper",)),
        "random_convolution": Entry("interverse.agents.pixel.augment:RandomConvolution"),
        "rotate": Entry(_TURN, {"by": "quarters"}, ("paper",)),
        "translate": Entry(_TRANSLATE, {"reach": 4, "reach_in_code": 4}, ("paper",)),
        "vertical_flip": Entry(_TURN, {"by": "half"}, ("paper",)),
        "window": Entry("interverse.agents.pixel.augment:Window", {}, ("paper",)),
    },
)

__all__ = ["AUGMENTATIONS"]
