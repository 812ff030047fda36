"""The files of a commit, or of the working tree, in a folder of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from include.settings import PROJECT


class UnknownCommitError(RuntimeError):
    """Git knows no such commit."""


def copy_tree(commit: str | None, target: Path) -> None:
    """Copy the files of a commit, or those of the working tree, into an empty folder.

    Raises:
        UnknownCommitError: there is no such commit.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if commit:
        archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, capture_output=True, check=False)
        if archive.returncode:
            raise UnknownCommitError(f"git knows no commit {commit}")
        subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
        return
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source = PROJECT / name
        if source.is_file() and not source.is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
