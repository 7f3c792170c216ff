"""TriFinger worlds against more numbers of the original, recorded by running it.

Beside the deviations that `test_trifinger_physics` lists:

- A drop may sink into the floor by what it travels in one substep, as the original's does: both see
  the touch only once it has happened, unless the original's contact margin saw it coming.
- A block stands on its four corners. The original's has few contact points, often one near the
  middle that carries most of the weight: there a spinning block turns five times as far before it
  stops, and a block hit near its top digs its leading edge into the floor, where ours tips over it
  and hops. Both follow from where the points are, not from friction: slides are the same.
- Tip commands move as ours do, not as the original's: its inverse kinematics is not exact, adds the
  floor's height twice, and converges the more slowly the longer a step is.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import interverse as iv
from interverse.actors.actor import apply
from interverse.envs.wrappers import ObjectSelector, StartingState
from interverse.protocols.protocol import select_protocols
from interverse.worlds.trifinger import robot
from interverse.worlds.trifinger.tasks.building import tower

ORACLE = json.loads((Path(__file__).parent / "data" / "trifinger_more.json").read_text())
RAW = {"normalize_observations": False, "normalize_actions": False}
FINGERS, LINKS = ("60", "120", "300"), ("base", "upper", "middle", "lower")
OBJECTS = {
    "tool_block": "block_0",
    "tool_block_1": "block_0",
    "tool_block_2": "block_1",
    "tool_0": "block_0",
    "tool_level_0_num_0": "block_0",
    "tool_level_0_col_0_row_0": "block_0",
    "goal_block": "goal_0",
    "goal_block_1": "goal_0",
    "goal_block_2": "goal_1",
    "goal_60": "goal_0",
    "goal_120": "goal_1",
    "goal_300": "goal_2",
    "goal_tower": "goal_tower",
    "obstacle": "obstacle",
} | {
    f"robot_finger_{name}_link_{j}": f"finger_{i}/{LINKS[j]}"
    for i, name in enumerate(FINGERS)
    for j in (1, 2, 3)
}
ALONE = {
    "floor_color": "floor/color",
    "stage_color": "stage/color",
    "floor_friction": "floor/friction",
    "stage_friction": "stage/friction",
    "joint_positions": "joint_positions",
    "number_of_obstacles": "obstacles/count",
    "number_of_blocks_in_tower": "tower/counts",
    "tower_dims": "tower/dims",
    "tower_center": "tower/center",
    "blocks_mass": "blocks/mass",
    "robot_height": "robot/height",
    "stack_levels": "stack/levels",
    "blocks_min_size": "stack/min_size",
    "max_level_width": "stack/max_width",
    "nums_objects": "general/count",
    "tool_block_size": "general/size",
}
SPACES = {"space_a": "A", "space_b": "B", "space_a_b": "A_B"}


def samples(key):
    rows = ORACLE[key]["samples"]
    return pytest.mark.parametrize("sample", rows, ids=[str(i) for i in range(len(rows))])


# --- motion --------------------------------------------------------------------------------------


@samples("free_motion")
def test_free_motion_is_the_originals(envs, sample):
    env = envs(
        "reaching",
        skip_frame=3,
        normalize_observations=False,
        normalize_actions=sample["normalize_actions"],
        action_mode=sample["action_mode"],
    )
    for action, joints in zip(sample["actions"], sample["joints"], strict=True):
        seen = env.step(np.array(action, dtype=np.float32))[0]
        assert seen[1:10] == pytest.approx(joints, abs=1e-6)  # float32 actions are 1e-7 off
    assert seen[10:19] == pytest.approx(sample["velocities_last"], abs=1e-4)


def test_a_released_policys_reach_earns_and_scores_the_same(envs):
    recorded = ORACLE["reaching_open_loop"]
    env = envs("reaching", skip_frame=3)
    env.unwrapped.do({f"goal_{i}/cylindrical_position": p for i, p in enumerate(recorded["goals"])})
    scores, returned = [], 0.0
    for action in recorded["actions"]:
        _, reward, _, _, info = env.step(np.array(action, dtype=np.float32))
        scores.append(info["fractional_success"])
        returned += reward
    assert scores[9::10] == pytest.approx(recorded["fractional_success"], abs=1e-5)
    assert returned == pytest.approx(recorded["returned"], abs=1e-2)  # weights are 1e5


@samples("finger_touches")
def test_fingers_meet_walls_floor_and_each_other_when_the_originals_do(envs, sample):
    env = envs("reaching", skip_frame=1, contact_sensors=True, **RAW)
    world, met = env.unwrapped.world, sample["touched"]
    actions = np.repeat(np.array(sample["actions"], dtype=np.float32), 10, axis=0)
    for k in range(1, sample["substep"] + 3):
        seen = env.step(actions[k - 1])[0]
        if k == sample["substep"] - 1:
            assert seen[1:10] == pytest.approx(sample["joints_before"], abs=1e-6)
        if k >= sample["substep"] and _touches(world, met):
            return
    pytest.fail(f"no finger met the {met} within two substeps of the recorded one")


def _touches(world, met):
    fingers = [f"finger_{i}" for i in range(3)]
    pairs = [(met, f) for f in fingers]
    if met == "finger":
        pairs = [(a, b) for a in fingers for b in fingers if a < b]
    return any(world.contact(a, b)[0] for a, b in pairs)


@samples("policy_touches")
def test_a_released_policy_touches_its_block_on_the_recorded_step(envs, sample):
    env = envs(sample["task"], skip_frame=3)
    start = {f"{OBJECTS[n]}/cylindrical_position": p for n, p in sample["start"].items()}
    env.unwrapped.do(start, check=False)
    values = env.unwrapped.values
    place = values["block_0/cartesian_position"].copy()
    touched = None
    for k, action in enumerate(sample["actions"], start=1):
        env.step(np.array(action, dtype=np.float32))
        if k == sample["touch"] - 1:
            assert values["joint_positions"] == pytest.approx(sample["joints_before"], abs=1e-5)
        moved = np.hypot(*(values["block_0/cartesian_position"] - place)[:2])
        if touched is None and moved > 3e-4:
            touched = k
    assert touched is not None
    assert abs(touched - sample["touch"]) <= 1


def _fall(env, height, *, raised=False):
    """Returns heights of a released block after each of 80 substeps."""
    start = {"block_0/cartesian_position": (0.0, -0.08, height)}
    if raised:
        start["joint_positions"] = robot.RAISED
    env.unwrapped.do(start, check=False)
    hold = env.unwrapped.values["joint_positions"].astype(np.float32)
    return np.array([env.step(hold)[0][34] for _ in range(80)])


@samples("drop_paths")
def test_a_block_falls_freely_as_the_originals_does(envs, sample):
    recorded = np.array(sample["z"])
    heights = _fall(envs("pushing", skip_frame=1, **RAW), sample["height"])
    falling = recorded > 0.0335  # its margin sees the floor a little above
    assert heights[falling] == pytest.approx(recorded[falling], abs=1e-6)
    assert heights[-1] == pytest.approx(recorded[-1], abs=1e-3)
    assert heights[np.argmin(heights) :].max() < 0.0325 + 1e-4  # no bounce


def test_drops_sink_by_no_more_than_a_substeps_travel_and_settle(envs):
    recorded = ORACLE["drop_dips"]
    both = []
    for height, dip in zip(recorded["heights"], recorded["dips_mm"], strict=True):
        heights = _fall(envs("pushing", skip_frame=1, **RAW), height)
        ours = 1e3 * (0.0325 - heights.min())
        travel = 1e3 * robot.SUBSTEP * np.sqrt(2 * 9.81 * (height - 0.0325))
        assert ours <= travel + 0.1  # the original's own go beyond: 9.77 mm at 0.255 m
        assert heights[-1] == pytest.approx(0.0325, abs=1.5e-3)
        both.append((ours, dip))
    same = [abs(a - b) < 0.02 for a, b in both]
    assert sum(same) >= 12  # of 29: those that the original did not see coming


@samples("thrown")
def test_a_thrown_block_flies_and_turns_as_the_originals(envs, sample):
    env = envs("pushing", skip_frame=1, **RAW)
    env.unwrapped.do({"block_0/size": sample["size"]}, check=False)
    env.unwrapped.do({f"block_0/{k}": v for k, v in sample["pose"].items()}, check=False)
    hold = np.array(robot.REST, dtype=np.float32)
    seen = [env.step(hold)[0] for _ in range(25)]
    for k, row in zip((0, 8, 16, 24), sample["rows"], strict=True):
        ours, recorded = seen[k][32:45], np.array(row)
        recorded[3:7] *= np.sign(ours[3:7] @ recorded[3:7])  # a quaternion and its negative are one
        assert ours == pytest.approx(recorded, abs=1e-6)


@samples("link_masses")
def test_link_masses_act_as_in_the_original(envs, sample):
    env = envs("pushing", skip_frame=1, **RAW)
    names = [f"finger_{i}/{link}/mass" for i in range(3) for link in LINKS[1:]]
    env.unwrapped.do(dict(zip(names, sample["masses"], strict=True)), check=False)
    target = np.array(sample["target"], dtype=np.float32)
    seen = [env.step(target)[0][1:10] for _ in range(40)]
    assert np.array(seen)[[9, 19, 39]] == pytest.approx(np.array(sample["rows"]), abs=1e-6)


@samples("gravity")
def test_gravity_acts_as_in_the_original(envs, sample):
    env = envs("pushing", skip_frame=1, **RAW)
    env.unwrapped.do({"gravity": sample["gravity"]})
    env.unwrapped.do({"block_0/cartesian_position": (0.0, 0.0, 0.18)}, check=False)
    hold = np.array(robot.REST, dtype=np.float32)
    seen = np.array([env.step(hold)[0] for _ in range(30)])[[9, 29]]
    assert seen[:, 1:10] == pytest.approx(np.array(sample["joints"]), abs=1e-6)
    assert seen[:, 34] == pytest.approx(sample["height"], abs=1e-6)


@samples("slides")
def test_blocks_slide_as_far_as_the_originals(envs, sample):
    env = envs("pushing", skip_frame=1, **RAW)
    causes = {
        "joint_positions": robot.RAISED,
        "floor/friction": sample["floor"],
        "block_0/friction": sample["block"],
        "block_0/mass": sample["mass"],
    }
    env.unwrapped.do(causes, check=False)
    hold = np.array(robot.RAISED, dtype=np.float32)
    start = [env.step(hold)[0][32:35] for _ in range(30)][-1]
    way = np.array([np.cos(sample["angle"]), np.sin(sample["angle"]), 0.0])
    env.unwrapped.do({"block_0/linear_velocity": sample["speed"] * way}, check=False)
    end = [env.step(hold)[0][32:35] for _ in range(120)][-1]
    recorded = sample["distance"]
    ours = np.hypot(*(end - start)[:2])
    # Coulomb's law alone; the original's block creeps a little further before it stops; one
    # slide of the eight, from 20.8 mm, is 10.4% short
    assert ours == pytest.approx(recorded, abs=max(0.11 * recorded, 1.2e-3))


@samples("spins")
def test_a_spinning_block_stops_and_sooner_than_the_originals(envs, sample):
    env = envs("pushing", skip_frame=1, **RAW)
    env.unwrapped.do({"joint_positions": robot.RAISED}, check=False)
    hold = np.array(robot.RAISED, dtype=np.float32)
    for _ in range(30):
        env.step(hold)
    env.unwrapped.do({"block_0/angular_velocity": (0.0, 0.0, sample["speed"])}, check=False)
    seen = [env.step(hold)[0] for _ in range(60)][-1]
    turned = 2 * np.arctan2(seen[37], seen[38])
    assert 0.1 * sample["angle"] < turned < sample["angle"]
    assert abs(seen[44]) < 0.01  # at rest


@samples("tilts")
def test_a_tilted_block_lands_on_the_face_the_originals_does(envs, sample):
    env = envs("stacking2", skip_frame=1, **RAW)
    turn = Rotation.from_rotvec((sample["angle"], 0.0, 0.0)).as_quat()
    pose = {"block_0/cartesian_position": (0.0, -0.1, 0.06), "block_0/orientation": turn}
    env.unwrapped.do({"joint_positions": robot.RAISED, **pose}, check=False)
    hold = np.array(robot.RAISED, dtype=np.float32)
    seen = np.array([env.step(hold)[0][32:39] for _ in range(150)])
    assert seen[[25, 50, 100], 2] == pytest.approx(sample["heights"], abs=1.2e-3)
    place, recorded = seen[-1], np.array(sample["pose"])
    assert place[:3] == pytest.approx(recorded[:3], abs=6e-3)
    assert abs(place[3:] @ recorded[3:]) > 0.999


def test_an_object_selector_lifts_and_turns_a_block_as_the_originals_does():
    recorded = ORACLE["object_selector"]
    env = ObjectSelector(
        iv.make("trifinger/pushing-v1", skip_frame=1, normalize_observations=False)
    )
    env.reset(seed=0)
    poses = [env.step(action)[0][4:11] for action in recorded["actions"]]
    for step, *pose in recorded["rows"]:
        assert poses[step - 1] == pytest.approx(pose, abs=1e-5), step
    env.close()


# --- rewards -------------------------------------------------------------------------------------


@samples("rewards")
def test_every_dense_term_the_reward_and_the_score(envs, sample):
    task = sample["task"]
    env = envs(task, skip_frame=10 if task == "towers" else 3)
    world = env.unwrapped.world
    before, now = (_instant(world, sample[key], task) for key in ("before", "after"))
    terms = [term[0] for term in world.task.terms(before, now, corrected_reward=False)]
    if task == "reaching":
        terms[2] = -0.0  # the original always reads torques of zero (defect 19)
    if sample["terms"]:
        assert terms == pytest.approx(sample["terms"], abs=1e-7)
    assert now.fraction[0] == pytest.approx(sample["fractional_success"], abs=1e-8)
    assert bool(world.task.solved(now)[0]) == sample["success"]
    reward = world._earned(before, now)[0]
    assert reward == pytest.approx(sample["reward"], rel=1e-7, abs=1e-6)
    achieved, _ = world.task.goal_arrays(now)
    assert achieved[0] == pytest.approx(sample["achieved"], abs=1e-8)


def _instant(world, state, task):
    store = world._store.rows
    store["joint_positions"][0], store["joint_velocities"][0] = state["joints"], state["velocities"]
    for kind in ("block", "goal"):
        for i, thing in enumerate(state[f"{kind}s"]):
            store[f"{kind}/position"][0, i] = thing["cartesian_position"]
            store[f"{kind}/orientation"][0, i] = thing["orientation"]
            if task != "reaching":
                store[f"{kind}/size"][0, i] = thing["size"]
    world._store.touch(store)
    world._instant = None
    return world._now()


# --- causes --------------------------------------------------------------------------------------

CHOSEN_SPACES = {
    ("picking", "goal_0/cylindrical_position"): "only the height: the rest is forced to 0 there",
    ("towers", "tower/counts"): "integer ranges do not meet: A 1..3, B 4..5",
    ("pick_and_place", "block_0/cylindrical_position"): "the block's own side (defect 4)",
    ("pick_and_place", "goal_0/cylindrical_position"): "not empty: the other side (defect 4)",
}


@pytest.mark.parametrize("task", ORACLE["spaces"]["tasks"])
def test_spaces_are_the_originals(envs, task):
    variables = envs(task).unwrapped.variables
    for name, recorded in ORACLE["spaces"]["tasks"][task].items():
        owner, _, key = name.partition(".")
        ours = f"{OBJECTS[owner]}/{key}" if key else ALONE[owner]
        if (task, ours) in CHOSEN_SPACES:
            continue
        for part, (low, high) in recorded.items():
            space = getattr(variables[ours], f"space_{part}")
            if space is None:  # no shift: B is A
                assert recorded["a"] == recorded["b"]
                continue
            assert np.broadcast_to(space.low, np.shape(low)) == pytest.approx(low, abs=1e-9)
            assert np.broadcast_to(space.high, np.shape(high)) == pytest.approx(high, abs=1e-9)


def translate(intervention):
    """Returns an intervention of the original in our names."""
    out = {}
    for name, value in intervention.items():
        if name == "gravity":
            out[name] = value[2]
        elif not isinstance(value, dict):
            out[ALONE.get(name, name)] = np.array(value)
        else:
            for key, x in value.items():
                if key == "euler_orientation":  # a rotation vector, in truth
                    out[f"{OBJECTS[name]}/orientation"] = Rotation.from_rotvec(x).as_quat()
                else:
                    out[f"{OBJECTS[name]}/{key}"] = np.array(x)
    return out


@samples("interventions")
def test_random_interventions_end_as_the_originals_do(envs, sample):
    env = envs(sample["task"], space=SPACES[sample["space"]])
    given = translate(sample["intervention"])
    if sample["task"] == "picking" and "goal_0/cylindrical_position" in given:
        given["goal_0/cylindrical_position"][:2] = 0.0  # the original does so itself; we refuse
    try:
        env.unwrapped.do(given, check=sample["check"])
        accepted = True
    except iv.InterventionError:
        accepted = False
    assert accepted == sample["success"]
    values = env.unwrapped.values
    for name, place in sample["positions"].items():
        if name != "obstacle":
            ours = values[f"{OBJECTS[name]}/cartesian_position"]
            assert ours == pytest.approx(place, abs=1e-6), name


@samples("towers")
def test_towers_are_cut_and_laid_out_as_the_originals(sample):
    shape = tower(sample["counts"], *(np.array(sample[key]) for key in ("dims", "center")))
    assert shape.sizes[0] == pytest.approx(sample["size"], abs=1e-8)
    assert shape.goals == pytest.approx(np.array(sample["goals"]), abs=1e-8)
    starts, half = np.array(sample["starts"]), np.array(sample["size"]) / 2
    if np.hypot(*(0.12 + half[:2])) > 0.242:
        return  # the original puts its first block into the wall
    floor = starts[:, 2] < half[2] * 1.01  # the rows above overlap in the original
    assert shape.starts[floor] == pytest.approx(starts[floor], abs=1e-8)
    assert shape.starts[:, :2] == pytest.approx(starts[:, :2], abs=1e-8)


def test_fully_random_draws_name_what_the_originals_do():
    recorded = ORACLE["fully_random"]
    (protocol,) = select_protocols("trifinger/pushing-v1", "P10")
    venv = iv.make_vec("trifinger/pushing-v1", num_envs=40, threads=1)
    venv.reset(seed=0)
    drawn = protocol.draw(venv.unwrapped.driver, np.arange(40), 0)
    venv.close()
    named = set()
    for world in range(40):
        keys = {
            name.removeprefix("block_0/").replace("orientation", "euler_orientation")
            for name, rows in drawn.items()
            if name.startswith("block_0/") and not np.all(np.ma.getmaskarray(rows[world]))
        }
        named.add(tuple(sorted(keys)))
    assert named == {tuple(recorded["sizes"]), tuple(recorded["positions"])}


@pytest.mark.parametrize("key", ORACLE["protocol_acceptance"]["accepted"])
def test_first_draws_are_accepted_as_often_as_in_the_original(key):
    task, name = key.split("/")
    free = task == "stacking2" and name in ("P6", "P7", "P8", "P10", "P11")  # never checked there
    fixed = task == "stacking2" and name == "P9"  # names an object that does not exist there
    world = f"trifinger/{task}-v1"
    (protocol,) = select_protocols(world, f"{name}_legacy" if free or fixed else name)
    count = 240
    venv = iv.make_vec(world, num_envs=count, threads=1, **protocol.options)
    venv.reset(seed=0)
    driver = venv.unwrapped.driver
    drawn = protocol.draw(driver, np.arange(count), 0)
    ours = 1 - len(apply(driver, drawn, np.arange(count))) / count
    venv.close()
    theirs = ORACLE["protocol_acceptance"]["accepted"][key] / 60
    spread = np.sqrt(max(ours * (1 - ours), 0.01) * (1 / count + 1 / 60))
    assert ours >= theirs - 2.5 * spread


# --- time, starts --------------------------------------------------------------------------------


def test_time_left_in_the_unit_of_a_given_length(envs):
    recorded = ORACLE["time_left"]
    env = envs("pushing", skip_frame=3, legacy_time_left=True, drag="joint_damping", max_steps=834)
    seen, _ = env.reset(seed=0)
    left, done = [seen[0]], False
    while not done:
        seen, _, _, done, _ = env.step(np.zeros(9, dtype=np.float32))
        left.append(seen[0])
    assert len(left) - 1 == recorded["done_at"]
    for step, value in recorded["samples"]:
        assert left[step] == pytest.approx(value, abs=1e-9)


def test_starting_states_add_up():
    env = StartingState(iv.make("trifinger/pushing-v1"))
    env.set_starting_state({"block_0/mass": 0.05})
    env.set_starting_state({"goal_0/cylindrical_position": (0.05, 1.0, 0.0325)})
    values = env.unwrapped.values
    for mass, goal in (ORACLE["starting_state"][key] for key in ("latched", "default")):
        env.reset(seed=0)
        assert values["block_0/mass"] == pytest.approx(mass)
        assert values["goal_0/cartesian_position"] == pytest.approx(goal, abs=1e-8)
        env.reset_default_state()
    env.close()
