"""The jars that Spark needs beside its own, pinned by content.

Standard library only: the set-up fetches them before the virtual environment exists.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of Maven Central, pinned by content.

    Attributes:
        group, artifact, version: Maven coordinates.
        sha256: of the file, so that a half-fetched or foreign one is never used.
    """

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """Name of the file in ``spark.jars_dir``."""
        return f"{self.artifact}-{self.version}.jar"


# The wheel of delta-spark carries no jars; these belong to delta-spark 4.4.0 and PySpark 4.1.
DELTA_JARS = (
    Jar(
        "io.delta", "delta-spark_4.1_2.13", "4.4.0", "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10"
    ),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)
# Without Hadoop's native library, which PySpark does not bring, every file and folder on a local disk costs a `chmod`
# process. This file system sets the mode through Java (Apache License 2.0).
LOCAL_FILES_JAR = Jar(
    "com.globalmentor",
    "hadoop-bare-naked-local-fs",
    "0.1.0",
    "e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
)
LOCAL_FILES_CLASS = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
ALL_JARS = (*DELTA_JARS, LOCAL_FILES_JAR)
# What the client of S3 of Hadoop 3.4.2, which PySpark 4.1 brings, needs; `make setup EXTRA=s3` fetches them.
S3_JARS = (
    Jar("org.apache.hadoop", "hadoop-aws", "3.4.2", "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9"),
    Jar(
        "software.amazon.awssdk",
        "bundle",
        "2.29.52",
        "62638f33045690c6bc5e496b54b0b2e89a9ad38cbedacdf6e017fea6bc85f55c",
    ),
    Jar(
        "software.amazon.s3.analyticsaccelerator",
        "analyticsaccelerator-s3",
        "1.2.1",
        "11029552e37408e41e689b20150f4b372e0b4f232de321ccafd0fcf443cdfb5a",
    ),
    Jar(
        "org.wildfly.openssl",
        "wildfly-openssl",
        "2.1.4.Final",
        "95decbc5d088b40e85f58d7726b8c8f4e3be6312a0f2660c2d714a23cee80279",
    ),
)
LOG_STORE_CLASS = "io.tidewise.delta.ConditionalLogStore"
LOG_STORE_SOURCE = Path(__file__).parent / "log_store" / "io" / "tidewise" / "delta" / "ConditionalLogStore.java"
# Class data sharing: what a JVM made of some 25,000 classes, in the form in which the next one maps it into memory.
CLASS_ARCHIVE = "classes.jsa"
ARCHIVE_STAMP = f"{CLASS_ARCHIVE}.stamp"  # what it was made from, and where: a line each
log = logging.getLogger(__name__)


class JarsMissingError(RuntimeError):
    """Jars are not where the settings say."""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unusable_jars(folder: Path, jars: Sequence[Jar] | None = None) -> list[Jar]:
    """Return the jars that a folder lacks or holds with another content (half a download, another build)."""
    return [jar for jar in (ALL_JARS if jars is None else jars) if not _is_whole(folder / jar.file_name, jar)]


def log_store_jar(folder: Path) -> Path:
    """Return the jar of the log store, whose name carries a hash of all that it is made from."""
    made_from = LOG_STORE_SOURCE.read_bytes() + "".join(jar.sha256 for jar in (*DELTA_JARS, *S3_JARS)).encode()
    return folder / f"tidewise-log-store-{hashlib.sha256(made_from).hexdigest()[:12]}.jar"


def missing_s3_jars(folder: Path) -> list[str]:
    """Return the names of the jars that tables on S3 need and a folder lacks; their content is not looked at."""
    paths = [*(folder / jar.file_name for jar in S3_JARS), log_store_jar(folder)]
    return [path.name for path in paths if not path.is_file()]


def _is_whole(path: Path, jar: Jar) -> bool:
    return path.is_file() and sha256(path) == jar.sha256


def find_class_archive(folder: Path) -> Path | None:
    """Return the archive of classes that was made for a folder's jars where they lie; None without one.

    Of a checkout that was moved or copied Java passes over the archive without a word: that is said here.
    """
    own = folder.resolve()
    archive, stamp = own / CLASS_ARCHIVE, own / ARCHIVE_STAMP
    if not archive.is_file():
        return None
    if stamp.is_file() and str(own) in stamp.read_text().splitlines():
        return archive
    log.warning("%s was made elsewhere: Spark starts without it, some 5 s slower; run `make setup`", archive)
    return None


@dataclass(frozen=True, slots=True)
class SparkJars:
    """Absolute paths on the machine that submits.

    Attributes:
        delta: of Delta's jars.
        local_files: of the file system for local disks.
        class_archive: of the archive of classes that ``make setup`` made for these jars; None without one.
        s3: of the client of S3 and the log store for it; empty where no path is on S3.
    """

    delta: tuple[str, ...]
    local_files: str
    class_archive: str | None = None
    s3: tuple[str, ...] = ()


def spark_jars(folder: Path, *, with_s3: bool = False) -> SparkJars:
    """Return the jars in a folder.

    Raises:
        JarsMissingError: ``make setup`` has not fetched them.
    """
    if with_s3 and (lacking := missing_s3_jars(folder)):
        raise JarsMissingError(
            f"{folder} lacks {', '.join(lacking)}: run `make setup EXTRA=s3`, which fetches them once"
        )
    paths = {jar: folder.resolve() / jar.file_name for jar in ALL_JARS}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        raise JarsMissingError(f"{folder} lacks {', '.join(missing)}: run `make setup`, which fetches them once")
    archive = find_class_archive(folder)
    delta = tuple(str(paths[jar]) for jar in DELTA_JARS)
    s3 = (*(folder.resolve() / jar.file_name for jar in S3_JARS), log_store_jar(folder.resolve())) if with_s3 else ()
    return SparkJars(delta, str(paths[LOCAL_FILES_JAR]), str(archive) if archive else None, tuple(map(str, s3)))
