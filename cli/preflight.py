"""What a machine must have before anything is installed: Python 3.11 with venv, and a JDK 17.

Standard library only: it runs before the virtual environment exists.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PYTHON = (3, 11)
JAVA_MAJOR = 17
INSTALL_JDK = f"install a JDK {JAVA_MAJOR} (Debian: apt install openjdk-17-jdk-headless) and set JAVA_HOME to it"


class PreflightError(RuntimeError):
    """A prerequisite is missing or wrong; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Jdk:
    """The JDK that Spark and the Flink processes will use.

    Attributes:
        java, javac: the executables.
        version: as the JDK reports it, for example 17.0.15.
    """

    java: Path
    javac: Path
    version: str


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> None:
    """Check the interpreter.

    Raises:
        PreflightError: another version than 3.11, or a Python without venv.
    """
    result, wanted = ".".join(map(str, version)), ".".join(map(str, PYTHON))
    if version[:2] != PYTHON:
        raise PreflightError(
            f"Python {wanted} is needed, {result} found: install python{wanted}, then make PYTHON=/path/to/it"
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise PreflightError(f"this Python has no {module}: install it (Debian: apt install python{wanted}-venv)")


def java_major(banner: str) -> tuple[int, str]:
    """Read ``java -version``'s banner; returns the major version and the whole version.

    Raises:
        PreflightError: the banner names no version.
    """
    match = re.search(r'version "([^"]+)"', banner)
    if match is None:
        first_line = banner.strip().splitlines()[0] if banner.strip() else "no output"
        raise PreflightError(f"java does not report its version ({first_line}): {INSTALL_JDK}")
    version = match[1]
    parts = re.findall(r"\d+", version)
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]), version  # 1.8.0 is Java 8


def find_jdk(environment: Mapping[str, str] | None = None) -> Jdk:
    """Find and check the JDK the way Spark does: JAVA_HOME first, then PATH.

    Raises:
        PreflightError: no Java, another version than 17, or a JRE without javac.
    """
    environment = os.environ if environment is None else environment
    java, javac, origin = _executables(environment)
    try:
        banner = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PreflightError(f"{java} does not run ({error}): {INSTALL_JDK}") from error
    major, version = java_major(banner.stderr + banner.stdout)
    if major != JAVA_MAJOR:
        raise PreflightError(f"Java {JAVA_MAJOR} is needed, {origin} is Java {version}: {INSTALL_JDK}")
    if not os.access(javac, os.X_OK):
        raise PreflightError(f"{origin} has no javac (a JRE, not a JDK): {INSTALL_JDK}")
    return Jdk(Path(java), Path(javac), version)


def _executables(environment: Mapping[str, str]) -> tuple[str, str, str]:
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise PreflightError(f"JAVA_HOME={home} has no bin/java: unset JAVA_HOME, or {INSTALL_JDK}")
        return str(java), str(java.with_name("javac")), f"JAVA_HOME={home}"
    result = shutil.which("java", path=environment.get("PATH"))
    if result is None:
        raise PreflightError(f"no java on PATH and JAVA_HOME is not set: {INSTALL_JDK}")
    javac = shutil.which("javac", path=environment.get("PATH")) or str(Path(result).resolve().with_name("javac"))
    return result, javac, result
