"""The policies that come with the package: they load, and they solve what they were trained for."""

from __future__ import annotations

import pytest

import interverse as iv
from interverse.agents.policies import TRAINED, trained_policy
from interverse.cli.evaluate import known_policy
from interverse.core.errors import InvalidValueError, UnknownNameError

pytest.importorskip("torch")

from interverse.rollouts.exported import ExportedPolicy


@pytest.mark.parametrize("name", TRAINED)
def test_policies_load_and_say_what_trained_them(name: str) -> None:
    card = ExportedPolicy.load(trained_policy(name)).card
    task, _, curriculum = name.rpartition("_")
    assert card.trained["config"]["task"] == f"trifinger/{task}-v1"
    assert card.trained["config"]["curriculum"] == int(curriculum)


def test_commands_know_a_policy_of_the_package_by_its_name() -> None:
    assert known_policy("cartpole_balance_small", None).task == "control/cartpole_balance-v1"
    with pytest.raises(InvalidValueError, match=r"or one of .*cartpole_balance_small"):
        known_policy("cartpole_balance_large", None)


def test_an_unknown_policy_names_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match="pushing_2"):
        trained_policy("pushing_9")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["picking_2", "pushing_2", "reaching_1"])
def test_policies_solve_p0_on_the_cpu(name: str) -> None:
    task = f"trifinger/{name.rpartition('_')[0]}-v1"
    results = iv.evaluate(trained_policy(name), task, protocols="P0", episodes=1, skip_frame=3)
    assert results.scores("last_fractional_success").mean() > 0.9
