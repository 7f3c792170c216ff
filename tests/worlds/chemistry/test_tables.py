"""Chances as variables, and networks from the original's files."""

import json
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError

RECORDED = Path(__file__).parents[2] / "parity" / "data" / "gridworlds.json"


def table_world(**options):
    env = iv.make("chemistry/chain-v1", cpt="table", objects=3, colors=3, **options)
    env.reset(seed=0)
    return env


def test_chances_can_be_read_and_are_those_of_the_networks():
    env, plain = table_world(), iv.make("chemistry/chain-v1", objects=3, colors=3)
    plain.reset(seed=0)
    rows = env.values["object_1/cpt"]
    assert rows.shape == (3, 3)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    ends = plain.unwrapped.world._tables[1].cumulative
    np.testing.assert_allclose(np.cumsum(rows, axis=1), ends, atol=1e-12)
    for action in (0, 4, 8, 1, 5):
        a, b = env.step(action), plain.step(action)
        assert a[0]["image"].tobytes() == b[0]["image"].tobytes()


def test_chances_can_be_set_and_are_obeyed():
    env = table_world()
    env.unwrapped.do({"object_1/cpt": np.roll(np.eye(3), 1, axis=1)})  # its parent's colour, plus 1
    for color in (0, 1, 2, 0):
        env.step(color)  # paint object 0
        assert env.values["object_1/color"] == (color + 1) % 3
    twin = table_world(defaults={"object_1/cpt": np.roll(np.eye(3), 1, axis=1)})
    np.testing.assert_array_equal(twin.values["object_1/cpt"], env.values["object_1/cpt"])


def test_worlds_of_a_batch_have_chances_of_their_own():
    venv = iv.make_vec("chemistry/chain-v1", num_envs=2, cpt="table", objects=3, colors=3)
    venv.reset(seed=0)
    always = np.stack([np.tile(np.eye(3)[c], (3, 1)) for c in (0, 2)])
    venv.unwrapped.do({"object_1/cpt": always})
    for action in (0, 1, 2):
        venv.step(np.full(2, action))
        assert venv.unwrapped.values["object_1/color"].tolist() == [0, 2]


def test_rows_that_are_no_chances_are_refused():
    env = table_world()
    with pytest.raises(iv.InterventionError, match=r"row 0 of object_1/cpt sums to 0\.6"):
        env.unwrapped.do({"object_1/cpt": np.full((3, 3), 0.2)})
    with pytest.raises(InvalidValueError, match="sums to"):
        table_world(defaults={"object_1/cpt": np.full((3, 3), 0.2)})
    with pytest.raises(ValueError, match="edge_0_1"):
        env.unwrapped.do({"edge_0_1": 0})  # the graph can only be read


@pytest.mark.parametrize(
    "options", [{"cpt": "tabel"}, {"cpt": "table", "meta": True}, {"cpt": "table", "objects": 25}]
)
def test_bad_tables_are_refused(options):
    with pytest.raises((InvalidValueError, UnknownNameError), match=r"cpt|table"):
        iv.make("chemistry/full-v1", **options)


def saved(path, graph):
    """Writes the networks that the recorded chances are of, as the original saves them."""
    torch = pytest.importorskip("torch")
    content = {"graph": torch.as_tensor(np.asarray(graph), dtype=torch.float32)}
    a, b = np.arange(12)[:, None] + 1, np.arange(9)[None] + 1
    c, d = np.arange(3)[:, None] + 1, np.arange(12)[None] + 1
    for v in range(3):
        layers = {
            "layers.0.weight": np.sin(0.3 * a * b + v),
            "layers.0.bias": np.cos(a[:, 0] + v),
            "layers.2.weight": np.cos(0.2 * c * d + v),
            "layers.2.bias": np.sin(c[:, 0] + v),
        }
        content[f"mlp{v}"] = {name: torch.as_tensor(part) for name, part in layers.items()}
    torch.save(content, path)
    return str(path)


def test_a_file_of_the_original_gives_the_recorded_chances(tmp_path):
    recorded = json.loads(RECORDED.read_text())["chemistry_cpt_probabilities"]["cases"]
    chain = np.diag(np.ones(2, dtype=int), -1)
    path = saved(tmp_path / "chain.pt", chain)
    env = iv.make("chemistry/custom-v1", cpt_file=path, cpt="table", objects=3, colors=3, hidden=12)
    env.reset(seed=0)
    np.testing.assert_array_equal(env.values["graph/adjacency"], chain)
    checked = 0
    for case in recorded:
        if case["graph"] == "chain3" and case["node"] > 0:
            row = case["colours"][case["node"] - 1]
            ours = env.values[f"object_{case['node']}/cpt"][row]
            np.testing.assert_allclose(ours, case["probs"], atol=1e-6)
            checked += 1
    assert checked > 0


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = saved(tmp_path / "chain.pt", np.diag(np.ones(2, dtype=int), -1))
    with pytest.raises(FileFormatError, match="objects is 5"):
        iv.make("chemistry/custom-v1", cpt_file=path)
    with pytest.raises(FileFormatError, match="has layers of"):
        iv.make("chemistry/custom-v1", cpt_file=path, objects=3, colors=3, hidden=7)
    with pytest.raises(FileFormatError, match="no such file"):
        iv.make("chemistry/custom-v1", cpt_file=str(tmp_path / "missing.pt"))
    (tmp_path / "bad.pt").write_bytes(b"no tensors")
    with pytest.raises(FileFormatError, match="cannot be read"):
        iv.make("chemistry/custom-v1", cpt_file=str(tmp_path / "bad.pt"))
    with pytest.raises(InvalidValueError, match="the path of a file"):
        iv.make("chemistry/custom-v1", cpt_file=3)
    with pytest.raises(InvalidValueError, match="Pass cpt_file to chemistry/custom-v1"):
        iv.make("chemistry/chain-v1", cpt_file=path)
