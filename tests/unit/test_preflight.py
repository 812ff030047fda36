from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import preflight
from cli.preflight import PreflightError, check_libraries, check_machine, check_python, find_jdk, java_major
from cli.system_packages import jdk_package, python_package
from include.settings import PROJECT
from include.spark.jars import ALL_JARS, Jar, JarsMissingError, spark_jars, unusable_jars

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
OPENJDK_21 = 'openjdk version "21" 2023-09-19'
JAVA_8 = 'java version "1.8.0_392"'
JAVA_25 = 'openjdk version "25.0.3" 2026-04-21'


def one_line(error: pytest.ExceptionInfo[PreflightError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.fixture(autouse=True)
def no_other_jdk(tmp_path, monkeypatch):
    """No JDK beside the one that a test offers, whatever this machine has."""
    monkeypatch.setattr(preflight, "JVM_FOLDER", tmp_path / "jvm")


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
    assert check_machine().version.startswith(("17", "21"))


@pytest.mark.parametrize("version", [(3, 11, 7), (3, 12, 1), (3, 13, 5)])
def test_these_pythons_are_taken(version):
    check_python(version)


@pytest.mark.parametrize(("version", "age"), [((3, 9, 2), "old"), ((3, 10, 12), "old"), ((3, 14, 0), "new")])
def test_another_python_is_named_with_the_remedy(version, age):
    with pytest.raises(PreflightError) as error:
        check_python(version)
    told = one_line(error)
    assert f"Python {'.'.join(map(str, version))} at {sys.executable} is too {age}" in told
    assert "Python 3.11, 3.12 or 3.13 is needed: install one" in told


@pytest.mark.parametrize(("banner", "version"), [(OPENJDK_17, "17.0.15"), (OPENJDK_21, "21")])
def test_a_jdk_is_found(tmp_path, banner, version):
    jdk = find_jdk(fake_jdk(tmp_path / "jdk", banner))
    assert (jdk.java, jdk.version) == (tmp_path / "jdk" / "bin" / "java", version)


@pytest.mark.parametrize(("banner", "age"), [(JAVA_8, "old"), (JAVA_25, "new"), ('version "19.0.2"', "unusual")])
def test_another_java_is_named_with_the_remedy(tmp_path, banner, age):
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jdk", banner))
    assert f"which is too {age}, a JDK 17 or 21 is needed: install openjdk-" in one_line(error)
    assert "set JAVA_HOME" in one_line(error)


def test_a_jdk_that_is_here_already_is_named(tmp_path):
    for name, version in (("a-jdk-25", "25.0.3"), ("b-jdk-21", "21.0.9")):
        fake_jdk(tmp_path / "jvm" / name, JAVA_25)
        (tmp_path / "jvm" / name / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jdk", JAVA_25))
    assert one_line(error).endswith(f"set JAVA_HOME={tmp_path}/jvm/b-jdk-21")
    assert error.value.packages == ()


def test_all_that_is_missing_is_named_at_once_with_one_command(tmp_path, monkeypatch):
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    monkeypatch.setattr(preflight, "jdk_package", lambda: jdk_package(tmp_path / "os-release"))
    monkeypatch.setattr(preflight, "python_package", lambda version: python_package((3, 13), "/usr"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ensurepip" else name)
    monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PreflightError) as error:
        check_machine({"PATH": str(tmp_path)})
    first, *problems, last = str(error.value).splitlines()
    assert "nothing was installed" in first
    for problem, expected in zip(problems, ("no ensurepip", "no java", "libgomp.so.1", "no make"), strict=True):
        assert expected in problem
    assert last.endswith("apt-get install -y python3.13-venv openjdk-21-jdk-headless libgomp1 make")


def test_one_thing_alone_is_missing(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(PreflightError) as error:
        check_libraries()
    assert "LightGBM" in one_line(error)
    assert error.value.packages == ("libgomp1",)


@pytest.mark.parametrize(
    ("release", "package"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "openjdk-17-jdk-headless"),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', "openjdk-17-jdk-headless"),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', "openjdk-21-jdk-headless"),
        (None, "openjdk-21-jdk-headless"),
    ],
)
def test_the_jdk_is_one_that_the_release_has(tmp_path, release, package):
    if release is not None:
        (tmp_path / "os-release").write_text(release)
    assert jdk_package(tmp_path / "os-release") == package


def test_venv_of_the_systems_python_alone_has_a_version():
    assert python_package((3, 12, 3), "/usr") == "python3.12-venv"
    assert python_package((3, 12, 3), "/opt/python") == "python3-venv"


def test_a_jre_is_named_with_the_remedy(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk(fake_jdk(tmp_path / "jre", OPENJDK_17, compiler=False))
    assert "no javac" in one_line(error)


def test_no_java_at_all(tmp_path):
    with pytest.raises(PreflightError) as error:
        find_jdk({"PATH": str(tmp_path)})
    assert "there is no java on PATH" in one_line(error)


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
    assert "3.11, 3.12 or 3.13 is needed" in done.stdout
    assert not (clone / ".venv").exists()


def test_make_setup_with_a_wrong_java_says_so_before_installing(clone, tmp_path):
    variables = fake_jdk(tmp_path / "jdk", JAVA_25)
    done = make("setup", f"PYTHON={sys.executable}", cwd=clone, **variables)
    assert done.returncode != 0
    assert "is Java 25.0.3, which is too new" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv").exists()


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
