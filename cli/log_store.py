"""``python -m cli.log_store FOLDER``: compile Delta's log store for S3 against the jars in a folder, into a jar there.

`make setup EXTRA=s3` calls this. Exit code 1 with what the compiler said.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cli.java_build import JAVA_RELEASE, JavaBuildError, java_tool, pack_classes
from include.spark.jars import DELTA_JARS, LOG_STORE_SOURCE, log_store_jar


def build_log_store(folder: Path) -> Path:
    """Return the jar of the log store, compiled unless it is there.

    Raises:
        JavaBuildError: there is no JDK, or it refuses the source.
    """
    target = log_store_jar(folder)
    if target.is_file():
        return target
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise JavaBuildError("pyspark is not installed: run `make setup`")
    libraries = [*(Path(spark.origin).parent / "jars").glob("hadoop-client-api-*.jar")]
    libraries += [folder / jar.file_name for jar in DELTA_JARS]
    with tempfile.TemporaryDirectory(prefix="tidewise-javac-") as classes:
        command = [java_tool("javac"), "--release", JAVA_RELEASE, "-Xlint:all,-path,-classfile", "-Werror"]
        command += ["-cp", ":".join(map(str, libraries)), "-d", classes, str(LOG_STORE_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JavaBuildError(f"javac failed (is it a JDK {JAVA_RELEASE} or later?):\n{done.stderr.strip()}")
        pack_classes(Path(classes), target)
    for old in folder.glob("tidewise-log-store-*.jar"):
        if old != target:
            old.unlink()
    return target


def main(argv: Sequence[str]) -> int:
    """Build; returns the exit code."""
    (folder,) = argv
    try:
        print(build_log_store(Path(folder).resolve()))
    except JavaBuildError as error:
        print(f"log_store: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
