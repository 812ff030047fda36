"""Checks of this machine: Python, shared libraries, Java, Spark's jars, disk space."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from cli.doctor.findings import Finding, error, ok, warning
from cli.preflight import PreflightError, check_libraries, check_python, find_jdk
from include.settings import Settings
from include.spark.jars import ALL_JARS, find_class_archive, unusable_jars

GIB = 2**30
FREE_LEAST_GIB, FREE_ENOUGH_GIB = 2.0, 10.0


def check_interpreter(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Check the version of Python."""
    try:
        check_python(version)
    except PreflightError as problem:
        return error("Python", "version", *_split(problem))
    return ok("Python", "version", ".".join(map(str, version)))


def check_shared_libraries() -> Finding:
    """Check that what the wheels load from the system is there."""
    try:
        check_libraries()
    except PreflightError as problem:
        return error("Python", "libraries", *_split(problem))
    return ok("Python", "libraries", "OpenMP for LightGBM")


def check_java(environment: Mapping[str, str] | None = None) -> Finding:
    """Check that Spark finds a JDK that it runs on."""
    try:
        result = find_jdk(environment)
    except PreflightError as problem:
        return error("Java", "version", *_split(problem))
    return ok("Java", "version", f"{result.version} at {result.java}")


def check_jars(settings: Settings) -> Finding:
    """Check that Delta's jars are whole, and that Java takes Spark's classes from an archive."""
    folder = Path(settings.spark.jars_dir)
    bad = unusable_jars(folder)
    if bad:
        names = ", ".join(jar.file_name for jar in bad)
        return error("Spark", "jars", f"{folder} lacks {names}, or holds them damaged", "run `make setup`")
    if find_class_archive(folder) is None:
        text = f"{folder} has no archive of classes made for it: each application starts some 5 s slower"
        return warning("Spark", "jars", text, "run `make setup`")
    return ok("Spark", "jars", f"{len(ALL_JARS)} jars in {folder}")


def check_disk(settings: Settings) -> list[Finding]:
    """Check the free space where data are written; each file system once."""
    places = {"out": settings.paths.out, "raw files": settings.paths.raw, "lake": settings.paths.lake, "/tmp": "/tmp"}
    observed: dict[int, Finding] = {}
    for name, place in places.items():
        if "://" in place:
            continue
        folder = find_existing(Path(place))
        observed.setdefault(folder.stat().st_dev, _judge_space(name, folder))
    return list(observed.values())


def find_existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that is there."""
    return next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())


def _judge_space(name: str, folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free / GIB
    text = f"{free:.1f} GiB free for {name} at {folder}"
    if free < FREE_LEAST_GIB:
        return error("disk", "space", text, f"free at least {FREE_LEAST_GIB:g} GiB: a full disk stops every stage")
    if free < FREE_ENOUGH_GIB:
        return warning("disk", "space", text, f"{FREE_ENOUGH_GIB:g} GiB last for months of a few jobs: make room")
    return ok("disk", "space", text)


def _split(problem: Exception) -> tuple[str, str]:
    """Return what a message of the preflight says is wrong, and its remedy."""
    text, _, remedy = str(problem).partition(": ")
    return text, remedy
