"""What a release changes in the files: the version in two places, and the head of the changelog."""

from __future__ import annotations

import re
from pathlib import Path

CHANGELOG, VERSION_FILE, PROJECT_FILE = "CHANGELOG.md", "include/version.py", "pyproject.toml"
_UNRELEASED = "## [Unreleased]"
_NUMBER = re.compile(r"\d+\.\d+\.\d+")


class ReleaseError(RuntimeError):
    """The release cannot be made; the message says why, and nothing was changed."""


def set_version(root: Path, version: str, day: str) -> str:
    """Write the version and the day into the files of a checkout; returns the notes of the release.

    Raises:
        ReleaseError: the version is no number above the one before, or nothing has changed since.
    """
    before = read_version(root)
    if not _NUMBER.fullmatch(version):
        raise ReleaseError(f"a version is X.Y.Z, not {version!r}")
    if _parts(version) <= _parts(before):
        raise ReleaseError(f"{version} is not above {before}, the version before")
    changelog, notes = head_notes((root / CHANGELOG).read_text(), version, day)
    (root / CHANGELOG).write_text(changelog)
    for name, pattern in ((VERSION_FILE, r'^VERSION = "{}"$'), (PROJECT_FILE, r'^version = "{}"$')):
        path = root / name
        text, count = re.subn(pattern.format(re.escape(before)), lambda line: line.group(0).replace(before, version),
                              path.read_text(), flags=re.MULTILINE)  # fmt: skip
        if count != 1:
            raise ReleaseError(f"{name} does not have the version {before} on one line")
        path.write_text(text)
    return notes


def read_version(root: Path) -> str:
    """Return the version of a checkout."""
    (version,) = re.findall(r'^VERSION = "(.+)"$', (root / VERSION_FILE).read_text(), re.MULTILINE)
    return str(version)


def head_notes(changelog: str, version: str, day: str) -> tuple[str, str]:
    r"""Return the changelog with what was unreleased under a version, and these notes.

    >>> page, notes = head_notes("## [Unreleased]\n\n- New.\n\n## [0.1.0]\n", "0.2.0", "2026-01-31")
    >>> print(page)
    ## [Unreleased]
    <BLANKLINE>
    ## [0.2.0] - 2026-01-31
    <BLANKLINE>
    - New.
    <BLANKLINE>
    ## [0.1.0]
    <BLANKLINE>
    >>> notes
    '- New.'

    Raises:
        ReleaseError: there is no such section, or nothing in it.
    """
    before, mark, after = changelog.partition(f"{_UNRELEASED}\n")
    notes = after.partition("\n## [")[0].strip()
    if not mark or not notes:
        raise ReleaseError(f"{CHANGELOG} has nothing under {_UNRELEASED}")
    return f"{before}{mark}\n## [{version}] - {day}\n{after}", notes


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
