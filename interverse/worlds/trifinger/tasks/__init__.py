"""The TriFinger tasks, one file each. A row here is all that a new one needs."""

from __future__ import annotations

from interverse.registry import Entry, Registry

_HERE = "interverse.worlds.trifinger.tasks"

TASKS = Registry(
    "task",
    {
        "creative_stacked_blocks": Entry(f"{_HERE}.creative_stacked_blocks:CreativeStackedBlocks"),
        "general": Entry(f"{_HERE}.general:General"),
        "pick_and_place": Entry(f"{_HERE}.pick_and_place:PickAndPlace"),
        "picking": Entry(f"{_HERE}.picking:Picking"),
        "pushing": Entry(f"{_HERE}.pushing:Pushing"),
        "reaching": Entry(f"{_HERE}.reaching:Reaching"),
        "stacked_blocks": Entry(f"{_HERE}.stacked_blocks:StackedBlocks"),
        "stacking2": Entry(f"{_HERE}.stacking2:Stacking2"),
        "towers": Entry(f"{_HERE}.towers:Towers"),
    },
)


def load_task(name: str) -> type:
    """Returns the class of a task by its name, or by "package.module:Class" for one's own."""
    return Entry(name).load() if ":" in name else TASKS.load(name)
