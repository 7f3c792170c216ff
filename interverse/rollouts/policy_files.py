"""A saved policy on its way to another machine: its files, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from interverse.core.files.atomic import scratch_folder
from interverse.rollouts.policy_card import PolicyLike, policy_path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFiles:
    """What a path held: a folder's files by their paths in it, or one file by the path "."."""

    name: str
    files: Mapping[str, bytes]


def pack_policy(given: PolicyLike) -> PolicyLike:
    """Returns the files of a policy that is a path, and any other policy as it is."""
    if (root := policy_path(given)) is None:
        return given
    found = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in found}
    return PolicyFiles(name=root.resolve().name, files=files)


@contextmanager
def unpacked_policy(given: PolicyLike) -> Iterator[PolicyLike]:
    """Yields the path of a packed policy for as long as it is needed, any other as it is."""
    if not isinstance(given, PolicyFiles):
        yield given
        return
    with scratch_folder() as folder:
        root = folder / given.name
        for name, data in given.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield root
