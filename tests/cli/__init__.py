"""A command of every verb but `view`, some of several kinds of work."""

SLIDER = "tutorial/slider-v1"
BRIEF = ["--option", "max_steps=2"]
TRAIN = ["--task", SLIDER, "--steps", "4", "--num-envs", "2", "--hyper", "n_steps=2", *BRIEF]
DEVICE = ["--task", "trifinger/pushing-v1", "--device", "torch", "--num-envs", "2"]
DEVICE += ["--steps", "8", "--hyper", "horizon=4", "--option", "max_steps=4"]
PICTURES = ["--task", "control/cartpole_balance-v1", "--algorithm", "sac_aug", "--steps", "4"]
PICTURES += ["--hyper", "image_size=32", "batch=4", "warm_up=2", "filters=4", "hidden=16"]
PICTURES += ["--option", "max_steps=2", "quality=fast", "--seeds", "0", "1"]
PAIRS = ["--task", "rooms/single-v1", "--data", "toy", "--pairs", "120", "--epochs", "1"]
PAIRS += ["--size", "32", "--model", "resnet-frozen", "--batch-size", "64", "--split", "reference"]

# (words of a command, names of the document); RUN and SCORES are made before, OUT is empty.
COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "bench": (["--only", "imports"], set()),
    "check": ([SLIDER], set()),
    "collect": (
        [SLIDER, "--episodes", "2", "--steps", "2", "--out", "OUT", "--twin", "box/mass=0.5"],
        {"path", "episodes"},
    ),
    "collect grid": (
        ["blocks/observed-3-v1", "--episodes", "2", "--steps", "2", "--out", "OUT/d.h5"],
        {"path", "episodes"},
    ),
    "collect pairs": (["rooms/single-v1", "--pairs", "2", "--out", "OUT"], {"path", "pairs"}),
    "demo": (["--out", "OUT"], {"page"}),
    "describe": ([SLIDER], {"id", "variables"}),
    "diff": (["SCORES", "SCORES"], {"made_by", "scores", "verdict"}),
    "doctor": ([], set()),
    "evaluate": (["--task", SLIDER, "--protocols", "P0", "--episodes", "1", *BRIEF], set()),
    "explain": (["random", "--task", SLIDER, "--episodes", "2", *BRIEF], set()),
    "export": (["RUN", "--no-video", "--out", "OUT"], {"folder", "files"}),
    "export_original": (["GRID", "--out", "OUT/d.h5"], {"path", "episodes"}),
    "import_original": (
        ["ORIGINAL", "--id", "blocks/observed-3-v1", "--out", "OUT/d.h5"],
        {"path", "episodes"},
    ),
    "fit": ([SLIDER, "--time-limit", "0", "--out", "OUT"], {"folder", "complete"}),
    "list": ([], set()),
    "new": (["world", "mine", "--folder", "OUT"], {"path", "files"}),
    "report": (["SCORES", "--no-episodes", "--out", "OUT"], {"page", "plots", "tables", "media"}),
    "new model": (["model", "mine", "--folder", "OUT"], {"path", "files"}),
    "reproduce": (["--table", "17", "--time-limit", "0", "--out", "OUT"], {"tables"}),
    "score": (["tests.scoring.test_world_model:Identity", SLIDER], {"ranking", "planning"}),
    "sweep": (["SWEEP", "--out", "OUT"], {"cells", "results", "report"}),
    "sweep dry": (["SWEEP", "--out", "OUT", "--dry-run"], {"cells"}),
    "train": ([*TRAIN, "--out", "OUT"], {"runs"}),
    "train device": ([*DEVICE, "--out", "OUT"], {"runs"}),
    "train pictures": ([*PICTURES, "--out", "OUT"], {"runs"}),
    "train pairs": ([*PAIRS, "--out", "OUT"], {"run", "epochs", "last"}),
    "verify": (["SCORES", "--episodes", "1"], {"verified", "files", "episodes", "problems"}),
}
