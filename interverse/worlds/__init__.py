"""The worlds, one folder each. This table is all that importing them costs."""

from interverse.registry import Entry, Registry

_CHEMISTRY = "interverse.worlds.chemistry.world:Chemistry"
_SLIDER = "interverse.worlds.tutorial.world:Slider"

WORLDS = Registry(
    "world",
    {
        "chemistry/chain-v1": Entry(_CHEMISTRY, {"graph": "chain"}),
        "chemistry/collider-v1": Entry(_CHEMISTRY, {"graph": "collider"}),
        "chemistry/custom-v1": Entry(_CHEMISTRY, {}),
        "chemistry/full-v1": Entry(_CHEMISTRY, {"graph": "full"}),
        "chemistry/random-v1": Entry(_CHEMISTRY, {"graph": "random"}),
        "tutorial/slider-v1": Entry(_SLIDER, {}),
    },
)
