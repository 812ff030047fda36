"""Names of Debian's and Ubuntu's packages, as this machine's release has them.

Standard library only, and no syntax of a Python newer than 3.7 (see :mod:`cli.preflight`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
# Releases whose newest JDK of those that are supported is 17; every later one has 21.
WITH_JDK_17 = {("debian", "12"), ("ubuntu", "22.04")}


def install_command(packages: Sequence[str]) -> str:
    """Return the command that installs packages."""
    return f"apt-get install -y {' '.join(packages)}"


def jdk_package(os_release: Path = OS_RELEASE) -> str:
    """Return the package of a JDK that is supported."""
    lines = os_release.read_text().splitlines() if os_release.is_file() else []
    values = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
    major = 17 if (values.get("ID"), values.get("VERSION_ID")) in WITH_JDK_17 else 21
    return f"openjdk-{major}-jdk-headless"


def python_package(version: Sequence[int], prefix: str = sys.base_prefix) -> str:
    """Return the package that has venv and ensurepip for an interpreter of the system's own."""
    return f"python{version[0]}.{version[1]}-venv" if prefix == "/usr" else "python3-venv"
