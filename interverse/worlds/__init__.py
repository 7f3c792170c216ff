"""The worlds, one folder each. This table is all that importing them costs."""

from interverse.registry import Entry, Registry

_BLOCKS = "interverse.worlds.blocks.world:Blocks"
_FIXED = "fixed_unobserved"
_CHEMISTRY = "interverse.worlds.chemistry.world:Chemistry"
_SLIDER = "interverse.worlds.tutorial.world:Slider"
_TRIFINGER = "interverse.worlds.trifinger.world:TriFinger"

WORLDS = Registry(
    "world",
    {
        "blocks/fixed_unobserved-3-v1": Entry(_BLOCKS, {"setting": _FIXED, "objects": 3}),
        "blocks/fixed_unobserved-4-v1": Entry(_BLOCKS, {"setting": _FIXED, "objects": 4}),
        "blocks/fixed_unobserved-5-v1": Entry(_BLOCKS, {"setting": _FIXED, "objects": 5}),
        "blocks/observed-3-v1": Entry(_BLOCKS, {"setting": "observed", "objects": 3}),
        "blocks/observed-4-v1": Entry(_BLOCKS, {"setting": "observed", "objects": 4}),
        "blocks/observed-5-v1": Entry(_BLOCKS, {"setting": "observed", "objects": 5}),
        "blocks/unobserved-3-v1": Entry(_BLOCKS, {"setting": "unobserved", "objects": 3}),
        "blocks/unobserved-4-v1": Entry(_BLOCKS, {"setting": "unobserved", "objects": 4}),
        "blocks/unobserved-5-v1": Entry(_BLOCKS, {"setting": "unobserved", "objects": 5}),
        "chemistry/chain-v1": Entry(_CHEMISTRY, {"graph": "chain"}),
        "chemistry/collider-v1": Entry(_CHEMISTRY, {"graph": "collider"}),
        "chemistry/custom-v1": Entry(_CHEMISTRY, {}),
        "chemistry/full-v1": Entry(_CHEMISTRY, {"graph": "full"}),
        "chemistry/random-v1": Entry(_CHEMISTRY, {"graph": "random"}),
        "trifinger/creative_stacked_blocks-v1": Entry(
            _TRIFINGER, {"task": "creative_stacked_blocks"}
        ),
        "trifinger/general-v1": Entry(_TRIFINGER, {"task": "general"}),
        "trifinger/pick_and_place-v1": Entry(_TRIFINGER, {"task": "pick_and_place"}),
        "trifinger/picking-v1": Entry(_TRIFINGER, {"task": "picking"}),
        "trifinger/pushing-v1": Entry(_TRIFINGER, {"task": "pushing"}),
        "trifinger/reaching-v1": Entry(_TRIFINGER, {"task": "reaching"}),
        "trifinger/stacked_blocks-v1": Entry(_TRIFINGER, {"task": "stacked_blocks"}),
        "trifinger/stacking2-v1": Entry(_TRIFINGER, {"task": "stacking2"}),
        "trifinger/towers-v1": Entry(_TRIFINGER, {"task": "towers"}),
        "tutorial/slider-v1": Entry(_SLIDER, {}),
    },
)
