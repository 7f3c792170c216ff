"""Distractions by name: DMC-GB's colour and video modes, Distracting Control's clear floor."""

import numpy as np
import pytest
from dm_control.suite.wrappers import pixels

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.envs.dm import DmEnv
from interverse.protocols.protocol import select_protocols
from interverse.worlds.control.distraction import MATERIALS, SETS, color_set
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.scene import compile_domain
from tests.conformance.cases import TEXTURES

SMALL = {"image_size": 24, "frame_stack": 1, "quality": "fast", "dynamics_seed": 0}
VIDEOS = {"videos": str(TEXTURES / "backgrounds")}


# Of the hundred sets that DMC-GB's repository stores for each mode: means and deviations of red,
# green and blue, and how many of its 300 numbers a variable has at 0 and at 1.
STORED = {
    ("color_easy", "body/color"): ((0.700, 0.498, 0.312), (0.101, 0.091, 0.107), 0, 0),
    ("color_easy", "floor/color_1"): ((0.106, 0.207, 0.276), (0.076, 0.100, 0.098), 12, 0),
    ("color_easy", "background/color_1"): ((0.408, 0.615, 0.790), (0.094, 0.107, 0.110), 0, 2),
    ("color_hard", "body/color"): ((0.708, 0.478, 0.301), (0.181, 0.198, 0.176), 5, 8),
    ("color_hard", "floor/color_1"): ((0.123, 0.248, 0.296), (0.150, 0.194, 0.164), 56, 0),
    ("color_hard", "background/color_1"): ((0.422, 0.554, 0.784), (0.198, 0.183, 0.184), 0, 24),
}


@pytest.mark.parametrize(("mode", "name"), STORED)
def test_colour_modes_have_the_moments_of_the_stored_sets(mode, name):
    """Two draws of a hundred: means are apart by less than three of their deviations."""
    rows = np.array([color_set(mode, number, "walker")[name][:3] for number in range(SETS)])
    means, deviations, black, full = STORED[mode, name]
    scale = {"color_easy": 0.1, "color_hard": 0.2}[mode]
    np.testing.assert_allclose(rows.mean(axis=0), means, atol=3 * scale * np.sqrt(2 / SETS))
    np.testing.assert_allclose(rows.std(axis=0), deviations, atol=0.25 * scale)
    assert abs((rows == 0.0).sum() - black) < 25
    assert abs((rows == 1.0).sum() - full) < 25


@pytest.mark.parametrize("mode", ["color_easy", "color_hard"])
def test_the_floor_s_second_colour_is_a_step_from_the_first(mode):
    looks = [color_set(mode, number, "walker") for number in range(SETS)]
    steps = [look["floor/color_2"] - look["floor/color_1"] for look in looks]
    np.testing.assert_allclose(steps, 0.1)


def test_a_colour_mode_changes_every_episode_and_keeps_the_states():
    env = iv.make("control/walker_walk-v1", distraction="color_hard", **SMALL)
    plain = iv.make("control/walker_walk-v1", **SMALL)
    plain.reset(seed=0)
    seen = []
    for episode in range(3):
        env.reset(seed=0, options={"episode": episode})
        seen.append(env.values["body/color"].tolist())
        assert int(env.values["floor/texture"]) == -1
        np.testing.assert_array_equal(env.values["qpos"], plain.values["qpos"])
    assert len(set(map(tuple, seen))) == 3
    env.reset(seed=0, options={"episode": 1})
    assert env.values["body/color"].tolist() == seen[1]
    bare = iv.make("control/fish_swim-v1", distraction="color_easy", observation="state")
    bare.reset(seed=0)
    assert "background/color_1" not in bare.variables


def test_video_modes_play_behind_and_below():
    pictures = {}
    for mode in (None, "video_easy", "video_hard"):
        env = iv.make("control/cheetah_run-v1", distraction=mode, **SMALL, **VIDEOS)
        pictures[mode], _ = env.reset(seed=0)
        assert "distraction/floor_opacity" not in env.variables
        assert ("distraction/video" in env.variables) == (mode is not None)
    changed = {m: (pictures[m] != pictures[None]).any(0) for m in ("video_easy", "video_hard")}
    assert changed["video_easy"][:8].mean() > 0.5, "the sky"
    assert changed["video_hard"].mean() > changed["video_easy"].mean(), "the floor, too"


def test_a_mode_has_its_own_distractions():
    with pytest.raises(InvalidValueError, match="Leave distract out"):
        iv.make("control/cheetah_run-v1", distraction="video_easy", distract=("camera",))


@pytest.mark.parametrize(
    ("task", "opacity"), [("reacher_easy", 0.0), ("walker_walk", 1.0), ("finger_spin", 0.3)]
)
def test_the_floor_of_distracting_control_is_as_clear_as_there(task, opacity):
    env = iv.make(f"control/{task}-v1", distraction="easy", **SMALL, **VIDEOS)
    env.reset(seed=0)
    assert float(env.values["distraction/floor_opacity"]) == opacity
    model = env.world.physics.model
    assert model.mat_rgba[model.name2id("grid", "material"), 3] == np.float32(opacity)
    before = env.observe()
    seen = env.do({"distraction/floor_opacity": 1.0 if opacity < 1 else 0.0}).observation
    assert (seen != before).mean() > 0.02
    still = iv.make(f"control/{task}-v1", distraction="easy", distract=("camera",), **SMALL)
    assert "distraction/floor_opacity" not in still.variables


@pytest.mark.filterwarnings("ignore:.*settotalmass")  # of cheetah's own file
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_material_that_is_worn_drifts(domain):
    """Distracting Control writes the colours of all materials, each from the compiled one."""
    model = compile_domain(domain)
    worn = {model.material(i).name for i in (*model.geom_matid, *model.site_matid) if i >= 0}
    assert worn <= set(MATERIALS)
    for name, color in MATERIALS.items():
        np.testing.assert_allclose(model.material(name).rgba[:3], color, atol=1e-7)


def test_colours_are_drawn_between_the_original_s_bounds():
    """Within the scale of the compiled colour, cut at 0 and 1 before the draw and not after."""
    kinds = {"distraction": "hard", "distract": ("color",), "dynamic": False}
    env = iv.make("control/finger_spin-v1", **kinds, **SMALL)
    stock, drawn = np.array(list(MATERIALS.values())), []
    for episode in range(40):
        env.reset(seed=3, options={"episode": episode})
        model = env.world.physics.model
        numbers = [model.name2id(name, "material") for name in MATERIALS]
        drawn.append(model.mat_rgba[numbers, :3].copy())
        env.step(env.action_space.sample())
        np.testing.assert_array_equal(model.mat_rgba[numbers, :3], drawn[-1])
    low, high = np.clip(stock - 0.3, 0.0, 1.0), np.clip(stock + 0.3, 0.0, 1.0)
    share = (np.array(drawn) - low) / (high - low)
    assert share.min() > -1e-6
    assert share.max() < 1 + 1e-6
    assert np.abs(share.mean(axis=0) - 0.5).max() < 0.2, "half of the floors were plain white"
    assert (np.ptp(share, axis=0) > 0.6).all()


def test_a_static_distraction_shows_one_frame_an_episode():
    options = {"distraction": "hard", "observation": "state", **VIDEOS}
    still = iv.make("control/walker_walk-v1", dynamic=False, **options)
    frames = set()
    for episode in range(3):
        still.reset(seed=0, options={"episode": episode})
        before = {n: still.values[n] for n in still.variables if n.startswith("distraction/")}
        still.step(np.zeros(6))
        for name, value in before.items():
            np.testing.assert_array_equal(still.values[name], value, err_msg=name)
        frames.add(int(before["distraction/frame"]))
    assert len(frames) == 3
    video = iv.make("control/walker_walk-v1", **options | {"distraction": "video_easy"})
    video.reset(seed=0)
    assert video.values["distraction/frame"] == 0, "DMC-GB's start at the first frame"


@pytest.mark.parametrize("level", ["easy", "medium", "hard"])
def test_static_distractions_have_protocols(level):
    (static,) = select_protocols("control/walker_walk-v1", f"distracting_{level}_static")
    (moving,) = select_protocols("control/walker_walk-v1", f"distracting_{level}")
    assert dict(static.options) == dict(moving.options) | {"dynamic": False}


def test_dm_control_s_own_pixel_wrapper_shows_the_look():
    drawn = {}
    for look in (0, 5):
        env = DmEnv(
            "control/walker_walk-v1", observation="state", visual_seed=look, dynamics_seed=3
        )
        kwargs = {"height": 24, "width": 32, "camera_id": 0}
        wrapped = pixels.Wrapper(env, pixels_only=False, render_kwargs=kwargs)
        seen = wrapped.reset().observation
        drawn[look] = seen["pixels"]
        assert seen["pixels"].shape == (24, 32, 3)
        assert "orientations" in seen
        assert wrapped.physics.named.data.xpos["torso", "z"] > 0, "dm_control's own names"
    assert (drawn[0] != drawn[5]).mean() > 0.5
    assert pixels.Wrapper(env).reset().observation["pixels"].shape == (240, 320, 3)
    with pytest.raises(InvalidValueError, match="camera_id"):
        env.physics.render(camera_id=9)
    with pytest.raises(InvalidValueError, match="no dm_control physics"):
        DmEnv("tutorial/slider-v1").physics  # noqa: B018


def test_every_domain_takes_every_mode():
    for domain, has in DOMAINS.items():
        for mode in ("color_easy", "video_hard"):
            name = f"control/{domain}_{has.tasks[0]}-v1"
            iv.make(name, observation="state", distraction=mode, **VIDEOS).reset(seed=0)
