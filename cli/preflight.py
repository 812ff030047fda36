"""What a machine must have before anything is installed: a Python with venv, a JDK, and the libraries of wheels.

Standard library only, and no syntax of a Python newer than 3.7: it also has to tell an old Python what is missing.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cli.system_packages import install_command, jdk_package, python_package

PYTHONS = ((3, 11), (3, 12), (3, 13))
JAVAS = (17, 21)
PYTHON_NAMES = "Python 3.11, 3.12 or 3.13"
JDK_NAMES = "a JDK 17 or 21"
JVM_FOLDER = Path("/usr/lib/jvm")


class PreflightError(RuntimeError):
    """A prerequisite is missing or wrong; the message is one line with the remedy, or one line for each of several.

    Attributes:
        packages: of Debian and Ubuntu, that bring what is missing.
    """

    def __init__(self, message: str, *packages: str) -> None:
        super().__init__(message)
        self.packages = packages


class Jdk(NamedTuple):
    """The JDK that Spark and the Flink processes will use.

    Attributes:
        java, javac: the executables.
        version: as the JDK reports it, for example 17.0.15.
    """

    java: Path
    javac: Path
    version: str


def check_machine(environment: Mapping[str, str] | None = None) -> Jdk:
    """Check everything, and return the JDK.

    Raises:
        PreflightError: it names all that is missing at once, and the command that installs it.
    """
    jdks: list[Jdk] = []
    checks: tuple[Callable[[], object], ...] = (
        check_python,
        lambda: jdks.append(find_jdk(environment)),
        check_libraries,
        check_make,
    )
    problems = []
    for check in checks:
        try:
            check()
        except PreflightError as problem:
            problems.append(problem)
    if not problems:
        return jdks[0]
    raise combine(problems)


def combine(problems: list[PreflightError]) -> PreflightError:
    """Return one error that names several, with the one command that installs all of it."""
    packages = tuple(name for problem in problems for name in problem.packages)
    lines = ["this machine lacks something, and nothing was installed:"]
    lines += [f"  - {problem}" for problem in problems]
    if packages:
        lines.append(f"  On Debian or Ubuntu, as root: {install_command(packages)}")
    return PreflightError("\n".join(lines), *packages)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> None:
    """Check the interpreter.

    Raises:
        PreflightError: a version that is too old or too new, or a Python without venv.
    """
    result = ".".join(map(str, version))
    if tuple(version[:2]) not in PYTHONS:
        age = "old" if tuple(version[:2]) < PYTHONS[0] else "new"
        raise PreflightError(
            f"Python {result} at {sys.executable} is too {age}, {PYTHON_NAMES} is needed:"
            " install one beside it, then make PYTHON=/path/to/it"
        )
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        package = python_package(version)
        raise PreflightError(
            f"Python {result} at {sys.executable} has no {' and no '.join(missing)}: install {package}", package
        )


def check_libraries() -> None:
    """Check for the shared libraries that the wheels expect from the system: LightGBM's needs OpenMP.

    Raises:
        PreflightError: one cannot be loaded.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        raise PreflightError("libgomp.so.1 is missing, which LightGBM needs: install libgomp1", "libgomp1") from None


def check_make() -> None:
    """Check for make, by which every command starts.

    Raises:
        PreflightError: there is none.
    """
    if shutil.which("make") is None:
        raise PreflightError("there is no make on PATH: install make", "make")


def java_major(banner: str) -> tuple[int, str]:
    """Read ``java -version``'s banner; returns the major version and the whole version.

    Raises:
        PreflightError: the banner names no version.
    """
    match = re.search(r'version "([^"]+)"', banner)
    if match is None:
        first_line = banner.strip().splitlines()[0] if banner.strip() else "no output"
        raise _jdk_problem(f"java does not report its version ({first_line})")
    version = match[1]
    parts = re.findall(r"\d+", version)
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]), version  # 1.8.0 is Java 8


def find_jdk(environment: Mapping[str, str] | None = None) -> Jdk:
    """Find and check the JDK the way Spark does: JAVA_HOME first, then PATH.

    Raises:
        PreflightError: no Java, a version that is not supported, or a JRE without javac.
    """
    environment = os.environ if environment is None else environment
    java, javac, origin = java_executables(environment)
    try:
        banner = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _jdk_problem(f"{java} does not run ({error})") from error
    major, version = java_major(banner.stderr + banner.stdout)
    if major not in JAVAS:
        age = "old" if major < JAVAS[0] else "new" if major > JAVAS[-1] else "unusual"
        raise _jdk_problem(f"{origin} is Java {version}, which is too {age}")
    if not os.access(javac, os.X_OK):
        raise _jdk_problem(f"{origin} has no javac (a JRE, not a JDK)")
    return Jdk(Path(java), Path(javac), version)


def _jdk_problem(text: str) -> PreflightError:
    """Return what is wrong, with the remedy: a JDK that is here already, or the package of one."""
    homes = sorted(home for home in JVM_FOLDER.glob("*") if _is_supported(home))
    if homes:
        return PreflightError(f"{text}, {JDK_NAMES} is needed: set JAVA_HOME={homes[0]}")
    package = jdk_package()
    return PreflightError(f"{text}, {JDK_NAMES} is needed: install {package} and set JAVA_HOME to it", package)


def _is_supported(home: Path) -> bool:
    release = home / "release"
    if not release.is_file() or not os.access(str(home / "bin" / "javac"), os.X_OK):
        return False
    version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    return version is not None and int(version[1]) in JAVAS


def java_executables(environment: Mapping[str, str]) -> tuple[str, str, str]:
    """Return java, javac (which need not be there) and where they come from, the way Spark finds them.

    Raises:
        PreflightError: there is no java.
    """
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(str(java), os.X_OK):
            raise _jdk_problem(f"JAVA_HOME={home} has no bin/java")
        return str(java), str(java.with_name("javac")), f"JAVA_HOME={home}"
    result = shutil.which("java", path=environment.get("PATH"))
    if result is None:
        raise _jdk_problem("there is no java on PATH and JAVA_HOME is not set")
    javac = shutil.which("javac", path=environment.get("PATH")) or str(Path(result).resolve().with_name("javac"))
    return result, javac, result


def main() -> int:
    """Say what is missing; returns the exit code."""
    try:
        check_machine()
    except PreflightError as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
