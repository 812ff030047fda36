"""``python -m tools.release_files --out DIR``: the files of a release, of the checkout that this runs in.

The documentation as a site, the list of parts (CycloneDX) of what is installed here, and with ``--image`` an image.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.settings import PROJECT
from include.version import VERSION
from tools.check_deps import DepsError, write_sbom
from tools.release_notes import ReleaseError
from tools.site import SiteError, build_site

BUILDERS = ("podman", "docker")


def find_builder() -> str:
    """Return the program that builds images here.

    Raises:
        ReleaseError: there is none, or its daemon does not answer.
    """
    for name in BUILDERS:
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    raise ReleaseError(f"neither {' nor '.join(BUILDERS)} works here: --no-image leaves the image out")


def write_files(folder: Path, *, image: bool) -> None:
    """Write all files into a folder that is there.

    Raises:
        ReleaseError: one of them cannot be made.
    """
    builder = find_builder() if image else ""
    name = f"tidewise-{VERSION}"
    try:
        write_sbom(folder / f"{name}-sbom.json", Path(sys.executable))
        with tempfile.TemporaryDirectory(prefix="tidewise-release-") as site:
            build_site(Path(site) / "site")
            pack_folder(Path(site) / "site", f"{name}-docs", folder / f"{name}-docs.tar.gz")
    except (DepsError, SiteError) as error:
        raise ReleaseError(str(error)) from error
    if builder:
        tag = f"tidewise:{VERSION}"
        for command in (
            [builder, "build", "-f", "Containerfile", "-t", tag, "."],
            [builder, "save", "-o", str(folder / f"{name}-image.tar"), tag],
        ):
            done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ReleaseError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")


def pack_folder(folder: Path, name: str, target: Path) -> None:
    """Write a folder as an archive under another name; the same content is the same bytes."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        archive.add(folder, name, filter=plain)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="release_files", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--image", action="store_true", help="build and save an image, with podman or docker")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Write the files; returns the exit code."""
    options = _parse(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        write_files(options.out, image=options.image)
    except ReleaseError as error:
        print(f"release_files: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
