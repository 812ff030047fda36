"""A set-up has nothing to do exactly as long as nothing changed of what it looks at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.setup_stamp import find_ready, forget_ready, note_ready
from include.settings import PROJECT

LINE = "setup: ready (Python, Java)"
SITE = Path(".venv", "lib", "python3.11", "site-packages")


def make_java(folder: Path) -> dict[str, str]:
    """Return an environment whose Java lies in a folder."""
    (folder / "bin").mkdir(parents=True)
    for name in ("java", "javac"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    return make_java(tmp_path / "jdk")


@pytest.fixture
def checkout(tmp_path, environment) -> Path:
    """A folder with what a set-up goes by and makes, as far as its files count, just set up with one extra."""
    root = tmp_path / "checkout"
    for name in (
        "requirements.txt",
        "cli/setup.py",
        "include/spark/jars.py",
        "flink_job/src/Job.java",
        "flink_job/build/job.jar",
        ".venv/.tidewise-packages",
        ".cache/jars/delta.jar",
        ".cache/flink/.complete",
        f"{SITE}/pyspark/python/lib/pyspark.zip",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("content")
    (root / ".venv" / "bin").mkdir()
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    note_ready(["s3"], LINE, root, environment)
    return root


def test_where_nothing_changed_the_line_of_the_last_set_up_is_repeated(checkout, environment) -> None:
    assert find_ready([], checkout, environment) == LINE
    assert find_ready(["s3"], checkout, environment) == LINE
    forget_ready(checkout)
    assert find_ready([], checkout, environment) is None


def test_another_extra_is_something_to_do(checkout, environment) -> None:
    assert find_ready(["postgres"], checkout, environment) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "requirements.txt").write_text("content==2"),
        lambda root: (root / "requirements-docs.txt").write_text("a file more"),
        lambda root: os.utime(root / "cli" / "setup.py", ns=(1, 1)),
        lambda root: (root / "flink_job" / "src" / "Job.java").unlink(),
        lambda root: (root / "flink_job" / "src" / "Other.java").touch(),
        lambda root: shutil.rmtree(root / "flink_job" / "build"),
        lambda root: (root / ".cache" / "jars" / "delta.jar").write_text("half"),
        lambda root: (root / ".cache" / "flink" / ".complete").unlink(),
        lambda root: (root / SITE / "a_package_more").mkdir(),
        lambda root: (root / SITE / "pyspark" / "python" / "lib" / "pyspark.zip").unlink(),
        lambda root: shutil.rmtree(root / ".venv"),
        lambda root: (root / ".venv" / "bin" / "python").unlink(),
        lambda root: (root / ".cache" / "setup.json").write_text("{"),
    ],
)
def test_every_change_of_what_it_looks_at_is_something_to_do(
    checkout, environment, change: Callable[[Path], object]
) -> None:
    change(checkout)
    assert find_ready([], checkout, environment) is None


def test_another_python_behind_the_same_name_is_something_to_do(checkout, environment, tmp_path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    (tmp_path / "python").write_text("another one")
    python.symlink_to(tmp_path / "python")
    assert find_ready([], checkout, environment) is None


def test_another_java_is_something_to_do_and_so_is_none(checkout, environment, tmp_path) -> None:
    assert find_ready([], checkout, make_java(tmp_path / "other")) is None
    assert find_ready([], checkout, {"PATH": str(tmp_path)}) is None
    os.utime(Path(environment["JAVA_HOME"], "bin", "java"), ns=(1, 1))
    assert find_ready([], checkout, environment) is None


def test_a_moved_checkout_is_something_to_do(checkout, environment) -> None:
    assert find_ready([], checkout.rename(checkout.with_name("moved")), environment) is None


def test_make_starts_no_whole_set_up_where_nothing_changed(tmp_path) -> None:
    """Make itself, with the answer of the stamp in the place of .venv's Python."""
    shutil.copy(PROJECT / "Makefile", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)

    def make(answer: int, *arguments: str) -> str:
        python.write_text(f"#!/bin/sh\necho asked $*\nexit {answer}\n")
        python.chmod(0o755)
        done = subprocess.run(
            ["make", "--dry-run", "setup", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "asked -m cli.setup_stamp s3" in make(0, "EXTRA=s3")
    assert "cli.setup " not in make(0)
    assert "-m cli.setup s3" in make(1, "EXTRA=s3")
    assert "asked" not in make(0, f"PYTHON={sys.executable}")
    assert "-m cli.setup " in make(0, f"PYTHON={sys.executable}")
