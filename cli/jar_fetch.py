"""Fetching the jars that Spark needs beside its own, from Maven Central, each once and pinned by content.

Standard library only: the set-up fetches them before it can use the environment that it makes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.setup_steps import SetupError, run
from include.spark.jars import ALL_JARS, Jar, unusable_jars


def fetch_jars(folder: Path, java: Path, packages: Path, jars: Sequence[Jar] = ALL_JARS) -> None:
    """Fetch the jars that a folder lacks: with Maven when it is there and works, with Ivy otherwise.

    ``packages`` is the folder of Python's packages with PySpark, which ships Ivy.

    Raises:
        SetupError: one could not be fetched; the message says what to do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remedy = f"check the network, or put {', '.join(jar.file_name for jar in jars)} into {folder} yourself"
    for jar in unusable_jars(folder, jars):
        (folder / jar.file_name).unlink(missing_ok=True)
        if shutil.which("mvn"):
            try:
                run(_maven(jar, folder), remedy)
            except SetupError:
                print(f"Maven could not fetch {jar.coordinates}, trying Ivy", flush=True)
        if jar in unusable_jars(folder, jars):
            run(_ivy(jar, folder, java, packages), remedy)


def _maven(jar: Jar, folder: Path) -> list[str]:
    options = ["-Dmdep.useBaseVersion=true", f"-DoutputDirectory={folder}"]
    return ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar.coordinates}", *options]


def _ivy(jar: Jar, folder: Path, java: Path, packages: Path) -> list[str]:
    """Return a call of the Ivy that PySpark ships; it needs nothing but Java."""
    ivy = next((packages / "pyspark" / "jars").glob("ivy-*.jar"))
    dependency = ["-dependency", jar.group, jar.artifact, jar.version, "-notransitive", "-confs", "default"]
    pattern = f"{folder}/[artifact]-[revision].[ext]"
    return [str(java), "-jar", str(ivy), "-cache", str(folder.parent / "ivy"), *dependency, "-retrieve", pattern]
