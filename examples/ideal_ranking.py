"""H@1 of two predictors that know every chance of the chain, found by intervention.

python examples/ideal_ranking.py 10000
"""

import sys

import numpy as np
import torch

import interverse as iv
from interverse.models.ranking import HORIZONS, ranks

OBJECTS, COLORS = 5, 5


def colors_of(envs):
    """Returns the colours of all objects, (N, objects)."""
    return np.stack([envs.values[f"object_{i}/color"] for i in range(OBJECTS)], axis=1)


def tables(envs):
    """Returns what an object becomes when its parent is painted, (objects, parent, child)."""
    chances = np.zeros((OBJECTS, COLORS, COLORS))
    for child, color in np.ndindex(OBJECTS - 1, COLORS):
        envs.reset(seed=child * COLORS + color)
        envs.step(np.full(envs.num_envs, child * COLORS + color))
        chances[child + 1, color] = np.eye(COLORS)[colors_of(envs)[:, child + 1]].mean(0)
    return chances


def predict(mean, action, chances):
    """Returns the mean state (objects, colours) after an action: what lies below is drawn anew."""
    painted, color = divmod(action, COLORS)
    mean = np.where(np.arange(OBJECTS)[:, None] == painted, np.eye(COLORS)[color], mean)
    for child in range(painted + 1, OBJECTS):
        mean[child] = mean[child - 1] @ chances[child]
    return mean


def main() -> None:
    """Prints H@1 by our rule and the published one; neither predictor is an upper bound."""
    envs = iv.make_vec("chemistry/chain-v1", num_envs=int([*sys.argv, "500"][1]))
    chances, rng = tables(envs), np.random.default_rng(0)
    envs.reset(seed=1000)
    means = np.eye(COLORS)[colors_of(envs)]
    for step in range(1, max(HORIZONS) + 1):
        actions = rng.integers(OBJECTS * COLORS, size=envs.num_envs)
        envs.step(actions)
        means = np.stack([predict(m, a, chances) for m, a in zip(means, actions, strict=True)])
        if step in HORIZONS:
            colors = torch.as_tensor(colors_of(envs))
            true, pictures = torch.eye(COLORS)[colors], colors @ COLORS ** torch.arange(OBJECTS)
            for name, guess in (("mean", means), ("likeliest", np.eye(COLORS)[means.argmax(-1)])):
                own, theirs = (r == 1 for r in ranks(true, torch.as_tensor(guess), pictures))
                print(name, step, f"H@1 {own.double().mean():.3f}, {theirs.double().mean():.3f}")


if __name__ == "__main__":
    main()
