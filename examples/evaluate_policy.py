"""Measure: a hand-written policy and a random one under the slider's protocols.

python examples/evaluate_policy.py [--episodes 200] [--out runs/slider] [--report]
"""

import argparse
from pathlib import Path

import numpy as np

import interverse as iv

TASK = "tutorial/slider-v1"


def to_goal(observations: np.ndarray) -> np.ndarray:
    """Returns pushes towards the goal, braked by the velocity; one row per world."""
    place, velocity, goal = observations[:, 0:2], observations[:, 3:5], observations[:, 9:11]
    return np.clip(6.0 * (goal - place) - 1.5 * velocity, -1.0, 1.0).astype(np.float32)


def main() -> None:
    """Evaluates both policies; a second call goes on where the first was stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/slider"))
    parser.add_argument("--report", action="store_true", help="write an HTML page as well")
    args = parser.parse_args()

    runs = [
        iv.evaluate(
            policy, task=TASK, protocols="P0,P2", episodes=args.episodes, out=args.out / name
        )
        for name, policy in (("random", "random"), ("to_goal", to_goal))
    ]
    results = iv.Results.concat(runs)
    print(results.table("markdown"))
    if args.report:
        print(iv.report(results, args.out / "report"))


if __name__ == "__main__":
    main()
