"""The script for services that take one Python file and its arguments: it fetches code and settings, then launches.

``fetch_and_launch.py CODE SETTINGS STAGE... --as-of ...``: CODE is the URI of the project's zip, SETTINGS that of the
file of settings. Spark fetches both, with the rights that it reads tables with; the executors get the code too. The
script runs without the project, so it imports nothing of it before that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark import SparkFiles
from pyspark.sql import SparkSession


def main(argv: Sequence[str]) -> int:
    """Run the stages; returns the exit code."""
    code, settings, *asked = argv
    context = SparkSession.builder.getOrCreate().sparkContext
    context.addPyFile(code)
    context.addFile(settings)
    # The service has configured the session, as spark-submit would have; the project asks for this.
    os.environ.setdefault("SPARK_ENV_LOADED", "1")
    from include.spark.shipped_settings import OPTION
    from spark_jobs.launch import main as launch

    return launch([*asked, OPTION, SparkFiles.get(PurePosixPath(settings).name)])


if __name__ == "__main__":
    if status := main(sys.argv[1:]):  # Databricks takes any SystemExit, also that of 0, for a failure
        sys.exit(status)
