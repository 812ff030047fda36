"""``python -m tools.class_archive FILE``: archive the classes that Spark loads, with which its drivers start faster.

Java writes it at the end of ``spark_jobs/load_classes.py``, in a folder that is removed afterwards. `make setup` calls
this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cli.embedded import LOOPBACK, below
from include.atomic_write import replace_atomically
from include.settings import PROJECT, load_settings
from include.spark.conf import JAVA_OPTIONS
from include.spark.submission import prepare_submission

MASTER = "local[*]"


def make_archive(path: str) -> str:
    """Return the Java options that write an archive of all loaded classes when Java ends."""
    return f"-XX:ArchiveClassesAtExit={path}"


def write_archive(target: Path, out: Path) -> None:
    """Load classes below ``out`` and write the archive.

    Raises:
        CalledProcessError: a class could not be loaded.
        FileNotFoundError: it ended without writing an archive.
    """
    target.unlink(missing_ok=True)  # a driver that starts from an archive writes none
    os.environ.update(below(out))
    submission = prepare_submission(load_settings(), MASTER)
    submission = replace(submission, application=str(PROJECT / "spark_jobs" / "load_classes.py"))
    with replace_atomically(target) as temporary:
        # Into a new file: Java takes away everybody's right to write to an archive, and writes to none that is there.
        submission.conf[JAVA_OPTIONS] = f"{submission.conf[JAVA_OPTIONS]} {make_archive(str(temporary))}"
        command = submission.command([str(out)])
        environment = dict(os.environ) | submission.environment | {"SPARK_LOCAL_IP": LOOPBACK}
        subprocess.run(command, env=environment, cwd=out, check=True)


def main(argv: Sequence[str]) -> int:
    """Write the archive; returns the exit code."""
    (target,) = argv
    with tempfile.TemporaryDirectory(prefix="tidewise-classes-") as folder:
        try:
            write_archive(Path(target).resolve(), Path(folder))
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"class_archive: no archive was written: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
