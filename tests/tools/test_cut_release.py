"""What keeps a release from being made, each with nothing changed; the whole of it: tests/long/test_release.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import cut_release as command
from tools.cut_release import cut_release
from tools.release_files import pack_folder
from tools.release_notes import ReleaseError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "include").mkdir(parents=True)
    (root / "include" / "version.py").write_text('VERSION = "0.2.0"\n')
    (root / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.2.0]\n")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "user.name", "A person")
    git(root, "config", "user.email", "person@example.org")
    commit(root)
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=root, text=True).strip()


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")


def spoil(root: Path, why: str) -> str:
    """Put something in the way of 0.3.0; returns the version to ask for."""
    if why == "not committed":
        (root / "new.py").write_text("")
    elif why == "no branch":
        git(root, "checkout", "--quiet", "--detach")
    elif why == "the tag v0.3.0":
        git(root, "tag", "v0.3.0")
    elif why == "nothing under":
        (root / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.2.0]\n")
        commit(root)
    elif why == "on one line":
        (root / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
        commit(root)
    return {"a version is X.Y.Z": "0.3", "is not above": "0.2.0"}.get(why, "0.3.0")


@pytest.mark.parametrize(
    "why",
    [
        *("not committed", "no branch", "the tag v0.3.0", "nothing under", "on one line", "a version is X.Y.Z"),
        *("is not above", "No module named tools"),  # the last: this checkout has none, so its files cannot be made
    ],
)
def test_what_stands_in_the_way_is_named_and_changes_nothing(checkout: Path, tmp_path: Path, why: str) -> None:
    version = spoil(checkout, why)
    before = [
        git(checkout, *one) for one in (["rev-parse", "HEAD"], ["tag"], ["status", "--short"], ["worktree", "list"])
    ]
    with pytest.raises(ReleaseError, match=why):
        cut_release(checkout, version, "2026-01-31", tmp_path / "out", image=False)
    after = [
        git(checkout, *one) for one in (["rev-parse", "HEAD"], ["tag"], ["status", "--short"], ["worktree", "list"])
    ]
    assert (before, (tmp_path / "out").exists()) == (after, False)


def test_without_a_builder_an_image_is_refused_before_anything_is_made(checkout, monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "PROJECT", checkout)
    monkeypatch.setattr("tools.release_files.BUILDERS", ("no-such-builder",))
    assert command.main(["0.3.0"]) == 1
    assert "--no-image leaves the image out; nothing was changed" in capsys.readouterr().err


def test_the_same_folder_is_the_same_archive(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "index.html").write_text("x")
        pack_folder(tmp_path / name, "docs", tmp_path / f"{name}.tar.gz")
        made.append((tmp_path / f"{name}.tar.gz").read_bytes())
    assert made[0] == made[1]
