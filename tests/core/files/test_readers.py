"""The readers: bombs, links to elsewhere, pickles and torn files are typed errors."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError, StorageError
from interverse.core.files.atomic import atomic, remove_stale, write_json
from interverse.core.files.hdf5 import new_hdf5, open_hdf5
from interverse.core.files.json_text import parse_json, read_json
from interverse.core.files.parquet import read_parquet
from interverse.core.files.yaml_text import parse_yaml, read_yaml
from interverse.core.files.zip_archive import open_zip, read_npz
from interverse.envs import Snapshot
from interverse.protocols.protocol import Protocol, select_protocols
from interverse.rollouts import Episode


def npy_header(shape, dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def hdf5_bomb(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("actions", (400_000_000,), "f8", chunks=(10_000,), compression="gzip")


def hdf5_external_storage(path):
    secret = path.with_name("secret")
    secret.write_bytes(b"x" * 80)
    with h5py.File(path, "w") as file:
        file.create_dataset("actions", (10,), "f8", external=[(str(secret), 0, 80)])


def hdf5_external_link(path):
    with h5py.File(path.with_name("other.h5"), "w") as file:
        file["x"] = np.zeros(3)
    with h5py.File(path, "w") as file:
        file["actions"] = h5py.ExternalLink("other.h5", "/x")


def hdf5_cycle(path):
    with h5py.File(path, "w") as file:
        file.create_group("a")["back"] = file["/"]


def hdf5_wide_links(path):
    with h5py.File(path, "w") as file:
        last = file.create_group("last")
        for level in range(11):
            group = file.create_group(f"g{level}")
            for name in "abcdefgh":
                group[name] = last
            last = group


@pytest.mark.parametrize(
    "make",
    [hdf5_bomb, hdf5_external_storage, hdf5_external_link, hdf5_cycle, hdf5_wide_links],
    ids=lambda make: make.__name__,
)
def test_hostile_hdf5_is_refused_before_it_is_read(tmp_path, make):
    path = tmp_path / "file.h5"
    make(path)
    with pytest.raises(FileFormatError), open_hdf5(path):
        pass
    with pytest.raises(FileFormatError, match="is no episode"):
        Episode.load(path)


def npz(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def zipped_zeros(size):
    held = io.BytesIO()
    with (
        zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy_header((size // 8,)))
        for _ in range(size // 2**20):
            file.write(bytes(2**20))
    return held.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        zipped_zeros(260 * 2**20),
        npz(a=npy_header((10**12,)) + bytes(80)),
        npz(a=npy_header((-1,)) + bytes(80)),
        npz(a=npy_header((1,), "|O") + b"cos\nsystem\n(S'true'\ntR."),
        npz(a=b"\x93NUMPY\x01\x00" + (20_000).to_bytes(2, "little") + b"(" * 20_000),
        b"",
        b"PK no zip",
    ],
    ids=["zeros", "tall", "negative", "objects", "header", "empty", "torn"],
)
def test_hostile_archives_are_refused(data):
    for read in (read_npz, Snapshot.from_bytes):
        with pytest.raises(FileFormatError):
            read(data)


def test_members_outside_an_archive_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../outside", "x")
    with pytest.raises(FileFormatError, match="outside"), open_zip(tmp_path / "a.zip"):
        pass


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 200_000, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 65 + "]" * 65, "\xff"]
)
def test_hostile_json_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="latin-1")
    with pytest.raises(FileFormatError):
        read_json(tmp_path / "a.json")


def test_json_of_a_sane_depth_is_read():
    assert parse_json("[" * 60 + "]" * 60)
    with pytest.raises(FileFormatError, match="bytes of JSON"):
        parse_json(" " * (9 * 2**20))


def test_parquet_bombs_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": pa.array(np.zeros(21_000_000, dtype=bool))}), path)
    with pytest.raises(FileFormatError):
        read_parquet(path)
    long = pa.table({"a": pa.array(["x" * 1_000_000] * 300).dictionary_encode()})
    pq.write_table(long.cast(pa.schema({"a": pa.string()})), path, compression="zstd")
    with pytest.raises(FileFormatError):
        read_parquet(path)


def test_a_huge_policy_card_is_refused_at_once(tmp_path):
    torch = pytest.importorskip("torch")
    from interverse.rollouts.exported import Card, ExportedPolicy

    card = Card(layers=1, activation="tanh", squash=True, low=[-1.0], high=[1.0], trained={})
    weights = {"obs.mean": torch.zeros(2), "obs.std": torch.ones(2)}
    weights |= {"0.weight": torch.zeros(1, 2), "0.bias": torch.zeros(1)}
    ExportedPolicy(card, weights).save(tmp_path)
    good = json.loads((tmp_path / "policy.json").read_text())
    for name, value in (
        ("layers", 10**9),
        ("layers", -1),
        ("layers", "one"),
        ("low", [float("nan")]),
        ("low", [2.0]),
        ("high", 3),
        ("activation", "eval"),
        ("inputs", 7),
        ("trained", []),
        ("extra", 1),
    ):
        (tmp_path / "policy.json").write_text(json.dumps({**good, name: value}))
        with pytest.raises(FileFormatError):
            ExportedPolicy.load(tmp_path)
    (tmp_path / "policy.json").write_text(json.dumps(good))
    env = iv.make("trifinger/pushing-v1", max_steps=2)
    with pytest.raises(FileFormatError, match="flat observations of 2 numbers"):
        iv.rollout(env, tmp_path, seed=0)


def torch_zip_bomb(path, torch):
    torch.save({"graph": torch.zeros(2, 2), "mlp0": {}}, path)
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in held.items():
            archive.writestr(name, bytes(300 * 2**20) if "/data/" in name else data)


def torch_view_bomb(path, torch):
    torch.save({"graph": torch.zeros(1).expand(10**10), "mlp0": {}}, path)


def torch_code(path, torch):
    torch.save({"graph": torch.zeros(1), "mlp0": Snapshot}, path)


def torch_list(path, torch):
    torch.save([torch.zeros(1)], path)


@pytest.mark.parametrize("make", [torch_zip_bomb, torch_view_bomb, torch_code, torch_list])
def test_hostile_files_of_torch_are_refused(tmp_path, make):
    make(tmp_path / "cpt.pt", pytest.importorskip("torch"))
    with pytest.raises(FileFormatError, match=r"cpt\.pt"):
        iv.make("chemistry/custom-v1", cpt_file=str(tmp_path / "cpt.pt")).reset(seed=0)


@pytest.mark.parametrize("side", [10_000, 20_000], ids=["warned of", "refused by Pillow"])
def test_a_picture_that_unfolds_too_far_is_refused(tmp_path, side):
    image = pytest.importorskip("PIL.Image")
    from interverse.art.pictures.folder import _decode
    from interverse.data.pairs.pictures import decode

    image.new("1", (side, side)).save(tmp_path / "bomb.png")
    with pytest.raises(FileFormatError, match="bomb"):
        _decode(tmp_path / "bomb.png", 8)
    with pytest.raises(FileFormatError, match="bomb"):
        decode("before", (tmp_path / "bomb.png").read_bytes(), "bomb")


def test_bombs_take_little_memory(tmp_path):
    """All bombs in one process of its own."""
    hdf5_bomb(tmp_path / "bomb.h5")
    (tmp_path / "bomb.npz").write_bytes(zipped_zeros(600 * 2**20))
    code = f"""
import pathlib
from interverse.core.errors import FileFormatError
from interverse.envs import Snapshot
from interverse.rollouts import Episode
from interverse.rollouts.archives import load_archive
folder = pathlib.Path({str(tmp_path)!r})
for read in (
    lambda: Episode.load(folder / "bomb.h5"),
    lambda: Snapshot.from_bytes((folder / "bomb.npz").read_bytes()),
    lambda: load_archive(folder / "bomb.npz"),
):
    try:
        read()
    except FileFormatError:
        continue
    raise SystemExit("read")
status = pathlib.Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500 * 1024  # kB


@pytest.mark.parametrize(
    "name", ["../../../x", "/a", "a//b", "", "..", "a/../b", "a\\b", "a\nb", "x" * 101]
)
def test_a_protocol_cannot_be_named_like_a_path(name):
    with pytest.raises(InvalidValueError, match="protocol is named"):
        Protocol(name=name)


def test_huge_numbers_are_refused_at_once():
    task = "tutorial/slider-v1"
    assert len(select_protocols(task, "P0-P99999999999")) == 6
    for given in (
        {"episodes": 99_999_999_999_999},
        {"seeds": 999_999_999_999},
        {"workers": 10**9},
        {"episodes": 2_000_000, "seeds": 2},
    ):
        with pytest.raises(InvalidValueError, match=r"whole number from 1 to|at most"):
            iv.evaluate("random", task, "P0", **given)


def test_a_huge_step_is_refused_at_once():
    with pytest.raises(InvalidValueError, match="skip_frame is 1000000000"):
        iv.make("trifinger/pushing-v1", skip_frame=10**9)


def test_a_full_disk_is_one_typed_error_and_leaves_nothing(tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    code = f"""
import pathlib, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import h5py, numpy as np
from interverse.core.errors import StorageError
from interverse.core.files.atomic import atomic, write_bytes
folder = pathlib.Path({str(tmp_path)!r})
def plain():
    write_bytes(folder / "a", bytes(100_000))
def hdf5():
    with atomic(folder / "a.h5") as partial, h5py.File(partial, "w") as file:
        file["x"] = np.random.default_rng(0).normal(size=100_000)
for write in (plain, hdf5):
    try:
        write()
    except StorageError as error:
        assert "no space is left" in str(error)
        continue
    raise SystemExit("written")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_is_removed_and_what_lives_stays(tmp_path):
    code = f"""
import os, pathlib
from interverse.core.files.atomic import atomic
with atomic(pathlib.Path({str(tmp_path)!r}) / "a.json") as partial:
    partial.write_text("half")
    os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    with atomic(tmp_path / "b.json") as mine:
        mine.write_text("x")
        remove_stale(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [mine.name]
    assert write_json(tmp_path / "b.json", {"b": 1, "a": 2}).read_text().index("a") < 10
    assert issubclass(StorageError, OSError)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x 1\nb: *x", "line 1, has an anchor"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "line 2, has a tag"),
        ("a: 1\na: 2", "line 2, has a second key 'a'"),
        ("? [1]\n: 2", "a key that is no name"),
        ("<<: {a: 1}", "a key that is no name"),
        ("[" * 3000, "more than 20 levels deep"),
        ("- " * 3000, "more than 20 levels deep"),
        ("[" + "1," * 30_000 + "]", "parts"),
        ("a: 1\n" * 30_000, "bytes"),
        ("a: b: c", "is no YAML"),
        ("\0", "is no YAML"),
        (b"a: [", "line 1, is no YAML: expected"),
        (b"\xff\xfe\x00", "is no YAML"),
        ("--- a\n--- b", "is no YAML"),
    ],
)
def test_yaml_that_is_more_than_data_is_refused(text, told):
    with pytest.raises(FileFormatError, match=told):
        parse_yaml(text)


def test_yaml_files_are_mappings_of_known_keys(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("steps: 1_000\noff: no\nrate: .5\ntext: '3'\nnone:\n")
    assert read_yaml(file) == {"steps": 1000, "off": "no", "rate": 0.5, "text": "3", "none": None}
    with pytest.raises(LookupError, match=r"unknown key of run.yaml 'off'.*Allowed: none, rate"):
        read_yaml(file, ("steps", "rate", "text", "none"))
    file.write_text("- 1")
    with pytest.raises(FileFormatError, match="holds a list"):
        read_yaml(file)


@contextmanager
def room_for(size):
    """Lets no file grow beyond so many bytes: EFBIG, which a full quota looks like too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [100, 4_000, 30_000])
def test_hdf5_gives_a_file_up_that_it_cannot_write(tmp_path, capfd, size):
    def write():
        with new_hdf5(tmp_path / "a.h5") as file:
            for name in "abc":
                group = file.create_group(name)
                group.attrs["note"] = "x" * 500
                group["x"] = np.random.default_rng(0).normal(size=3_000)

    with room_for(size), pytest.raises(StorageError, match="no space is left"):
        write()
    assert os.listdir(tmp_path) == []
    assert capfd.readouterr() == ("", "")  # h5py would complain of every object, and crash
    write()
    with open_hdf5(tmp_path / "a.h5") as file:
        assert sorted(file) == ["a", "b", "c"]


@pytest.mark.parametrize("size", [200, 20_000])
@pytest.mark.parametrize("verb", ["train", "collect"])
def test_a_verb_tells_it_in_one_line_and_goes_on_later(tmp_path, capfd, verb, size):
    words = {
        "train": "--task tutorial/slider-v1 --steps 4 --num-envs 1 --evaluate-episodes 0",
        "collect": "blocks/observed-3-v1 --episodes 30",
    }[verb].split()
    if verb == "train":
        pytest.importorskip("stable_baselines3")
        words += ["--option", "max_steps=4"]
    command = [verb, *words, "--out", str(tmp_path / "out.h5")]
    with room_for(size):
        assert main(command) == 2
    told = capfd.readouterr().err
    assert "no space is left to write" in told.splitlines()[-1]
    assert "Traceback" not in told
    assert [path for path in tmp_path.rglob("*") if ".partial" in path.name] == []
    assert main(command) == 0
