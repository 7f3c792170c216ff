"""What a policy answers in an evaluation depends neither on its neighbours nor on threads."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from interverse.protocols.protocol import Protocol
from interverse.protocols.unit import Unit, play
from interverse.rollouts.policy import FixedBatchPolicy

torch = pytest.importorskip("torch")


class Long:
    """A policy whose sums are long enough for several threads to share one."""

    def __init__(self):
        draw = torch.Generator().manual_seed(0)
        self.weight = 0.01 * torch.randn(100, 48_672, generator=draw)

    def reset(self, mask, seeds):
        pass

    def __call__(self, seen):
        return torch.nn.functional.linear(torch.as_tensor(seen), self.weight).numpy()


def test_the_number_of_threads_changes_no_bit():
    seen = np.random.default_rng(0).normal(size=(50, 48_672)).astype(np.float32)
    policy = FixedBatchPolicy(Long(), np.arange(50), 50)
    before = torch.get_num_threads()
    answers = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            answers.append(policy(seen).tobytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(set(answers)) == 1


def test_a_policy_that_asks_for_goals_is_told_those_of_its_own_row():
    """Some episodes of a unit alone, in rows of their own, as `interverse verify` plays them."""

    class Heads:
        """Goes where its goal is; a policy with a card of goals, as hindsight replay trains."""

        card = SimpleNamespace(inputs=["observation", "achieved_goal", "desired_goal"])

        def __call__(self, seen):
            ask = np.asarray(seen["desired_goal"]).reshape(len(seen["desired_goal"]), -1)
            return np.tanh(ask[:, :9]).astype(np.float32)

    task, numbers = "trifinger/reaching-v1", np.array([1, 3])
    unit = Unit(
        task=task,
        options={"max_steps": 2},
        protocol=Protocol(name="drawn", everything="A"),
        seed=0,
        number=0,
        episodes=4,
    )
    whole = play(unit, Heads(), np.arange(4))
    assert len({row["trace"] for row in whole}) == 4
    assert play(unit, Heads(), numbers) == [whole[1], whole[3]]


_WIDE = """
import hashlib, numpy as np
from interverse.rollouts.archives import Perceptron
from interverse.rollouts.policy import FixedBatchPolicy
draw = np.random.default_rng(0)
shapes = (2000, 512), (512, 512), (512, 9)
layers = [(0.02 * draw.normal(size=s).astype("f"), np.zeros(s[1], "f")) for s in shapes]
network = Perceptron(layers, -np.ones(9, "f"), np.ones(9, "f"))
network.reset = lambda mask, seeds: None
seen = draw.normal(size=(50, 2000))
print(hashlib.sha256(FixedBatchPolicy(network, np.arange(50), 50)(seen).tobytes()).hexdigest())
"""


def test_nor_does_the_number_of_threads_of_numpys_blas(repository):
    answers = [
        subprocess.run(
            [sys.executable, "-c", _WIDE],
            env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "3")
    ]
    assert answers == answers[:1] * 3
