"""Fetch the autoscaler's jars, pinned by content, and compile the program that drives it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cli.java_build import JAVA_RELEASE, java_tool
from include.settings import PROJECT

HERE = Path(__file__).parent
POM, PINS, SOURCES = HERE / "pom.xml", HERE / "jars.sha256", HERE / "src"
JARS = PROJECT / ".cache" / "flink-autoscaler-1.10.0"
MAIN_CLASS = "io.tidewise.replay.ReplayAutoscaler"
# Its classes replace some of Flink's, so it has to come first.
_FIRST = "flink-autoscaler-"


class AutoscalerJarError(RuntimeError):
    """The autoscaler's jars or a JDK are missing; the message names the remedy."""


def read_pins(path: Path = PINS) -> dict[str, str]:
    """Return file name -> SHA-256 of every jar."""
    pairs = (line.split() for line in path.read_text(encoding="ascii").splitlines() if line)
    return {name: digest for digest, name in pairs}


def find_wrong_jars(folder: Path, pins: Mapping[str, str]) -> list[str]:
    """Return the jars that a folder lacks, has with another content, or has beyond the pinned ones."""
    result = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.jar")}
    return sorted(name for name in {*pins, *result} if pins.get(name) != result.get(name))


def fetch_jars(folder: Path = JARS) -> list[Path]:
    """Return the jars, the autoscaler's first; they are fetched from Maven Central when they are not there.

    Raises:
        AutoscalerJarError: Maven is missing, failed, or brought something else.
    """
    pins = read_pins()
    if not folder.is_dir():
        if not shutil.which("mvn"):
            raise AutoscalerJarError(f"no Maven: install it, or put the jars of {PINS} into {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="autoscaler-", dir=folder.parent) as work:
            partial = Path(work) / "jars"
            command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
            done = subprocess.run(
                [*command, f"-DoutputDirectory={partial}"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise AutoscalerJarError(f"Maven could not fetch the autoscaler: {(done.stdout + done.stderr)[-500:]}")
            if wrong := find_wrong_jars(partial, pins):
                raise AutoscalerJarError(f"Maven Central gave other jars than those pinned: {', '.join(wrong)}")
            partial.rename(folder)
    elif wrong := find_wrong_jars(folder, pins):
        raise AutoscalerJarError(f"{folder} has other jars than those pinned ({', '.join(wrong)}): remove it")
    jars = sorted(folder.glob("*.jar"))
    return sorted(jars, key=lambda jar: not jar.name.startswith(_FIRST))


def build_command(folder: Path = JARS) -> list[str]:
    """Return the command that runs the program; it is compiled when its sources have changed.

    Raises:
        AutoscalerJarError: jars or a JDK are missing, or the sources do not compile.
    """
    jars = fetch_jars(folder)
    path = ":".join(map(str, jars))
    files = sorted(SOURCES.rglob("*.java"))
    digest = hashlib.sha256(b"".join([JAVA_RELEASE.encode(), PINS.read_bytes(), *(one.read_bytes() for one in files)]))
    classes = folder / f"classes-{digest.hexdigest()[:12]}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(prefix="classes-", dir=folder) as work:
            made = Path(work) / "classes"
            made.mkdir()
            lint = "-Xlint:all,-path,-classfile,-processing"
            command = [java_tool("javac"), "--release", JAVA_RELEASE, lint, "-Werror", "-cp", path, "-d", str(made)]
            done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise AutoscalerJarError(f"javac failed: {done.stderr.strip()}")
            made.rename(classes)
    return [java_tool("java"), "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{classes}:{path}", MAIN_CLASS]
