"""Collect blocks, fit a world model, rank its predictions.

python examples/collect_and_fit.py [--episodes 1000] [--epochs 100]
"""

import argparse
from pathlib import Path

from interverse.data import Collect, collect, open_dataset
from interverse.models import Fit, WorldModelConfig, evaluate_ranking, fit_world_model
from interverse.models.datasets import dataset_source

ID = "blocks/observed-3-v1"


def main() -> None:
    """Makes three data sets, trains on the first, chooses by the second, scores on the third."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("runs/blocks"))
    args = parser.parse_args()

    sizes = {"train": (args.episodes, 100), "valid": (args.episodes // 5 + 1, 100)}
    sizes["test"] = (10 * args.episodes, 10)
    sources = {}
    for seed, (name, (episodes, steps)) in enumerate(sizes.items()):
        out = args.folder / f"{name}.h5"
        path = collect(Collect(id=ID, out=out, episodes=episodes, steps=steps, seed=seed))
        sources[name] = dataset_source(open_dataset(path))

    config = WorldModelConfig.named("reference", model="modular", objects=3, encoder="small")
    how = Fit(epochs=args.epochs, out=args.folder / "modular")
    (fitted,) = fit_world_model(config, how, sources["train"], sources["valid"])
    scores = evaluate_ranking(fitted.model(), sources["test"])
    for steps, score in scores.items():
        print(f"{steps:2} steps: H@1 {score.hits:.1f} MRR {score.mrr:.1f}")


if __name__ == "__main__":
    main()
