"""What a policy answers in an evaluation depends neither on its neighbours nor on threads."""

from __future__ import annotations

import numpy as np
import pytest

from interverse.rollouts.fixed_batch import FixedBatchPolicy

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
