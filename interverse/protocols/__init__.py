"""What a test holds fixed, what it intervenes on, how often: literal tables, and `evaluate`."""

from interverse.registry import Entry, Registry

_MANIPULATION = "interverse.protocols.manipulation"

# The protocols of a task: a tuple of `Protocol`.
PROTOCOLS = Registry(
    "task with protocols",
    {
        "trifinger/creative_stacked_blocks-v1": Entry(f"{_MANIPULATION}:STACKED"),
        "trifinger/general-v1": Entry(f"{_MANIPULATION}:GENERAL"),
        "trifinger/pick_and_place-v1": Entry(f"{_MANIPULATION}:SINGLE_BLOCK"),
        "trifinger/picking-v1": Entry(f"{_MANIPULATION}:SINGLE_BLOCK"),
        "trifinger/pushing-v1": Entry(f"{_MANIPULATION}:SINGLE_BLOCK"),
        "trifinger/reaching-v1": Entry(f"{_MANIPULATION}:REACHING"),
        "trifinger/stacked_blocks-v1": Entry(f"{_MANIPULATION}:STACKED"),
        "trifinger/stacking2-v1": Entry(f"{_MANIPULATION}:STACKING"),
        "trifinger/towers-v1": Entry(f"{_MANIPULATION}:TOWERS"),
        "tutorial/slider-v1": Entry("interverse.protocols.tutorial:SLIDER"),
    },
)
