"""The worlds, one folder each. This table is all that importing them costs."""

from interverse.core.registry import Entry, Registry

_BLOCKS = "interverse.worlds.blocks.world:Blocks"
_FIXED = "fixed_unobserved"
_CHEMISTRY = "interverse.worlds.chemistry.world:Chemistry"
_CONTROL = "interverse.worlds.control.world:ControlWorld"
_ROOMS = "interverse.worlds.rooms.world:Rooms"
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
        "control/ball_in_cup_catch-v1": Entry(_CONTROL, {"domain": "ball_in_cup", "task": "catch"}),
        "control/cartpole_balance-v1": Entry(_CONTROL, {"domain": "cartpole", "task": "balance"}),
        "control/cartpole_balance_sparse-v1": Entry(
            _CONTROL, {"domain": "cartpole", "task": "balance_sparse"}
        ),
        "control/cartpole_swingup-v1": Entry(_CONTROL, {"domain": "cartpole", "task": "swingup"}),
        "control/cartpole_swingup_sparse-v1": Entry(
            _CONTROL, {"domain": "cartpole", "task": "swingup_sparse"}
        ),
        "control/cartpole_three_poles-v1": Entry(
            _CONTROL, {"domain": "cartpole", "task": "three_poles"}
        ),
        "control/cartpole_two_poles-v1": Entry(
            _CONTROL, {"domain": "cartpole", "task": "two_poles"}
        ),
        "control/cheetah_run-v1": Entry(_CONTROL, {"domain": "cheetah", "task": "run"}),
        "control/finger_spin-v1": Entry(_CONTROL, {"domain": "finger", "task": "spin"}),
        "control/finger_turn_easy-v1": Entry(_CONTROL, {"domain": "finger", "task": "turn_easy"}),
        "control/finger_turn_hard-v1": Entry(_CONTROL, {"domain": "finger", "task": "turn_hard"}),
        "control/fish_swim-v1": Entry(_CONTROL, {"domain": "fish", "task": "swim"}),
        "control/fish_upright-v1": Entry(_CONTROL, {"domain": "fish", "task": "upright"}),
        "control/hopper_hop-v1": Entry(_CONTROL, {"domain": "hopper", "task": "hop"}),
        "control/hopper_stand-v1": Entry(_CONTROL, {"domain": "hopper", "task": "stand"}),
        "control/humanoid_run-v1": Entry(_CONTROL, {"domain": "humanoid", "task": "run"}),
        "control/humanoid_stand-v1": Entry(_CONTROL, {"domain": "humanoid", "task": "stand"}),
        "control/humanoid_walk-v1": Entry(_CONTROL, {"domain": "humanoid", "task": "walk"}),
        "control/pendulum_swingup-v1": Entry(_CONTROL, {"domain": "pendulum", "task": "swingup"}),
        "control/reacher_easy-v1": Entry(_CONTROL, {"domain": "reacher", "task": "easy"}),
        "control/reacher_hard-v1": Entry(_CONTROL, {"domain": "reacher", "task": "hard"}),
        "control/walker_run-v1": Entry(_CONTROL, {"domain": "walker", "task": "run"}),
        "control/walker_stand-v1": Entry(_CONTROL, {"domain": "walker", "task": "stand"}),
        "control/walker_walk-v1": Entry(_CONTROL, {"domain": "walker", "task": "walk"}),
        "rooms/multi-v1": Entry(_ROOMS, {"view": "multi"}),
        "rooms/single-v1": Entry(_ROOMS, {"view": "single"}),
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
    group="interverse.worlds",
)
