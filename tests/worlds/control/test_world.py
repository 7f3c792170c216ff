"""What a control environment shows and refuses: stacks, skips, seeds, qualities, bad input."""

import importlib.util
import sys
import threading

import numpy as np
import pytest

import interverse as iv
from interverse.worlds.control import looks
from interverse.worlds.control import suite as suite_module
from interverse.worlds.control.stage import ControlStage
from tests.conformance.cases import TEXTURES

OWN = {"textures": str(TEXTURES)}
SMALL = {"image_size": 24, "quality": "fast", **OWN}
REACHER = "control/reacher_easy-v1"


@pytest.fixture
def make():
    made = []

    def get(world_id=REACHER, **options):
        small = OWN if options.get("observation") == "state" else SMALL
        made.append(iv.make(world_id, **small | options))
        return made[-1]

    yield get
    for env in made:
        env.close()


def half(env):
    return np.full(env.action_space.shape, 0.5, dtype=np.float32)


def test_the_default_is_the_contract():
    env = iv.make("control/cartpole_swingup-v1")
    observation, info = env.reset(seed=0)
    assert observation.shape == (9, 84, 84)
    assert observation.dtype == np.uint8
    assert (info["visual_seed"], env.world.max_steps) == (0, 1000)
    assert np.array_equal(env.action_space.low, [-1.0])
    for name in ("floor/texture", "camera/position", "body/color", "dynamics_seed"):
        assert np.array_equal(info[name], env.values[name])
    env.close()


def test_frames_stack_oldest_first_and_the_first_is_repeated(make):
    stack, one = make(frame_stack=3, dynamics_seed=1), make(frame_stack=1, dynamics_seed=1)
    frames = [one.reset(seed=0)[0]] * 3
    assert np.array_equal(stack.reset(seed=0)[0], np.concatenate(frames))
    for _ in range(4):
        frames = [*frames[1:], one.step(half(one))[0]]
        assert np.array_equal(stack.step(half(stack))[0], np.concatenate(frames))


def test_channels_last_is_the_transpose_and_images_need_not_be_square(make):
    first, last = (
        make(channels_first=c, image_size=(16, 28), dynamics_seed=1) for c in (True, False)
    )
    a, b = first.reset(seed=0)[0], last.reset(seed=0)[0]
    assert a.shape == (9, 16, 28)
    assert np.array_equal(a.transpose(1, 2, 0), b)


def test_frame_skip_adds_rewards_and_ends_after_a_thousand_control_steps(make):
    skip = make("control/cartpole_balance-v1", observation="state", frame_skip=300)
    one = make("control/cartpole_balance-v1", observation="state")
    skip.reset(seed=4), one.reset(seed=4)
    total, ended, decisions = [], False, 0
    while not ended:
        _, reward, terminated, ended, _ = skip.step(half(skip))
        assert not terminated
        decisions += 1
        total.append(reward)
    assert decisions == 4
    rewards = [one.step(half(one)) for _ in range(1000)]
    assert rewards[-1][3]
    assert not rewards[-2][3]
    singles = [r[1] for r in rewards]
    assert total == [sum(singles[i : i + 300]) for i in range(0, 1000, 300)]


def test_dynamics_seeds_are_new_in_every_episode_and_looks_do_not_matter(make):
    env = make(observation="state")
    seeds, starts = [], []
    env.reset(seed=5)
    for _ in range(3):
        seeds.append(int(env.values["dynamics_seed"]))
        starts.append(env.values["qpos"].tobytes())
        env.reset()
    assert len(set(seeds)) == len(set(starts)) == 3
    env.reset(seed=5, options={"visual_seed": 12})
    assert (int(env.values["dynamics_seed"]), env.values["qpos"].tobytes()) == (
        seeds[0],
        starts[0],
    )


def test_a_start_that_is_gone_back_to_is_the_one_that_was_begun(make):
    """Also after dynamics were changed on the way; other dynamics begin anew."""
    env, fresh = (make("control/cheetah_run-v1", observation="state") for _ in range(2))
    begun = fresh.reset(seed=2)[0]
    env.reset(seed=2)
    for _ in range(4):
        env.step(half(env))
    env.do({"dynamics/mass_scale": 1.5})
    assert np.array_equal(env.reset(seed=2)[0], begun)
    for _ in range(4):
        assert np.array_equal(env.step(half(env))[0], fresh.step(half(fresh))[0])
    heavy = {"do": {"dynamics/mass_scale": 1.5}}
    other = env.reset(seed=2, options=heavy)[0]
    assert not np.array_equal(other, begun)
    rebuilt = make("control/cheetah_run-v1", observation="state", defaults=heavy["do"])
    assert np.array_equal(other, rebuilt.reset(seed=2)[0])


def test_seeds_from_a_range(make):
    env = make(observation="state", visual_seed=(3, 5), dynamics_seed=(10, 11))
    env.reset(seed=0)
    looks, starts = set(), set()
    for _ in range(40):
        looks.add(int(env.values["visual_seed"]))
        starts.add(int(env.values["dynamics_seed"]))
        env.reset()
    assert (looks, starts) == ({3, 4, 5}, {10, 11})


def test_reset_options_are_another_way_of_writing_a_do(make):
    env = make()
    short, _ = env.reset(seed=0, options={"visual_seed": 8, "do": {"reflectance": 0.5}})
    long, _ = env.reset(seed=0, options={"do": {"visual_seed": 8, "reflectance": 0.5}})
    assert np.array_equal(short, long)
    venv = iv.make_vec(REACHER, num_envs=2, **SMALL)
    venv.reset(seed=0, options={"visual_seed": [8, -2]})
    assert venv.values["visual_seed"].tolist() == [8, -2]
    venv.close()


def test_a_factor_can_be_set_in_mid_episode(make):
    env = make("control/cheetah_run-v1")
    env.reset(seed=0)
    before = env.step(half(env))[0]
    outcome = env.do({"floor/texture": 1})
    assert outcome.changed == {"floor/texture", "floor/kind"}
    assert not np.array_equal(outcome.observation, before)
    assert np.array_equal(outcome.observation[:6], before[:6])  # the past stays as it was
    env.do({"visual_seed": 3})
    assert env.values["floor/texture"] >= 0
    env.do({"visual_seed": 0})
    assert np.array_equal(env.observe(), before)


def test_dynamics_can_vary_with_the_dynamics_seed(make):
    names = ("dynamics/mass_scale", "torso/length")
    env = make("control/walker_walk-v1", observation="state", vary_dynamics=names)
    drawn = set()
    for episode in range(5):
        env.reset(seed=0, options={"episode": episode})
        drawn.add(tuple(float(env.values[name]) for name in names))
        assert all(env.variables[name].space_a.contains(env.values[name]) for name in names)
        assert env.values["dynamics/friction"] == 1.0
    assert len(drawn) == 5


def test_default_quality_is_as_good_as_full(make):
    """The mean error is under 0.1 of 255; edges of shadows, which finger has most of, differ."""
    errors = []
    for task in ("cheetah_run", "finger_spin", "reacher_easy", "walker_walk"):
        pair = [make(f"control/{task}-v1", quality=q, image_size=84) for q in ("full", "default")]
        for seed in (0, 2, -3):
            full, default = (
                env.reset(seed=1, options={"visual_seed": seed})[0].astype(float) for env in pair
            )
            errors.append(np.abs(full - default).mean())
    assert 0.0 < np.mean(errors) < 0.1
    assert max(errors) < 0.25


def test_full_quality_equals_the_stock_renderer(make):
    """The stock suite's picture of our model, drawn in the same thread in turn with ours."""
    env = make("control/hopper_stand-v1", quality="full", image_size=84, frame_stack=1)
    for seed in (1, 2):
        ours, _ = env.reset(seed=seed)
        stock = env.world._stages[0].physics.render(84, 84, camera_id=0)
        assert np.array_equal(ours.transpose(1, 2, 0), stock)


def test_worlds_draw_from_any_thread(make):
    env = make(dynamics_seed=0)
    here, _ = env.reset(seed=0)
    there = []
    thread = threading.Thread(target=lambda: there.append(env.reset(seed=0)[0]))
    thread.start()
    thread.join()
    assert np.array_equal(here, there[0])


MANY = {**SMALL, "visual_seed": (1, 9), "observation": ("pixels", "depth")}


def played(threads):
    """Returns all that three steps of five worlds give, with a look changed on the way."""
    venv = iv.make_vec("control/walker_walk-v1", num_envs=5, threads=threads, **MANY)
    moments = [venv.reset(seed=3)[0]]
    rng = np.random.default_rng(0)
    for _ in range(3):
        actions = rng.uniform(-1, 1, venv.action_space.shape).astype(np.float32)
        seen, reward, *_ = venv.step(actions)
        moments.append({**seen, "reward": reward})
    moments.append(venv.do({"visual_seed": -4}, worlds=[1, 4]).observation)
    venv.close()
    return moments


@pytest.mark.parametrize("threads", [0, 3])
def test_worlds_are_the_same_on_any_number_of_threads(threads):
    for one, many in zip(played(1), played(threads), strict=True):
        for name in one:
            assert one[name].tobytes() == many[name].tobytes(), name


def test_several_threads_draw(monkeypatch):
    """Each world in one thread of its own throughout, and none in the caller's."""
    found = {}
    draw = ControlStage.draw

    def noted(stage):
        found.setdefault(id(stage), set()).add(threading.current_thread().name)
        draw(stage)

    monkeypatch.setattr(ControlStage, "draw", noted)
    venv = iv.make_vec(REACHER, num_envs=4, threads=2, **SMALL)
    venv.reset(seed=0)
    venv.step(np.zeros((4, 2), np.float32))
    venv.close()
    assert len(found) == 4
    assert all(len(names) == 1 for names in found.values())
    assert {n for names in found.values() for n in names} == {
        "interverse-drawing-0_0",
        "interverse-drawing-1_0",
    }


def test_an_error_on_a_thread_is_raised_and_leaves_every_world_alone():
    venv = iv.make_vec("control/walker_walk-v1", num_envs=3, threads=3, **SMALL)
    before, _ = venv.reset(seed=0)
    venv.do({"qvel": np.full(9, 9e5)}, worlds=[1])
    held = venv.values["qpos"]
    with pytest.raises(iv.InterverseError, match="diverged in world 1"):
        venv.step(np.zeros((3, 6), np.float32))
    assert np.array_equal(venv.values["qpos"], held)
    assert np.array_equal(venv.world.observe()[[0, 2]], before[[0, 2]])
    venv.reset(seed=0)
    venv.step(np.zeros((3, 6), np.float32))
    venv.close()


def test_states_of_a_batch_step_part_by_part_and_fail_together(monkeypatch):
    name, options = "control/walker_walk-v1", {"observation": "state", "frame_skip": 3}
    venv = iv.make_vec(name, 3, **options)
    venv.reset(seed=0)
    calls = []
    for part in ("push", "advance", "earn"):
        inner = getattr(ControlStage, part)

        def counted(stage, *given, part=part, inner=inner):
            calls.append(part)
            return inner(stage, *given)

        monkeypatch.setattr(ControlStage, part, counted)
    venv.step(np.zeros((3, 6), np.float32))
    assert calls == (["push"] * 3 + ["advance"] * 3 + ["earn"] * 3) * 3
    before = venv.world.observe()
    venv.do({"qvel": np.full(9, 9e5)}, worlds=[1])
    held = venv.values["qvel"]
    with pytest.raises(iv.InterverseError, match="diverged in world 1"):
        venv.step(np.ones((3, 6), np.float32))
    assert np.array_equal(venv.values["qvel"], held)
    assert np.array_equal(venv.world.observe()[[0, 2]], before[[0, 2]])
    venv.close()


def test_without_dm_control_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control.mujoco.wrapper.mjbindings", None)
    spec = importlib.util.spec_from_file_location("compat_without", suite_module.__file__)
    with pytest.raises(iv.InterverseError, match=r"pip install 'interverse\[control\]'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_divergence_is_an_error_and_leaves_the_world_alone(make):
    env = make("control/walker_walk-v1", observation="state")
    env.reset(seed=0)
    with pytest.raises(iv.InterventionError, match="qvel"):
        env.do({"qvel": np.full(9, 1e12)})
    for _ in range(3):  # MuJoCo's counts of its warnings look alike from the second time on
        env.reset(seed=0)
        env.do({"qvel": np.full(9, 9e5)})
        before = env.values["qvel"]
        with pytest.raises(iv.InterverseError, match="diverged"):
            env.step(half(env))
        assert np.array_equal(env.values["qvel"], before)


@pytest.mark.parametrize("kind", ["easy", "medium", "hard"])
def test_distractions_move_within_their_ranges_and_touch_nothing_else(make, kind):
    options = {"distraction": kind, "videos": str(TEXTURES / "backgrounds"), "dynamics_seed": 3}
    env, plain = make("control/cheetah_run-v1", **options), make("control/cheetah_run-v1")
    env.reset(seed=0)
    plain.reset(seed=0, options={"dynamics_seed": 3})
    places, first = [], env.values["distraction/frame"]
    for t in range(12):
        places.append(env.values["distraction/camera"])
        assert env.values["distraction/frame"] == first + t
        for name in ("distraction/camera", "distraction/color"):
            assert env.variables[name].domain.contains(env.values[name])
        env.step(half(env))
        plain.step(half(plain))
    assert np.ptp(places, axis=0).max() > 0.0
    assert env.values["qpos"].tobytes() == plain.values["qpos"].tobytes()
    still = make("control/cheetah_run-v1", dynamic=False, distract=("camera", "color"), **options)
    still.reset(seed=0)
    start = still.values["distraction/camera"]
    still.step(half(still))
    assert np.array_equal(still.values["distraction/camera"], start)


def test_a_distraction_can_have_any_scale(make):
    """Its ranges grow with the scale; the videos are those of DMC-GB's next scale."""
    options = {"videos": str(TEXTURES / "backgrounds"), "observation": "state"}
    env = make("control/cheetah_run-v1", distraction=0.05, **options)
    assert env.variables["distraction/color"].domain.high.max() == pytest.approx(0.05)
    named, number = (
        make("control/cheetah_run-v1", distraction=d, **options) for d in ("hard", 0.3)
    )
    named.reset(seed=1), number.reset(seed=1)
    for name in ("distraction/camera", "distraction/color", "distraction/video"):
        assert np.array_equal(named.values[name], number.values[name])


def test_a_video_can_play_on_the_floor(make):
    """As in DMC-GB's hard mode; also below fish, which has no sky of the shared kind."""
    videos = {"videos": str(TEXTURES / "backgrounds"), "distraction": "easy", "dynamics_seed": 1}
    for task, kinds in (("walker_walk", ("floor", "video")), ("fish_swim", ("floor",))):
        env = make(f"control/{task}-v1", distract=kinds, frame_stack=1, **videos)
        plain = make(f"control/{task}-v1", frame_stack=1, dynamics_seed=1)
        default, _ = plain.reset(seed=0)[0], env.reset(seed=0)
        first = env.do({"distraction/frame": 0}).observation
        assert not np.array_equal(first, default)
        env.do({"distraction/frame": 1})
        assert not np.array_equal(env.observe(), first)
        sky_alone = make(f"control/{task}-v1", distract=("video",), frame_stack=1, **videos)
        assert not np.array_equal(sky_alone.reset(seed=0)[0], first)
        assert env.values["qpos"].tobytes() == plain.values["qpos"].tobytes()


BAD_OPTIONS = [
    ({"vary": ("flor",)}, "floor"),
    ({"vary": None}, "vary is None"),
    ({"vary_dynamics": ("dynamics/mass",)}, "dynamics/mass_scale"),
    ({"visual_seed": 1.5}, "visual_seed"),
    ({"visual_seed": True}, "visual_seed"),
    ({"visual_seed": (5, 3)}, "upper end"),
    ({"visual_seed": ("a", 3)}, "visual_seed"),
    ({"visual_seed": "(1,999)"}, r"upper end\. Ends are written visual_seed=\[1,999\]"),
    ({"visual_seed": (1, 2, 3)}, "upper end"),
    ({"visual_seed": (0, 10**30)}, "from -"),
    ({"dynamics_seed": -1}, "dynamics_seed"),
    ({"dynamics_seed": "a"}, "dynamics_seed"),
    ({"image_size": 0}, "image_size"),
    ({"image_size": (1, 2, 3)}, "image_size"),
    ({"frame_stack": 0}, "frame_stack"),
    ({"frame_skip": 1.0}, "frame_skip"),
    ({"channels_first": 1}, "channels_first"),
    ({"observation": "pixel"}, "pixels"),
    ({"observation": ()}, "observation"),
    ({"quality": "best"}, "default"),
    ({"textures": "no/such/folder"}, "no/such/folder"),
    ({"textures": 3}, "textures"),
    ({"distraction": "extreme"}, "medium"),
    ({"distraction": 0.0}, "a scale above 0"),
    ({"distraction": 1.5}, "up to 1"),
    ({"distraction": True}, "difficulty is True"),
    ({"distract": ("cam",)}, "camera"),
    ({"distraction": "easy", "videos": "no/such/folder"}, "no/such/folder"),
    ({"videos": "no/such/folder"}, "no/such/folder"),
    ({"frame_stack": 4}, "frame_stack is 4 with observation='state'"),
    ({"channels_first": False}, "channels_first is False with observation='state'"),
    ({"image_size": 64}, "image_size is 64 with observation='state'"),
    ({"quality": "fast", "observation": ("state",)}, "quality is 'fast' with observation="),
    ({"device": "torch"}, "device"),
    ({"task": "walk"}, "easy"),
    ({"framestack": 2}, "frame_stack"),
]


@pytest.mark.parametrize(("options", "text"), BAD_OPTIONS, ids=str)
def test_bad_options_are_named(options, text):
    with pytest.raises(iv.InterverseError, match=text):
        iv.make(REACHER, **{"observation": "state", **options})


BAD_RESETS = [
    ({"visual_sed": 1}, "visual_seed"),
    ({"visual_seed": 0.5}, "visual_seed"),
    ({"visual_seed": "one"}, "visual_seed"),
    ({"dynamics_seed": -4}, "dynamics_seed"),
    ({"visual_seed": 1, "do": {"visual_seed": 2}}, "visual_seed"),
    ({"do": {"floor/texture": 2}}, "floor/texture"),
    ({"do": {"flor/texture": 1}}, "floor/texture"),
    ({"do": {"body/color": [1.0, 0.0, 0.0]}}, "body/color"),
]


@pytest.mark.parametrize(("options", "text"), BAD_RESETS, ids=str)
def test_bad_resets_are_named(make, options, text):
    with pytest.raises(iv.InterverseError, match=text):
        make(observation="state").reset(seed=0, options=options)


def test_what_is_given_holds_in_every_episode(make):
    given = {"reflectance": 0.45, "visual_seed": 7}
    env = make(observation="state", visual_seed=2, dynamics_seed=3, defaults=given)
    for episode in range(2):
        env.reset(seed=episode)
        values = env.values
        assert (values["dynamics_seed"], values["reflectance"]) == (3, 0.45)
        assert values["visual_seed"] == 7, "a default goes before the option's"


@pytest.mark.parametrize("given", ["all", list(looks.SWITCHES)], ids=["all", "list"])
def test_all_factors_can_be_named_in_several_ways(make, given):
    """A snapshot of one fits the others."""
    plain, other = make(visual_seed=5), make(visual_seed=5, vary=given)
    plain.reset(seed=0)
    assert np.array_equal(other.restore(plain.snapshot()), plain.observe())


def test_one_factor_can_be_named_alone(make):
    env = make(visual_seed=5, vary="floor", observation="state")
    env.reset(seed=0)
    assert env.values["floor/texture"] >= 0
    assert env.values["background/texture"] == -1


def picture_folder(path):
    for part in ("floors", "backgrounds"):
        (path / part).mkdir()
        (path / part / "good.png").write_bytes((TEXTURES / part / "0.png").read_bytes())


def test_a_broken_picture_is_named(tmp_path):
    picture_folder(tmp_path)
    (tmp_path / "floors" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(iv.InterverseError, match=r"broken\.png"):
        iv.make(REACHER, textures=str(tmp_path)).reset(seed=0)


def test_folders_are_paths_too_and_are_read_again_when_they_change(tmp_path):
    picture_folder(tmp_path)
    options = {"observation": "state", "textures": tmp_path}
    before = iv.make(REACHER, **options, distraction="easy", videos=tmp_path / "floors")
    assert before.variables["floor/texture"].domain.high == 0
    (tmp_path / "floors" / "more.png").write_bytes((TEXTURES / "floors" / "1.png").read_bytes())
    assert iv.make(REACHER, **options).variables["floor/texture"].domain.high == 1
    (tmp_path / "floors" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(iv.InterverseError, match=r"broken\.png"):
        iv.make(REACHER, **options)


def test_the_look_in_info_is_each_step_s_own():
    task, options = "control/cartpole_balance-v1", {"observation": "state"}
    env, venv = iv.make(task, **options), iv.make_vec(task, 2, **options)
    for one, still in ((env, np.zeros(1, np.float32)), (venv, np.zeros((2, 1), np.float32))):
        _, at_start = one.reset(seed=0)
        held = at_start["body/color"].copy()
        at_start["body/color"][:] = -1.0
        for _ in range(2):
            info = one.step(still)[-1]
            np.testing.assert_array_equal(info["body/color"], held)
            info["body/color"][:] = -1.0
        one.do({"body/color": held * 0.8})
        np.testing.assert_array_equal(one.step(still)[-1]["body/color"], held * 0.8)
