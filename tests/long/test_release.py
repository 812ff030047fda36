"""`make cut-release`, rehearsed in a clone: a commit, a tag and files whose checksums hold; nothing is pushed."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tools.release_notes import read_version

pytestmark = pytest.mark.long
REPOSITORY = Path(__file__).resolve().parents[2]
NEW = "99.0.0"


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=A person", "-c", "user.email=person@example.org"]
    return subprocess.check_output(["git", *named, *arguments], cwd=folder, text=True).strip()


def cut(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.cut_release", *arguments]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A clone of the last commit on a branch, whose origin is a bare repository of its own."""
    folder = tmp_path_factory.mktemp("release")
    origin, clone = folder / "origin.git", folder / "clone"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(REPOSITORY), str(origin)], check=True)
    subprocess.run(["git", "clone", "--quiet", str(origin), str(clone)], check=True)
    git(clone, "checkout", "--quiet", "-B", "rehearsal", git(REPOSITORY, "rev-parse", "HEAD"))
    git(clone, "config", "user.name", "A person")
    git(clone, "config", "user.email", "person@example.org")
    return clone


def test_a_release_is_made_by_one_command(clone: Path) -> None:
    before, old = git(clone, "rev-parse", "HEAD"), read_version(clone)
    done = cut(clone, NEW, "--no-image")
    assert done.returncode == 0, done.stderr
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "rev-list", "--count", f"{before}..HEAD") == "1"
    assert git(clone, "rev-parse", f"v{NEW}^{{commit}}") == git(clone, "rev-parse", "HEAD")
    assert sorted(git(clone, "diff", "--name-only", before).split()) == [
        *("CHANGELOG.md", "include/version.py", "pyproject.toml"),
    ]
    assert (read_version(clone), f"## [{NEW}] - " in (clone / "CHANGELOG.md").read_text()) == (NEW, True)
    assert f"Tidewise {NEW}" in git(clone, "tag", "--list", "--format=%(contents)", f"v{NEW}")

    folder = clone / "out" / "release" / NEW
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    name = f"tidewise-{NEW}"
    assert {path.name for path in folder.iterdir()} == {
        *("SHA256SUMS", f"{name}.tar.gz", f"{name}-docs.tar.gz", f"{name}-sbom.json"),
    }
    with tarfile.open(folder / f"{name}-docs.tar.gz") as packed:
        index = packed.extractfile(f"{name}-docs/index.html")
        assert index is not None
        assert NEW in index.read().decode()
    with tarfile.open(folder / f"{name}.tar.gz") as packed:
        assert f"{name}/Makefile" in packed.getnames()
    assert len(json.loads((folder / f"{name}-sbom.json").read_text())["components"]) > 50

    assert git(clone, "ls-remote", "--tags", "origin") == git(clone, "ls-remote", "--tags", str(REPOSITORY))
    assert "nothing was changed" in cut(clone, NEW, "--no-image").stderr
    assert f"{old} is not above {NEW}" in cut(clone, old, "--no-image").stderr
