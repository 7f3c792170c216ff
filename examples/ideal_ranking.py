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
    """Returns what each object becomes when its parent is painted: (objects, parent, child)."""
    chances = np.zeros((OBJECTS, COLORS, COLORS))
    for child, color in np.ndindex(OBJECTS - 1, COLORS):
        envs.reset(seed=child * COLORS + color)
        envs.step(np.full(envs.num_envs, child * COLORS + color))
        seen = colors_of(envs)[:, child + 1]
        chances[child + 1, color] = np.bincount(seen, minlength=COLORS) / envs.num_envs
    return chances


def predict(mean, action, chances):
    """Returns the mean state (objects, colours) after an action: what lies below is drawn anew."""
    painted, color = divmod(action, COLORS)
    mean = mean.copy()
    mean[painted] = np.eye(COLORS)[color]
    for child in range(painted + 1, OBJECTS):
        mean[child] = mean[child - 1] @ chances[child]
    return mean


def main() -> None:
    """Prints H@1 of the mean and of the likeliest colours; neither is an upper bound."""
    envs = iv.make_vec("chemistry/chain-v1", num_envs=int([*sys.argv, "500"][1]))
    chances, rng = tables(envs), np.random.default_rng(0)
    envs.reset(seed=1000)
    means = np.eye(COLORS)[colors_of(envs)]
    for step in range(1, max(HORIZONS) + 1):
        actions = rng.integers(OBJECTS * COLORS, size=envs.num_envs)
        envs.step(actions)
        means = np.stack([predict(m, a, chances) for m, a in zip(means, actions, strict=True)])
        if step in HORIZONS:
            colors = colors_of(envs)
            pictures = torch.as_tensor(colors @ COLORS ** np.arange(OBJECTS))
            likeliest = np.eye(COLORS)[means.argmax(-1)]
            for name, guess in (("mean", means), ("likeliest", likeliest)):
                true = torch.as_tensor(np.eye(COLORS)[colors])
                found = ranks(true, torch.as_tensor(guess), pictures)
                own, published = (100 * (r == 1).double().mean() for r in found)
                print(f"{name:9} {step:2} steps: H@1 {own:.1f}, published rule {published:.1f}")


if __name__ == "__main__":
    main()
