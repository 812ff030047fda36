"""Find the JDK and Flink's libraries, and compile the project's own jobs against them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cli.java_build import JAVA_RELEASE, JavaBuildError, java_tool, pack_classes
from include.flink.versions import Version, read_version

PROJECT_ROOT = Path(__file__).resolve().parents[2]
FLINK_HOME = PROJECT_ROOT / ".cache" / "flink" / "pyflink"
JOB_SOURCES = PROJECT_ROOT / "flink_job" / "src"
NEXMARK_SOURCES = PROJECT_ROOT / "flink_job" / "nexmark" / "src"
API_SOURCES = {1: PROJECT_ROOT / "flink_job" / "src-flink-1", 2: PROJECT_ROOT / "flink_job" / "src-flink-2"}
BUILD_DIR = PROJECT_ROOT / "flink_job" / "build"
ENTRY_CLASS = "io.tidewise.load.LoadJob"


def flink_jars(flink_home: Path = FLINK_HOME) -> list[Path]:
    """Return Flink's jars.

    Raises:
        JavaBuildError: the folder has no flink-dist jar.
    """
    jars = sorted((flink_home / "lib").glob("*.jar"))
    if not any(jar.name.startswith("flink-dist-") for jar in jars):
        raise JavaBuildError(f"no flink-dist jar in {flink_home / 'lib'}: run `make setup`, which installs Flink")
    return jars


def find_dist(flink_home: Path = FLINK_HOME) -> Path:
    """Return the jar with Flink's runtime.

    Raises:
        JavaBuildError: there is none.
    """
    return next(jar for jar in flink_jars(flink_home) if jar.name.startswith("flink-dist-"))


def flink_version(flink_home: Path = FLINK_HOME) -> Version:
    """Return the version of Flink's jars.

    Raises:
        JavaBuildError: there are none, or their name tells no version.
    """
    dist = find_dist(flink_home)
    version = read_version(dist.name.removeprefix("flink-dist-"))
    if version is None:
        raise JavaBuildError(f"{dist.name} names no version of Flink")
    return version


def build_job(flink_home: Path = FLINK_HOME, sources: Sequence[Path] | None = None, target: Path = BUILD_DIR) -> Path:
    """Compile the load job; returns the jar, whose name carries a hash of all that it was made from.

    An existing jar of that name is up to date by construction and is kept.

    Args:
        flink_home: folder of Flink's ``lib``.
        sources: folders of Java files; those of the load job for that version when None.
        target: folder of the jar.

    Raises:
        JavaBuildError: a prerequisite is missing or the compiler refuses the sources.
    """
    return _build("load", [find_dist(flink_home)], _load_sources(flink_home) if sources is None else sources, target)


def build_nexmark(flink_home: Path = FLINK_HOME, target: Path = BUILD_DIR) -> Path:
    """Compile the runner of Nexmark's queries, which shares the source of the load job; returns the jar.

    Raises:
        JavaBuildError: a prerequisite is missing, Flink is older than 2, or the compiler refuses the sources.
    """
    if flink_version(flink_home)[0] < max(API_SOURCES):
        raise JavaBuildError("Nexmark's queries need Flink 2 or later")
    tables = [jar for jar in flink_jars(flink_home) if jar.name.startswith("flink-table-api-java-uber-")]
    return _build("nexmark", [find_dist(flink_home), *tables], [*_load_sources(flink_home), NEXMARK_SOURCES], target)


def _load_sources(flink_home: Path) -> list[Path]:
    return [JOB_SOURCES, API_SOURCES[min(flink_version(flink_home)[0], max(API_SOURCES))]]


def _build(name: str, libraries: Sequence[Path], folders: Sequence[Path], target: Path) -> Path:
    """Compile the Java files of folders and pack them with the other files beside them, unless that jar is there."""
    files = sorted(
        (file.relative_to(folder).as_posix(), file)
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file()
    )
    digest = hashlib.sha256(f"{libraries[0].name} {JAVA_RELEASE}".encode())
    for place, file in files:
        digest.update(place.encode() + file.read_bytes())
    jar = target / f"tidewise-{name}-{digest.hexdigest()[:12]}.jar"
    if jar.is_file():
        return jar
    java = [file for place, file in files if place.endswith(".java")]
    with tempfile.TemporaryDirectory(prefix="tidewise-javac-") as classes:
        version = read_version(libraries[0].name.removeprefix("flink-dist-"))
        _compile(java, libraries, Path(classes), is_strict=version is not None and version[0] >= max(API_SOURCES))
        for place, file in files:
            if file not in java:
                copy = Path(classes) / place
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        pack_classes(Path(classes), jar)
    return jar


def _compile(files: Iterable[Path], libraries: Iterable[Path], classes: Path, *, is_strict: bool) -> None:
    """Compile; what works in all versions of Flink 1 is deprecated in its last ones."""
    warnings = ["-Xlint:all,-path,-classfile", "-Werror"] if is_strict else ["-nowarn"]
    command = [java_tool("javac"), "--release", JAVA_RELEASE, *warnings]
    command += ["-cp", ":".join(map(str, libraries)), "-d", str(classes), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JavaBuildError(f"javac failed (is it a JDK {JAVA_RELEASE} or later?):\n{done.stderr.strip()}")
