"""Words of CausalWorld and what they are called here, for messages about unknown names."""

from __future__ import annotations

from collections.abc import Mapping

_BLOCK, _GOAL = "block_0/...", "goal_0/..."

FORMER: Mapping[str, str] = {
    # variables
    "tool_block": _BLOCK,
    "tool_block_1": _BLOCK,
    "tool_block_2": "block_1/...",
    "goal_block": _GOAL,
    "goal_block_1": _GOAL,
    "goal_block_2": "goal_1/...",
    "goal_60": _GOAL,
    "goal_120": "goal_1/...",
    "goal_300": "goal_2/...",
    "euler_orientation": "orientation, a quaternion x, y, z, w",
    "floor_color": "floor/color",
    "floor_friction": "floor/friction",
    "stage_color": "stage/color",
    "stage_friction": "stage/friction",
    "robot_height": "robot/height",
    "blocks_mass": "blocks/mass",
    "number_of_blocks_in_tower": "tower/counts",
    "tower_dims": "tower/dims",
    "tower_center": "tower/center",
    "num_of_levels": "stack/levels",
    "blocks_min_size": "stack/min_size",
    "max_level_width": "stack/max_width",
    "nums_objects": "general/count",
    "tool_block_size": "general/size, or block_0/size",
    "number_of_obstacles": "obstacles/count",
    # arguments
    "task_generator_id": "the id: make('trifinger/pushing-v1')",
    "variables_space": "space='A', 'B' or 'A_B'",
    "variable_space": "space='A', 'B' or 'A_B'",
    "space_a": "A",
    "space_b": "B",
    "space_a_b": "A_B",
    "activate_sparse_reward": "sparse_reward",
    "camera_indicies": "cameras",
    "max_episode_length": "max_steps, which is one more",
    "enable_visualization": "render_mode='human'",
    "seed": "reset(seed=...)",
    "data_recorder": "the wrapper interverse.rollouts.RecordEpisodes",
    "tool_block_mass": "defaults={'block_0/mass': ...}",
    "tool_block_position": "defaults={'block_0/cartesian_position': ...}",
    "tool_block_orientation": "defaults={'block_0/orientation': ...}",
    "tool_block_1_position": "defaults={'block_0/cartesian_position': ...}",
    "tool_block_1_orientation": "defaults={'block_0/orientation': ...}",
    "tool_block_2_position": "defaults={'block_1/cartesian_position': ...}",
    "tool_block_2_orientation": "defaults={'block_1/orientation': ...}",
    "goal_block_position": "defaults={'goal_0/cartesian_position': ...}",
    "goal_block_orientation": "defaults={'goal_0/orientation': ...}",
    "goal_height": "defaults={'goal_0/cartesian_position': (0, 0, height)}",
    "goal_position": "defaults={'goal_tower/cylindrical_position': ...}",
    "goal_orientation": "defaults={'goal_tower/orientation': ...}",
    "default_goal_60": "defaults={'goal_0/cartesian_position': ...}",
    "default_goal_120": "defaults={'goal_1/cartesian_position': ...}",
    "default_goal_300": "defaults={'goal_2/cartesian_position': ...}",
    "joint_positions": "defaults={'joint_positions': ...}",
}


def former_word(given: object) -> str:
    """Returns the sentence that translates a word of CausalWorld; empty for other words.

    >>> former_word("tool_block/mass")
    " CausalWorld's 'tool_block' is block_0/... here."
    """
    word = str(given).partition("/")[0]
    return f" CausalWorld's {word!r} is {FORMER[word]} here." if word in FORMER else ""
