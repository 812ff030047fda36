"""``make cut-release ARGS="0.3.0"``: version, notes, tag and files of a release, or nothing of it.

All is made in a work tree of its own; only when every file is there does the branch get the commit and the tag.
Nothing is pushed: the last line says how.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.release_files import find_builder
from tools.release_notes import CHANGELOG, PROJECT_FILE, VERSION_FILE, ReleaseError, set_version

SUMS = "SHA256SUMS"


def cut_release(root: Path, version: str, day: str, out: Path, *, image: bool) -> list[Path]:
    """Commit, tag and write the files of a release; returns the files.

    Args:
        root: the checkout, on the branch that is released.
        version: X.Y.Z, above the one before.
        day: of the notes, YYYY-MM-DD.
        out: folder for the files, in a folder of the version's name; an older one of that name is replaced.
        image: whether an image is built.

    Raises:
        ReleaseError: something stands in the way; checkout, branch and tags are as they were.
    """
    tag = f"v{version}"
    if run_git(root, "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed")
    branch = run_git(root, "rev-parse", "--abbrev-ref", "HEAD")
    if branch == "HEAD":
        raise ReleaseError("no branch is checked out")
    if run_git(root, "tag", "--list", tag):
        raise ReleaseError(f"the tag {tag} is there already")
    if image:
        find_builder()
    with scratch_worktree(root) as tree:
        notes = set_version(tree, version, day)
        run_git(tree, "add", CHANGELOG, VERSION_FILE, PROJECT_FILE)
        run_git(tree, "commit", "--quiet", "--no-verify", "--message", f"Release {version}")
        commit = run_git(tree, "rev-parse", "HEAD")
        made = tree.parent / version
        made.mkdir()
        options = ["--out", str(made), *(["--image"] if image else [])]
        done = subprocess.run(
            [sys.executable, "-m", "tools.release_files", *options],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ReleaseError(done.stderr.strip() or done.stdout.strip())
        name = f"tidewise-{version}"
        archive = made / f"{name}.tar.gz"
        run_git(root, "archive", "--format=tar.gz", f"--prefix={name}/", f"--output={archive}", commit)
        files = sorted(made.iterdir())
        write_text(made / SUMS, "".join(f"{hash_file(path)}  {path.name}\n" for path in files))
        target = out / version
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    run_git(root, "merge", "--quiet", "--ff-only", commit)
    run_git(
        root, "tag", "--annotate", tag, "--cleanup=verbatim", "--message", f"Tidewise {version}\n\n{notes}\n", commit
    )
    return sorted(target.iterdir())


@contextmanager
def scratch_worktree(root: Path) -> Iterator[Path]:
    """Give a work tree of what is checked out, apart from the checkout; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidewise-release-") as folder:
        tree = Path(folder) / "tree"
        run_git(root, "worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        try:
            yield tree
        finally:
            run_git(root, "worktree", "remove", "--force", str(tree))


def run_git(root: Path, *arguments: str) -> str:
    """Return what git prints.

    Raises:
        ReleaseError: git refuses; the message has its words.
    """
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def hash_file(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="cut-release", description=__doc__)
    parser.add_argument("version", help="X.Y.Z, above the one before")
    parser.add_argument("--out", type=Path, default=PROJECT / "out" / "release", help="folder of its files")
    parser.add_argument("--no-image", action="store_true", help="without an image")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Make the release; returns the exit code."""
    options = _parse(argv)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    try:
        files = cut_release(PROJECT, options.version, day, options.out.resolve(), image=not options.no_image)
    except ReleaseError as error:
        print(f"cut-release: {error}; nothing was changed", file=sys.stderr)
        return 1
    for path in files:
        print(f"cut-release: {path}")
    print(f"cut-release: v{options.version} is tagged; to publish it: git push --follow-tags")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
