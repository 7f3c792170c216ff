"""Protocols of tests: literal tables of what is intervened on, and `evaluate`."""

from interverse.core.registry import Entry, Registry

_REMASTERED = "interverse.protocols.remastered"

# The protocols of a task: a tuple of `Protocol`.
PROTOCOLS = Registry(
    "task with protocols",
    {
        "blocks/observed-3-v1": Entry("interverse.protocols.tables:BLOCKS"),
        "blocks/observed-4-v1": Entry("interverse.protocols.tables:BLOCKS"),
        "blocks/observed-5-v1": Entry("interverse.protocols.tables:BLOCKS"),
        "blocks/unobserved-3-v1": Entry("interverse.protocols.tables:HIDDEN_WEIGHTS"),
        "blocks/unobserved-4-v1": Entry("interverse.protocols.tables:HIDDEN_WEIGHTS"),
        "blocks/unobserved-5-v1": Entry("interverse.protocols.tables:HIDDEN_WEIGHTS"),
        "control/ball_in_cup_catch-v1": Entry(f"{_REMASTERED}:BALL_IN_CUP"),
        "control/cartpole_balance-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cartpole_balance_sparse-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cartpole_swingup-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cartpole_swingup_sparse-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cartpole_three_poles-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cartpole_two_poles-v1": Entry(f"{_REMASTERED}:CARTPOLE"),
        "control/cheetah_run-v1": Entry(f"{_REMASTERED}:CHEETAH"),
        "control/finger_spin-v1": Entry(f"{_REMASTERED}:FINGER"),
        "control/finger_turn_easy-v1": Entry(f"{_REMASTERED}:FINGER"),
        "control/finger_turn_hard-v1": Entry(f"{_REMASTERED}:FINGER"),
        "control/fish_swim-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/fish_upright-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/hopper_hop-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/hopper_stand-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/humanoid_run-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/humanoid_stand-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/humanoid_walk-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/pendulum_swingup-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/reacher_easy-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/reacher_hard-v1": Entry(f"{_REMASTERED}:CONTROL"),
        "control/walker_run-v1": Entry(f"{_REMASTERED}:WALKER"),
        "control/walker_stand-v1": Entry(f"{_REMASTERED}:WALKER"),
        "control/walker_walk-v1": Entry(f"{_REMASTERED}:WALKER"),
        "rooms/multi-v1": Entry("interverse.protocols.tables:ROOMS"),
        "rooms/single-v1": Entry("interverse.protocols.tables:ROOMS"),
        "trifinger/creative_stacked_blocks-v1": Entry("interverse.protocols.tables:STACKED"),
        "trifinger/general-v1": Entry("interverse.protocols.tables:GENERAL"),
        "trifinger/pick_and_place-v1": Entry("interverse.protocols.tables:SINGLE_BLOCK"),
        "trifinger/picking-v1": Entry("interverse.protocols.tables:PICKING"),
        "trifinger/pushing-v1": Entry("interverse.protocols.tables:SINGLE_BLOCK"),
        "trifinger/reaching-v1": Entry("interverse.protocols.tables:REACHING"),
        "trifinger/stacked_blocks-v1": Entry("interverse.protocols.tables:STACKED"),
        "trifinger/stacking2-v1": Entry("interverse.protocols.tables:STACKING"),
        "trifinger/towers-v1": Entry("interverse.protocols.tables:TOWERS"),
        "tutorial/slider-v1": Entry("interverse.protocols.tables:SLIDER"),
    },
)
