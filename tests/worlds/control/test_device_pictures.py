"""Control worlds drawn by Warp's ray caster show what MuJoCo's renderer shows."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import interverse as iv
from interverse.rollouts.policy_world import engine_words
from interverse.sim import warp_device
from interverse.worlds.control import device_pictures
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.options import ControlOptions
from interverse.worlds.world import engine_of

pytest.importorskip("mujoco_warp")

LOOKS = (0, 1, 2, 3)
# Mean absolute difference of pixels of 255 that a domain may have: docs/control.md has the table.
# Reacher's lamp is half a metre above its floor; GL lights the floor's corners, Warp each pixel.
MOST = {"reacher": 9.0, "fish": 7.0, "humanoid": 6.5}
USUAL = 5.0


def _pictures(domain: str, renderer: str, **options: Any) -> np.ndarray:
    """Returns the pictures of four looks after two steps, (4, rows, columns, 3)."""
    name = f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1"
    shape = {"frame_stack": 1, "channels_first": False, "image_size": 84, **options}
    env = iv.make_vec(name, num_envs=len(LOOKS), renderer=renderer, **shape)
    env.reset(seed=5, options={"do": {"visual_seed": np.array(LOOKS)}})
    for _ in range(2):
        seen = env.step(np.zeros(env.action_space.shape, np.float32))[0]
    env.close()
    return np.asarray(seen).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_both_renderers_agree(domain: str) -> None:
    apart = np.abs(_pictures(domain, "warp") - _pictures(domain, "mujoco"))
    print(domain, apart.mean(axis=(1, 2, 3)).round(2).tolist(), round(float(apart.mean()), 2))
    assert apart.mean() < MOST.get(domain, USUAL)


@pytest.mark.slow
def test_a_look_and_a_restored_moment_do_not_depend_on_other_worlds() -> None:
    together = _pictures("cartpole", "warp", image_size=(24, 32))
    assert together.shape == (4, 24, 32, 3)
    env = iv.make(
        "control/cartpole_balance-v1", renderer="warp", frame_stack=2, image_size=(24, 32)
    )
    env.reset(seed=5, options={"do": {"visual_seed": 2}})
    saved = env.unwrapped.snapshot()
    first = [env.step(np.zeros(1, np.float32))[0] for _ in range(2)]
    env.unwrapped.restore(saved)
    second = [env.step(np.zeros(1, np.float32))[0] for _ in range(2)]
    env.close()
    np.testing.assert_array_equal(first, second)
    alone = iv.make_vec(
        "control/cartpole_balance-v1",
        num_envs=2,
        renderer="warp",
        frame_stack=1,
        channels_first=False,
        image_size=(24, 32),
    )
    alone.reset(seed=[5, 6], options={"do": {"visual_seed": np.array([0, 1])}})
    for _ in range(2):
        seen = alone.step(np.zeros((2, 1), np.float32))[0]
    alone.close()
    np.testing.assert_array_equal(np.asarray(seen), together[:2])


def test_sites_strings_and_the_headlight_are_sent() -> None:
    from interverse.worlds.control.device_pictures import _Moment

    env = iv.make("control/ball_in_cup_catch-v1", observation="state")
    env.reset(seed=0)
    world = env.unwrapped.world
    stage = world.stage(0)
    source, data = stage.physics.model.ptr, stage.physics.data.ptr
    moment = _Moment(source, world.options)
    sent = moment.read(stage)
    assert moment.drawn.ngeom == source.ngeom + 3, "two sites and a string"
    assert moment.drawn.nlight == source.nlight + 1
    assert {len(sent[n]) for n in ("geom_xpos", "geom_xmat", "geom_size", "geom_rgba")} == {
        moment.drawn.ngeom
    }
    ends = data.site_xpos[[source.site("cup").id, source.site("ball").id]]
    string = int((source.geom_bodyid == 0).sum()) + 2
    np.testing.assert_allclose(sent["geom_xpos"][string], ends.mean(axis=0))
    way = sent["geom_xmat"][string][:, 2] * sent["geom_size"][string, 1] * 2.0
    np.testing.assert_allclose(np.abs(way), np.abs(ends[1] - ends[0]), atol=1e-9)
    np.testing.assert_allclose(sent["light_diffuse"][-1], source.vis.headlight.diffuse, rtol=1e-6)
    env.close()


def test_an_evaluation_names_the_renderer_and_what_it_cannot_draw_is_refused() -> None:
    drawn = SimpleNamespace(options=ControlOptions(renderer="warp"))
    assert engine_of(drawn) == {"device": "cpu", "renderer": "warp"}
    assert engine_words(engine_of(drawn)) == "MuJoCo, pictures by Warp"
    assert engine_of(SimpleNamespace(options=ControlOptions())) == {"device": "cpu"}
    with pytest.raises(iv.InterverseError, match="renderer"):
        iv.make("control/cartpole_balance-v1", renderer="filament")
    for observation in ("depth", "state", ("pixels", "segmentation")):
        with pytest.raises(iv.InterverseError, match="renderer='warp'"):
            iv.make("control/cartpole_balance-v1", renderer="warp", observation=observation)
    if not torch.cuda.is_available():
        with pytest.raises(iv.InterverseError, match=r"no CUDA device\. Allowed: mujoco, warp"):
            iv.make("control/cartpole_balance-v1", renderer="cuda")


def test_pictures_of_a_gpu_are_read_on_the_stream_that_waits_for_warp(monkeypatch) -> None:
    """A training beside others has a stream of its own, which does not wait for Warp."""
    order: list[str] = []

    @contextlib.contextmanager
    def stream(which: str):
        order.append(f"on {which}")
        yield
        order.append("off")

    def cast(*_: Any) -> torch.Tensor:
        order.append("drawn")
        return torch.zeros((1, 1, 2, 2, 3), dtype=torch.uint8)

    monkeypatch.setattr(torch.cuda, "default_stream", lambda number: f"default of {number}")
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(
        warp_device.load_warp()[0], "ScopedDevice", lambda _: contextlib.nullcontext()
    )
    pictures = object.__new__(device_pictures.ControlPhotographer)
    pictures._stages, pictures._device = [None], SimpleNamespace(is_cuda=True, ordinal=1)
    pictures._moment = SimpleNamespace(read=lambda _: {})
    pictures._dress = lambda *_: False
    pictures._renderer = SimpleNamespace(cast=cast)
    pictures._model = pictures._data = None
    assert pictures.draw().shape == (1, 2, 2, 3)
    assert order == ["on default of 1", "drawn", "off"]
    pictures._device = SimpleNamespace(is_cuda=False)
    pictures.draw()
    assert order[3:] == ["drawn"]
