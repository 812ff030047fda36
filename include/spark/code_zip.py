"""The project's code as one zip, the form in which Spark ships it to drivers and executors.

A wheel in ``--py-files`` works on the driver and not on executors; a zip works on both.
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from include.atomic_write import temporary_beside
from include.spark.byte_code import add_byte_code, write_entry

PACKAGES = ("fleet", "include", "models", "page", "spark_jobs")
LABORATORY = "lab"
"""A distribution of its own, which a checkout may lack: it is packed with its entry points where it is."""
RETAINED_ARCHIVES = 5


class PackagingError(RuntimeError):
    """The project's code is not where it should be."""


def build_package(root: Path, archive: Path) -> Path:
    """Zip the project's packages and return the zip's path: ``archive`` with a hash of the code before its suffix.

    A running application reads modules from its zip at any time, so a zip is never changed: other code gets another
    name.  Nothing is written when the zip of this code is there.  It holds byte code, too, of the Python that wrote it.

    Raises:
        PackagingError: a package is missing below ``root``.
    """
    files = [*packed_files(root), *laboratory_files(root)]
    target = archive.with_stem(f"{archive.stem}-{content_hash(files)}")
    if not target.exists():
        with temporary_beside(target) as temporary:
            _write(files, temporary)
            if not target.exists():  # otherwise written by another process meanwhile, and perhaps in use by now
                temporary.replace(target)
        _forget_old(archive, keep=target)
    return target


def packed_files(root: Path, packages: Sequence[str] = PACKAGES) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file of some packages, in order; by default of those that are packed.

    Raises:
        PackagingError: a package is missing below ``root``.
    """
    for package in packages:
        if not (root / package / "__init__.py").is_file():
            raise PackagingError(f"no package {package} in {root}: run from the project's own checkout")
        for path in sorted((root / package).rglob("*")):
            is_made = "__pycache__" in path.parts or path.parent.suffix == ".egg-info"
            if path.is_file() and not is_made and not path.name.startswith("."):
                yield path.relative_to(root).as_posix(), path.read_bytes()


def laboratory_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the laboratory's files, with the entry points by which an archive of it is found."""
    about = root / LABORATORY / "pyproject.toml"
    if not about.is_file():
        return
    project = tomllib.loads(about.read_text(encoding="utf-8"))["project"]
    name = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    lines = [
        line
        for group, points in sorted(project["entry-points"].items())
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in sorted(points.items())), "")
    ]
    yield from packed_files(root, [LABORATORY])
    yield (
        f"{name}/METADATA",
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n".encode(),
    )
    yield f"{name}/entry_points.txt", "\n".join(lines).encode()


def content_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """Return a hash over names and contents."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _write(files: Iterable[tuple[str, bytes]], target: Path) -> None:
    with zipfile.ZipFile(target, "w") as packed:
        for name, content in files:
            write_entry(packed, name, content)
        add_byte_code(packed)


def _forget_old(archive: Path, *, keep: Path) -> None:
    """Remove zips of old code but the youngest few, which running applications may still read."""
    others = [path for path in archive.parent.glob(f"{archive.stem}-*{archive.suffix}") if path != keep]
    for path in sorted(others, key=lambda old: old.stat().st_mtime, reverse=True)[RETAINED_ARCHIVES - 1 :]:
        path.unlink(missing_ok=True)
