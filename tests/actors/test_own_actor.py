"""Mistakes in an actor of one's own are told by the actor's name."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.actors.actor import Actor
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.wrappers import attach_curriculum
from interverse.core.errors import InvalidValueError, UnknownNameError


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (None, InvalidValueError, r"Mine\.act returned a NoneType"),
        (3, InvalidValueError, r"Mine\.act returned a int"),
        ({"box/mas": np.ones(2)}, UnknownNameError, r"from Mine\.act.*box/mass"),
        ({"box/mass": 0.5}, InvalidValueError, r"shape \(\).*shape \(2,\)"),
        ({"box/mass": np.ones((2, 3))}, InvalidValueError, r"shape \(2, 3\)"),
        ({"box/mass": ["a", "b"]}, InvalidValueError, "box/mass as <U1"),
        ({"box/size": [[1, 2], [3]]}, InvalidValueError, r"numbers of shape \(2, 3\)"),
        (lambda moment: moment.draw(("box/mas",), "A"), UnknownNameError, "'box/mass'"),
    ],
)
def test_a_mistake_names_the_actor_and_what_is_allowed(answer, error, told):
    class Mine(Actor):
        def act(self, moment):
            return answer(moment) if callable(answer) else answer

    env = iv.make_vec("tutorial/slider-v1", 2)
    attach_curriculum(env, Curriculum(stages=(Stage(actor=Mine()),)))
    with pytest.raises(error, match=told):
        env.reset(seed=0)
    env.close()
