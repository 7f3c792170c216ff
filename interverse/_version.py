"""The package version: that of the installed distribution, which is made from git at its build."""

import re
from importlib import metadata

try:
    __version__ = metadata.version("interverse")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.1.dev0"


def release(version: str) -> str:
    """Returns the release that a version belongs to or leads to.

    >>> release("0.1.dev226+ge8313d98c.d20261116"), release("0.1.0"), release("1.2.0rc1")
    ('0.1', '0.1', '1.2')
    """
    numbers = re.match(r"[0-9.]*", version.partition(".dev")[0])
    return re.sub(r"(\.0)+$", "", numbers.group().strip(".")) if numbers else version
