"""Whether all that a set-up looks at is as the last whole one left it: then another one has nothing to do.

Standard library only. Sizes and times of files are compared, not their content: hashing the jars, asking Java for its
version and starting another Python for the Flink job take some seconds, before every command that needs a set-up.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cli.preflight import PreflightError, check_libraries, java_executables
from cli.setup_steps import ROOT
from include.atomic_write import write_text

STAMP = Path(".cache", "setup.json")
# A set-up goes by these,
_CODE = (
    "requirements*.txt",
    "cli/*.py",
    "lab/pyproject.toml",
    "lab/local_flink/*.py",
    "include/*.py",
    "include/spark/*.py",
    "include/spark/log_store/**/*.java",
    "flink_job/**/*.*",
)
# and makes these. A package that pip adds or removes changes the time of site-packages.
_MADE = (
    ".venv/pyvenv.cfg",
    ".venv/.tidewise-*",
    ".venv/lib/python*/site-packages",
    ".venv/lib/python*/site-packages/pyspark/python/lib/pyspark.zip",
    ".cache/jars/*",
    ".cache/flink/.complete",
    ".cache/flink/pyflink/lib/*.jar",
)


def note_ready(
    extras: Iterable[str], line: str, root: Path = ROOT, environment: Mapping[str, str] = os.environ
) -> None:
    """Note that a set-up with these extras has ended, and the line that it printed."""
    content = {"extras": sorted(extras), "line": line, "files": _list_files(root, environment)}
    write_text(root / STAMP, json.dumps(content))


def forget_ready(root: Path = ROOT) -> None:
    """Have the next set-up look at everything."""
    (root / STAMP).unlink(missing_ok=True)


def find_ready(extras: Iterable[str], root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the line that the last set-up printed; None where another has something to look at."""
    try:
        noted = json.loads((root / STAMP).read_text())
        check_libraries()
        if set(extras) <= set(noted["extras"]) and noted["files"] == _list_files(root, environment):
            return str(noted["line"])
    except (OSError, ValueError, KeyError, TypeError, PreflightError):
        pass  # the whole set-up says what is wrong
    return None


def _list_files(root: Path, environment: Mapping[str, str]) -> dict[str, list[int]]:
    """Return size and time of change, ns, of every file that counts, by its path.

    Raises:
        PreflightError: there is no Java.
        OSError: there is no .venv.
    """
    java, javac, _ = java_executables(environment)
    programs = [Path(one).resolve() for one in (root / ".venv" / "bin" / "python", java, javac)]
    files = [path for pattern in (*_CODE, *_MADE) for path in root.glob(pattern)]
    result = {}
    for path in sorted({*files, *programs}):
        state = path.stat()
        result[str(path)] = [state.st_size, state.st_mtime_ns]
    return result


def main(argv: Sequence[str]) -> int:
    """Print what the last set-up printed, and return 0, where another one has nothing to do."""
    line = find_ready(argv)
    if line is None:
        return 1
    print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
