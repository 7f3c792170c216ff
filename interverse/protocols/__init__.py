"""What a test holds fixed, what it intervenes on, how often: literal tables, and `evaluate`."""

from interverse.registry import Entry, Registry

# The protocols of a task: a tuple of `Protocol`.
PROTOCOLS = Registry(
    "task with protocols",
    {
        "trifinger/creative_stacked_blocks-v1": Entry("interverse.protocols.manipulation:STACKED"),
        "trifinger/general-v1": Entry("interverse.protocols.manipulation:GENERAL"),
        "trifinger/pick_and_place-v1": Entry("interverse.protocols.manipulation:SINGLE_BLOCK"),
        "trifinger/picking-v1": Entry("interverse.protocols.manipulation:SINGLE_BLOCK"),
        "trifinger/pushing-v1": Entry("interverse.protocols.manipulation:SINGLE_BLOCK"),
        "trifinger/reaching-v1": Entry("interverse.protocols.manipulation:REACHING"),
        "trifinger/stacked_blocks-v1": Entry("interverse.protocols.manipulation:STACKED"),
        "trifinger/stacking2-v1": Entry("interverse.protocols.manipulation:STACKING"),
        "trifinger/towers-v1": Entry("interverse.protocols.manipulation:TOWERS"),
        "tutorial/slider-v1": Entry("interverse.protocols.tutorial:SLIDER"),
    },
)
