"""Malformed files and commands: a typed error or a whole object, in seconds, in little memory."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import time

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.code import stamp
from interverse.core.errors import InterverseError
from interverse.core.files.yaml_text import read_yaml
from interverse.data.dataset import open_dataset
from interverse.data.episodes import CollectEpisodes, TwinFolder, collect_episodes
from interverse.data.generate import Collect, collect
from interverse.data.pairs.shards import PairHeader
from interverse.envs import Snapshot
from interverse.protocols.evaluate import RESULT_FILE
from interverse.protocols.record import read_index
from interverse.reports.runs import from_curves, read_folder
from interverse.results import Results
from interverse.rollouts import Episode
from interverse.rollouts.archives import load_archive
from interverse.scm.graph import CausalGraph
from tests.rollouts.test_archives import second_version

SLIDER = "tutorial/slider-v1"
COMMANDS = b"""\
describe tutorial/slider-v1 --option max_steps=3
evaluate --task tutorial/slider-v1 --protocols P0 --episodes 1 --option max_steps=2 --out o
collect tutorial/slider-v1 --out c --episodes 1 --steps 2 --twin box/mass=1.5 --seed 3
diff e e --metric return
export e --out x --seed 3
new world mine --folder made
fit blocks/observed-3-v1 --model ae --seeds 1 --epochs -1 --out f
train --task tutorial/slider-v1 --steps 0 --seed 2 --num-envs 2 --hyper learning_rate=1e-4 --out t
sweep sweep.yaml --out s --workers 0
verify e --episodes 1 --seed 1
view tutorial/slider-v1 --port 99999 --seed 1
"""
WORDS = [b"null", b"-1", b"1e309", b"99999999999999999999", b"[]", b"{}", b'""', b"true", b"NaN"]
WORDS += [b"[" * 2000]
_NUMBER = b"0123456789"


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Returns bytes with one to four faults of the kinds that disks, editors and enemies make."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, max(len(out), 1)))
        kind = int(rng.integers(0, 8))
        if kind == 0:
            del out[place:]
        elif kind == 1 and out:
            out[place] = int(rng.integers(0, 256))
        elif kind == 2:
            out[place:place] = rng.bytes(int(rng.integers(1, 40)))
        elif kind == 3:
            del out[place : place + int(rng.integers(1, 40))]
        elif kind == 4:
            out[place : place + 4] = b"\xff\xff\xff\x7f"
        elif kind == 5:
            out[place:place] = WORDS[int(rng.integers(0, len(WORDS)))]
        elif kind == 6:
            out[place:place] = bytes(out[place : place + 200]) * int(rng.integers(1, 5))
        else:
            _replace_number(out, place, WORDS[int(rng.integers(0, len(WORDS)))])
    return bytes(out)


def _replace_number(out: bytearray, place: int, word: bytes) -> None:
    start = next((i for i in range(place, len(out)) if out[i] in _NUMBER), None)
    if start is not None:
        end = next((i for i in range(start, len(out)) if out[i] not in _NUMBER), len(out))
        out[start:end] = word


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    """Returns format -> (bytes of a good file, what reads the bytes of a bad one)."""
    root = tmp_path_factory.mktemp("fuzz")
    made = {}

    def through(path, read):
        """Reads bytes from a file, beside which nothing may appear."""

        def run(data):
            path.write_bytes(data)
            read(path)

        return path.read_bytes(), run

    env = iv.make(SLIDER, max_steps=3)
    env.reset(seed=0)
    made["snapshot"] = (env.unwrapped.snapshot().to_bytes(), Snapshot.from_bytes)
    graph = env.unwrapped.graph.to_json().encode()
    made["graph"] = (graph, lambda data: CausalGraph.from_json(data.decode("latin-1")))
    iv.rollout(env, "random", seed=0).save(root / "episode.h5")
    made["episode"] = through(root / "episode.h5", Episode.load)
    collect(Collect(id="blocks/observed-3-v1", out=root / "data.h5", episodes=2, steps=2))
    made["dataset"] = through(root / "data.h5", open_dataset)
    iv.evaluate("random", SLIDER, "P0", episodes=2, max_steps=3, out=root / "e")
    made["results"] = through(root / "e" / RESULT_FILE, Results.from_parquet)
    made["run.json"] = through(root / "e" / "run.json", _stamp)
    made["index.json"] = through(root / "e" / "index.json", lambda path: read_index(path.parent))
    second_version(root / "old.zip")
    made["zip"] = through(root / "old.zip", load_archive)
    (root / "sweep.yaml").write_text("tasks: [a, b]\ntrain:\n  steps: 100\nepisodes: 3\n")
    made["yaml"] = through(root / "sweep.yaml", read_yaml)
    twins = ({"box/mass": 1.5},)
    collect_episodes(
        CollectEpisodes(id=SLIDER, out=root / "twins", episodes=1, steps=2, twins=twins)
    )
    made["collect.json"] = through(root / "twins" / "collect.json", _twins)
    made["shards.jsonl"] = through(root / "twins" / "shards.jsonl", _twins)
    made["twins"] = through(next((root / "twins").glob("*.h5")), _twins)
    for name in ("collect.json", "shards.jsonl"):
        (root / "twins" / name).write_bytes(made[name][0])
    made["command line"] = (COMMANDS, lambda text: _command(text, root))
    (root / "pairs").mkdir()
    (root / "pairs" / "index.json").write_text(json.dumps(_pairs_index()))
    made["pairs"] = through(root / "pairs" / "index.json", lambda p: PairHeader.load(p.parent))
    (root / "run").mkdir()
    (root / "run" / "curves.json").write_text(
        json.dumps({"evaluations": [{"step": 1, "returns": [0.5, 1.0]}], "episodes": []})
    )
    config = {"hyper": {}, "algorithm": "sac_aug", "task": "t", "seed": 0}
    (root / "run" / "train.json").write_text(json.dumps(config))
    for name in ("curves.json", "train.json"):
        made[name] = through(root / "run" / name, lambda p: from_curves(p.parent))
        (root / "run" / name).write_bytes(made[name][0])
    commanded = root / "commanded"
    commanded.mkdir()
    (commanded / RESULT_FILE).write_bytes(made["results"][0])
    (commanded / "command.json").write_text('{"command": "interverse evaluate"}')
    made["command.json"] = through(commanded / "command.json", lambda p: read_folder(p.parent))
    _add_policy(root, made, through)
    return made


def _twins(path):
    folder = TwinFolder(path.parent)
    folder.facts[0]
    folder.twin(0)


def _command(text, root):
    """Runs one line of a text; a mistake must be one line and the status 2."""
    lines = text.decode("latin-1").splitlines() or [""]
    words = lines[sum(text) % len(lines)].split()
    told = io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        status = main(words)
    assert status in (0, 2), f"status {status}: {words}"


def _stamp(path):
    stamp(path, {"task": SLIDER, "policy": None}, "evaluation")


def _pairs_index():
    shard = {"file": "a.h5", "house": 0, "pairs": 1, "rejected": {}, "fingerprint": "0"}
    names = {item: 0 for item in PairHeader.__dataclass_fields__}
    told = {"verbs": ["open"], "nouns": ["door"], "variables": {}, "shards": [shard]}
    return {"format": "interverse-pairs-1"} | names | told


def _add_policy(root, made, through):
    torch = pytest.importorskip("torch")
    from interverse.core.files.tensor_files import read_torch
    from interverse.rollouts.exported import Card, ExportedPolicy

    card = Card(layers=1, activation="tanh", squash=True, low=[-1.0], high=[1.0], trained={})
    weights = {"obs.mean": torch.zeros(2), "obs.std": torch.ones(2)}
    weights |= {"0.weight": torch.zeros(1, 2), "0.bias": torch.zeros(1)}
    torch.save({"graph": torch.zeros(2, 2), "mlp0": weights}, root / "cpt.pt")
    made["torch"] = through(root / "cpt.pt", read_torch)
    for name in ("policy.json", "policy.safetensors"):
        ExportedPolicy(card, weights).save(root / name / "policy")
        path = root / name / "policy" / name
        made[name] = through(path, lambda p: ExportedPolicy.load(p.parent))


def attack(targets, count):
    """Reads so many malformed files, spread over the formats.

    Returns the failures that are no typed errors, the longest time (s) and the memory taken (MB).
    """
    failures, longest, before = [], 0.0, _peak()
    names = sorted(targets)
    for number in range(count):
        name = names[number % len(names)]
        good, read = targets[name]
        data = mutated(good, np.random.default_rng([7, number]))
        started = time.process_time()
        try:
            read(data)
        except (InterverseError, FileNotFoundError):
            pass
        except (Exception, SystemExit) as error:  # what the test is about
            failures.append(f"{name} {number}: {type(error).__name__}: {str(error)[:120]}")
        took = time.process_time() - started
        longest = max(longest, took)
        if took > 5.0:
            failures.append(f"{name} {number}: took more than five seconds")
    return failures, longest, _peak() - before


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    "count",
    [1_000, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_malformed_input_gives_typed_errors(targets, tmp_path_factory, count):
    parent = tmp_path_factory.getbasetemp()
    around = sorted(parent.iterdir())
    failures, longest, memory = attack(targets, count)
    assert failures == []
    assert longest < 5.0
    assert memory < 500.0
    assert sorted(parent.iterdir()) == around, "something lies outside the folder"
    print(f"{count} inputs, {longest:.2f} s at most, {memory:.0f} MB more")
