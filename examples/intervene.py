"""See, do: set variables of a TriFinger world, in one world and in many.

python examples/intervene.py
"""

import numpy as np

import interverse as iv


def main() -> None:
    """Intervenes on one world, then on a batch with a value for each world."""
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0, options={"do": {"block_0/mass": 0.03}})
    print("mass at the start:", env.values["block_0/mass"])

    outcome = env.do({"block_0/size": [0.08, 0.08, 0.08]})
    print("a new size changes:", ", ".join(sorted(outcome.changed)))

    try:
        env.do({"goal_0/cartesian_position": [0.24, 0.24, 0.04]})
    except iv.InterventionError as error:
        print("refused:", error.reason)

    venv = iv.make_vec("trifinger/pushing-v1", num_envs=64)
    venv.reset(seed=0)
    space_b = venv.variables["floor/friction"].space_b
    rng = np.random.default_rng(0)
    friction = np.array([space_b.sample(rng) for _ in range(64)])
    outcome = venv.do({"floor/friction": friction}, worlds=np.arange(64) % 2 == 0)
    print("worlds with another friction:", int(outcome.applied.sum()), "of 64")


if __name__ == "__main__":
    main()
