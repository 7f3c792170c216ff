"""Train under interventions on the mass in A, test in A and in B.

python examples/train_ppo_sb3.py [--steps 200000] [--episodes 100]
"""

import argparse

from stable_baselines3 import PPO

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Uniform
from interverse.agents.sb3 import WorldVecEnv

TASK = "tutorial/slider-v1"


def main() -> None:
    """Trains PPO on a batch of worlds and prints its scores under three protocols."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--episodes", type=int, default=100)
    args = parser.parse_args()

    curriculum = Curriculum(stages=(Stage(actor=Uniform(patterns=("box/mass",), space="A")),))
    env = WorldVecEnv(TASK, num_envs=16, curriculum=curriculum)
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=256, gamma=0.98, seed=0, device="cpu")
    model.learn(args.steps)

    results = iv.evaluate(
        model, task=TASK, protocols="P0-P2", episodes=args.episodes, experiment="ppo"
    )
    print(results.table("markdown"))


if __name__ == "__main__":
    main()
