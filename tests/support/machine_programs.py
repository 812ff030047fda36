"""Programs of this machine that no package index has, such as database servers."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_program(name: str, package: str, *patterns: str) -> str:
    """Return the path of a program: of PATH, else of the newest folder below / that matches a pattern.

    Raises:
        AssertionError: it is not installed; the message names Debian's package.
    """
    path = _look_for(name, *patterns)
    assert path, f"{name} is not on this machine; on Debian or Ubuntu, as root: apt-get install -y {package}"
    return path


def has_program(name: str, *patterns: str) -> bool:
    """Whether :func:`find_program` would return a path."""
    return _look_for(name, *patterns) is not None


def _look_for(name: str, *patterns: str) -> str | None:
    folders = sorted((path for pattern in patterns for path in Path("/").glob(pattern)), reverse=True)
    return shutil.which(name) or next((str(one / name) for one in folders if (one / name).exists()), None)
