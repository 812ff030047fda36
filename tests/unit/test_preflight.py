from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.preflight import PreflightError, check_python, find_jdk, java_major
from include.settings import PROJECT
from include.spark.jars import ALL_JARS, Jar, JarsMissingError, spark_jars, unusable_jars

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
OPENJDK_21 = 'openjdk version "21" 2023-09-19'
JAVA_8 = 'java version "1.8.0_392"'


def one_line(error: pytest.ExceptionInfo[PreflightError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


def fake_jdk(home: Path, banner: str, *, compiler: bool = True) -> dict[str, str]:
    (home / "bin").mkdir(parents=True)
    for name in ["java", *(["javac"] if compiler else [])]:
        tool = home / "bin" / name
        tool.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{banner}\nEND\n")
        tool.chmod(0o755)
    return {"JAVA_HOME": str(home), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(("banner", "major"), [(OPENJDK_17, 17), (OPENJDK_21, 21), (JAVA_8, 8)])
def test_major_version(banner, major):
    assert java_major(banner)[0] == major


def test_this_machine_passes():
    check_python()
    assert find_jdk().version.startswith("17")


def test_another_python_is_named_with_the_remedy():
    with pytest.raises(PreflightError) as error:
        check_python((3, 9, 2))
    assert "Python 3.11 is needed, 3.9.2 found: install python3.11" in one_line(error)


def test_a_jdk_17_is_found(tmp_path):
    jdk = find_jdk(fake_jdk(tmp_path / "jdk", OPENJDK_17))
    assert (jdk.java, jdk.version) == (tmp_path / "jdk" / "bin" / "java", "17.0.15")


@pytest.mark.parametrize("banner", [OPENJDK_21, JAVA_8])
def test_another_java_is_named_with_the_remedy(tmp_path, banner):
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jdk", banner))
    assert "Java 17 is needed" in one_line(error)
    assert "set JAVA_HOME" in one_line(error)


def test_a_jre_is_named_with_the_remedy(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jre", OPENJDK_17, compiler=False))
    assert "no javac" in one_line(error)


def test_no_java_at_all(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk({"PATH": str(tmp_path)})
    assert "no java on PATH" in one_line(error)


def test_a_wrong_java_home_is_named(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert f"JAVA_HOME={tmp_path} has no bin/java" in one_line(error)


def test_a_java_that_is_none_is_named(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jdk", "No Java runtime present"))
    assert "does not report its version (No Java runtime present)" in one_line(error)


def make(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin"} | variables
    return subprocess.run(["make", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def clone(tmp_path) -> Path:
    """What the set-up needs of the repository before anything is installed."""
    shutil.copy(PROJECT / "Makefile", tmp_path)
    for file in PROJECT.glob("requirements*.txt"):
        shutil.copy(file, tmp_path)
    for package in ("cli", "include"):
        shutil.copytree(PROJECT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("python", ["/not/here/python", "/bin/sh"])
def test_make_setup_without_a_python_says_so_in_one_line(clone, python):
    done = make("setup", f"PYTHON={python}", cwd=clone)
    assert done.returncode != 0
    assert "Python 3.11 is needed" in done.stdout
    assert not (clone / ".venv").exists()


def test_make_setup_with_a_wrong_java_says_so_before_installing(clone, tmp_path):
    variables = fake_jdk(tmp_path / "jdk", OPENJDK_21)
    done = make("setup", f"PYTHON={sys.executable}", cwd=clone, **variables)
    assert done.returncode != 0
    assert "setup: Java 17 is needed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv").exists()


def test_make_help_lists_every_target():
    done = make("help", cwd=PROJECT)
    for target in ("setup", "run", "test", "ui", "airflow", "record", "bench", "check", "lint", "lock", "clean"):
        assert f"make {target} " in done.stdout


def test_half_a_jar_is_fetched_again_and_a_missing_one_named(tmp_path):
    assert unusable_jars(tmp_path) == list(ALL_JARS)
    for jar in ALL_JARS:
        (tmp_path / jar.file_name).write_bytes(b"half a download")
    assert unusable_jars(tmp_path) == list(ALL_JARS)
    (tmp_path / ALL_JARS[0].file_name).unlink()
    with pytest.raises(JarsMissingError, match="make setup"):
        spark_jars(tmp_path)


def test_a_jar_is_known_by_its_content(tmp_path, monkeypatch):
    jar = Jar("g", "a", "1", hashlib.sha256(b"whole").hexdigest())
    monkeypatch.setattr("include.spark.jars.ALL_JARS", (jar,))
    (tmp_path / "a-1.jar").write_bytes(b"whole")
    assert unusable_jars(tmp_path) == []
    assert jar.coordinates == "g:a:1"
