"""Programs that only tests use: found on this machine, else fetched into .cache/parts, else named as missing."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

T = TypeVar("T")
PROJECT_ROOT = Path(__file__).resolve().parents[1]
PARTS = PROJECT_ROOT / ".cache" / "parts"
KAFKA_VERSION = "3.9.1"
MOTO_VERSION = "5.2.5"
_KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"
_CONNECTOR = "org.apache.flink:flink-connector-kafka:4.0.1-2.0"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>parts</groupId><artifactId>parts</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


class PartMissingError(RuntimeError):
    """A program that a test needs is not on this machine and could not be fetched; the message says what to do."""


def _one_at_a_time(what: str) -> Callable[[Callable[[], T]], Callable[[], T]]:
    """Let one process at a time look for a part: two that fetch it would be in each other's way."""

    def lock(find: Callable[[], T]) -> Callable[[], T]:
        @functools.wraps(find)
        def wait_and_find() -> T:
            PARTS.mkdir(parents=True, exist_ok=True)
            with FileLock(PARTS / f"{what}.lock"):
                return find()

        return wait_and_find

    return lock


@_one_at_a_time("prometheus")
def find_prometheus() -> Path:
    """Return the folder with ``prometheus`` and ``promtool``: of PROMETHEUS_HOME, of PATH, or of Debian's package.

    Raises:
        PartMissingError: it is in neither place and the package could not be fetched.
    """
    home, result = os.environ.get("PROMETHEUS_HOME"), shutil.which("prometheus")
    known = [Path(home)] if home else []
    known += [Path(result).parent] if result else []
    fetched = PARTS / "prometheus" / "usr" / "bin"
    for folder in (*known, fetched):
        if (folder / "prometheus").is_file() and (folder / "promtool").is_file():
            return folder
    _unpack_debian("prometheus", "promtool")
    return fetched


@_one_at_a_time("victoria_metrics")
def find_victoria_metrics() -> Path:
    """Return the program ``victoria-metrics``: of PATH, or of Debian's package.

    Raises:
        PartMissingError: it is in neither place and the package could not be fetched.
    """
    result = shutil.which("victoria-metrics")
    fetched = PARTS / "victoria-metrics" / "usr" / "bin" / "victoria-metrics"
    if result is None and not fetched.is_file():
        _unpack_debian("victoria-metrics")
    return fetched if result is None else Path(result)


@_one_at_a_time("kafka")
def find_kafka() -> Path:
    """Return the folder with the jars of a Kafka broker: KAFKA_LIBS, or those of Maven Central.

    Raises:
        PartMissingError: they are in neither place and could not be fetched.
    """
    libs = os.environ.get("KAFKA_LIBS")
    folder = Path(libs) if libs else PARTS / f"kafka-{KAFKA_VERSION}"
    if any(folder.glob("kafka_2.13-*.jar")):
        return folder
    if libs or not shutil.which("mvn"):
        raise PartMissingError(f"no Kafka broker: {folder} has no kafka_2.13 jar; install Maven, or set KAFKA_LIBS")
    group, artifact, version = _KAFKA.split(":")
    with tempfile.TemporaryDirectory(prefix="tidewise-parts-") as work:
        pom = Path(work) / "pom.xml"
        pom.write_text(_POM.format(group=group, artifact=artifact, version=version))
        with _filling(folder) as partial:
            options = [f"-DoutputDirectory={partial}", "-DincludeScope=runtime"]
            _run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", *options], "Kafka's jars")
    return folder


@_one_at_a_time("kafka_connector")
def find_kafka_connector() -> list[Path]:
    """Return the jars that a Flink job with a Kafka source needs: the connector, and Kafka's client.

    Raises:
        PartMissingError: they are not there and could not be fetched.
    """
    folder = PARTS / "flink-connector-kafka"
    if not any(folder.glob("flink-connector-kafka-*.jar")):
        if not shutil.which("mvn"):
            raise PartMissingError(f"no Kafka connector: {folder} has none; install Maven")
        options = [f"-Dartifact={_CONNECTOR}", f"-DoutputDirectory={folder}"]
        _run(["mvn", "-q", "-B", "dependency:copy", *options], "Flink's Kafka connector")
    return [*folder.glob("flink-connector-kafka-*.jar"), *find_kafka().glob("kafka-clients-*.jar")]


@_one_at_a_time("moto")
def find_moto() -> Path:
    """Return the folder with moto, whose server speaks S3, and what it needs.

    Raises:
        PartMissingError: it is not there and could not be fetched.
    """
    folder = PARTS / f"moto-{MOTO_VERSION}"
    if not (folder / "moto").is_dir():
        with _filling(folder) as partial:
            uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--target", str(partial)]
            _run([*uv, f"moto=={MOTO_VERSION}", "flask", "flask-cors"], "moto")
    return folder


def _unpack_debian(package: str, program: str = "") -> None:
    """Fetch a Debian package and unpack it without installing it: no service is started.

    Args:
        package: its name, and that of the folder.
        program: that is needed as well: of this package, or in later releases of Debian of one of its own name.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise PartMissingError(f"no {package}: put its programs on PATH")
    with _filling(PARTS / package) as partial:
        _unpack(package, partial)
        if program and not (partial / "usr" / "bin" / program).is_file():
            _unpack(program, partial)


def _unpack(package: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="tidewise-parts-") as work:
        _run(["apt-get", "download", package], package, cwd=work)
        (file,) = Path(work).glob(f"{package}_*.deb")
        _run(["dpkg", "-x", str(file), str(folder)], package)


@contextmanager
def _filling(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, which takes the place of the one that is missing, or lacks something, once it is whole."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    yield partial
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _run(command: list[str], what: str, cwd: str | None = None) -> None:
    PARTS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        tail = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise PartMissingError(
            f"{what} could not be fetched: {' '.join(tail)}; `{' '.join(command[:3])}` needs the network"
        )
