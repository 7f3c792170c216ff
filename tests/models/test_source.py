"""Sources: which frame belongs to which transition, and refusals of ill-shaped arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.models.source import ArraySource, RenderedSource, num_frames, num_transitions
from tests.models.conftest import batch


def test_transitions_join_the_right_frames(squares):
    images, actions, _ = squares(3, 4, seed=0)
    source = ArraySource(images, actions)
    assert (num_transitions(source), num_frames(source)) == (12, 15)
    got = batch(source, torch.tensor([0, 3, 4, 11]))
    for row, (episode, step) in enumerate([(0, 0), (0, 3), (1, 0), (2, 3)]):
        for frame, at in ((got.obs, step), (got.next_obs, step + 1)):
            expected = torch.as_tensor(images[episode, at]).permute(2, 0, 1).float() / 255
            assert torch.equal(frame[row], expected)
        assert got.action[row] == actions[episode, step]
    assert got.obs.is_contiguous(memory_format=torch.channels_last)


def test_rendered_frames_equal_stored_ones(squares):
    images, actions, _ = squares(3, 4, seed=0)

    def render(states):
        numbers = states["number"]
        return torch.as_tensor(images).flatten(0, 1)[numbers]

    numbers = np.arange(15).reshape(3, 5)
    drawn = RenderedSource({"number": numbers}, actions, render)
    stored = ArraySource(images, actions)
    chosen = torch.tensor([1, 7, 9])
    for a, b in zip(batch(drawn, chosen), batch(stored, chosen), strict=True):
        assert torch.equal(a, b)


def test_ill_shaped_arrays_are_refused(squares):
    images, actions, _ = squares(3, 4, seed=0)
    with pytest.raises(InvalidValueError, match=r"images are torch.float32.*uint8"):
        ArraySource(images.astype(np.float32), actions)
    with pytest.raises(InvalidValueError, match=r"actions have shape \(3, 3\).*\(3, 4\)"):
        ArraySource(images, actions[:, 1:])
    with pytest.raises(InvalidValueError, match=r"states\['x'\] has shape \(3, 4\)"):
        RenderedSource({"x": np.zeros((3, 4))}, actions, lambda states: states["x"])
