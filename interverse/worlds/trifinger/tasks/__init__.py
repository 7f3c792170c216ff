"""The TriFinger tasks. A row here is all that a new one needs beside its class."""

from __future__ import annotations

from interverse.core.registry import Entry, Registry

TASKS = Registry(
    "task",
    {
        "creative_stacked_blocks": Entry(
            "interverse.worlds.trifinger.tasks.towers:CreativeStackedBlocks"
        ),
        "general": Entry("interverse.worlds.trifinger.tasks.general:General"),
        "pick_and_place": Entry("interverse.worlds.trifinger.tasks.one_block:PickAndPlace"),
        "picking": Entry("interverse.worlds.trifinger.tasks.one_block:Picking"),
        "pushing": Entry("interverse.worlds.trifinger.tasks.one_block:Pushing"),
        "reaching": Entry("interverse.worlds.trifinger.tasks.one_block:Reaching"),
        "stacked_blocks": Entry("interverse.worlds.trifinger.tasks.towers:StackedBlocks"),
        "stacking2": Entry("interverse.worlds.trifinger.tasks.towers:Stacking2"),
        "towers": Entry("interverse.worlds.trifinger.tasks.towers:Towers"),
    },
)


def load_task(name: str) -> type:
    """Returns the class of a task by its name, or by "package.module:Class" for one's own."""
    return Entry(name).load() if ":" in str(name) else TASKS.load(name)
