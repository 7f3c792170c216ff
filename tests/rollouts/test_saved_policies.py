"""A saved policy is what was saved: a bit that flipped in its weights is refused."""

from __future__ import annotations

import json
import shutil

import pytest

from interverse.core.errors import FileFormatError
from interverse.rollouts.policy import load_policy
from interverse.rollouts.saved import trained_policy

pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["reaching_1", "cartpole_balance_small"])
def test_a_flipped_bit_in_the_weights_is_refused(name, tmp_path):
    policy = load_policy(trained_policy(name))
    folder = policy.save(tmp_path / "policy")
    assert load_policy(folder).card == policy.card
    file = folder / "policy.safetensors"
    whole = file.read_bytes()
    for at in (len(whole) // 2, len(whole) - 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match="is not what was saved: it was damaged"):
            load_policy(folder)
    file.write_bytes(whole)
    load_policy(folder)


def test_a_card_from_before_there_were_hashes_is_read(tmp_path):
    folder = shutil.copytree(trained_policy("reaching_1"), tmp_path / "older")
    assert "weights_hash" not in json.loads((folder / "policy.json").read_text())
    load_policy(folder)
