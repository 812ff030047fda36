from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from cli.java_build import java_tool
from include.settings import PROJECT, Paths, Settings, Spark
from include.spark.code_zip import PACKAGES, RETAINED_ARCHIVES, PackagingError, build_package
from include.spark.conf import JAVA_OPTIONS, spark_conf, use_archive
from include.spark.jars import ALL_JARS, ARCHIVE_STAMP, CLASS_ARCHIVE, DELTA_JARS, spark_jars
from include.spark.submission import anchor, anchor_paths, prepare_submission, stage_environment
from include.stage_names import Stage
from include.version import stage_version
from tools.class_archive import make_archive


@pytest.fixture
def project(tmp_path) -> Path:
    """A small project with the three packages."""
    for package in PACKAGES:
        (tmp_path / package / "__pycache__").mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "one.py").write_text(f"NAME = {package!r}\n")
        (tmp_path / package / "__pycache__" / "one.pyc").write_bytes(b"x")
    return tmp_path


def test_the_same_code_is_the_same_bytes_whenever_and_wherever_built(project):
    first = build_package(project, project / "a" / "code.zip").read_bytes()
    for path in project.rglob("*.py"):
        path.touch()
    assert build_package(project, project / "b" / "code.zip").read_bytes() == first


def test_nothing_is_written_when_nothing_changed(project):
    package = build_package(project, project / "out" / "code.zip")
    before = package.stat()
    assert build_package(project, project / "out" / "code.zip") == package
    assert package.stat().st_mtime_ns == before.st_mtime_ns
    assert package.stat().st_ino == before.st_ino


def test_changed_code_leaves_the_zip_of_a_running_application_alone(project):
    old = build_package(project, project / "out" / "code.zip")
    content = old.read_bytes()
    (project / "models" / "one.py").write_text("NAME = 'other'\n")
    new = build_package(project, project / "out" / "code.zip")
    assert new != old
    assert old.read_bytes() == content


def test_old_zips_do_not_pile_up_and_no_partial_one_remains(project):
    for number in range(RETAINED_ARCHIVES + 4):
        (project / "models" / "one.py").write_text(f"NAME = {number}\n")
        newest = build_package(project, project / "out" / "code.zip")
    remaining = set((project / "out").iterdir())
    assert newest in remaining
    assert len(remaining) == RETAINED_ARCHIVES


def test_holds_the_packages_and_nothing_else(project):
    (project / "cli").mkdir()
    (project / "cli" / "run.py").write_text("")
    with zipfile.ZipFile(build_package(project, project / "out" / "code.zip")) as packed:
        names = packed.namelist()
    files = [f"{package}/{file}.py" for package in PACKAGES for file in ("__init__", "one")]
    assert names == [*files, *(f"{file}c" for file in files)]


def test_a_folder_that_is_not_the_project_is_refused(tmp_path):
    with pytest.raises(PackagingError, match=f"no package {PACKAGES[0]}"):
        build_package(tmp_path, tmp_path / "code.zip")


def _printed(code: str, package: Path, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, cwd=folder, env={"PYTHONPATH": str(package)}, text=True)


@pytest.fixture(scope="module")
def submitted(tmp_path_factory) -> Settings:
    """Settings of submissions, whose zip of the project's own code is written once."""
    folder = tmp_path_factory.mktemp("submitted")
    jars = str(PROJECT / ".cache" / "jars")
    return Settings(paths=Paths(out=str(folder)), spark=Spark(package_zip=str(folder / "code.zip"), jars_dir=jars))


def test_the_projects_own_zip_imports_without_the_checkout(tmp_path, submitted):
    package = build_package(PROJECT, Path(submitted.spark.package_zip))
    code = "import include.stage_request as s, include.version as v; print(s.__file__, v.stage_version(s.Stage.PLAN))"
    # Its modules are not compiled again, and its version is that of the same code in a checkout.
    assert _printed(code, package, tmp_path) == f"{package}/include/stage_request.pyc {stage_version(Stage.PLAN)}\n"


def test_an_environment_without_a_checkout_submits_the_code_it_has(tmp_path):
    """As pip installs it: settings, lake and `out` are below another folder than the packages."""
    settings = Settings(spark=Spark(jars_dir=str(PROJECT / Settings().spark.jars_dir)))
    submission = prepare_submission(settings, "local[1]", tmp_path)
    assert submission.application == str(PROJECT / "spark_jobs" / "launch.py")
    assert Path(submission.package).is_relative_to(tmp_path)
    with zipfile.ZipFile(submission.package) as packed:
        assert "lab/commands/advise.py" in packed.namelist()
    wheel = tomllib.loads((PROJECT / "lab" / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "pyproject.toml" in wheel["package-data"]["*"]  # its entry points are read from it


def test_byte_code_of_another_python_is_passed_over(project):
    package = build_package(project, project / "out" / "code.zip")
    other = package.with_name("other.zip")
    with zipfile.ZipFile(package) as packed, zipfile.ZipFile(other, "w") as rewritten:
        for name in packed.namelist():
            content = packed.read(name)
            rewritten.writestr(name, b"\0\0\r\n" + content[4:] if name.endswith(".pyc") else content)
    assert _printed("import models.one as one; print(one.NAME)", other, project / "out") == "models\n"


def test_locations_are_anchored_only_when_they_are_local_and_relative():
    root = Path("/srv/tidewise")
    assert anchor("out/lake", root) == "/srv/tidewise/out/lake"
    assert anchor("/data/lake", root) == "/data/lake"
    assert anchor("s3a://bucket/lake", root) == "s3a://bucket/lake"
    assert anchor("sqlite:///out/mlflow.db", root) == "sqlite:////srv/tidewise/out/mlflow.db"
    assert anchor("sqlite:////var/mlflow.db", root) == "sqlite:////var/mlflow.db"
    assert anchor("http://mlflow:5000", root) == "http://mlflow:5000"


def test_a_stage_sees_the_same_places_from_any_directory():
    settings = Settings(paths=Paths(lake="s3a://bucket/lake", raw="raw"))
    variables = stage_environment(settings, {"PYSPARK_PYTHON": "/opt/python"}, Path("/srv/tidewise"))
    assert (
        variables["TIDEWISE__PATHS__RAW"]
        == "/srv/tidewise/raw"
        == anchor_paths(settings, Path("/srv/tidewise")).paths.raw
    )
    assert "TIDEWISE__PATHS__LAKE" not in variables
    assert variables["PYSPARK_PYTHON"] == "/opt/python"


def test_a_submission_is_complete(submitted):
    submission = prepare_submission(submitted, "local[2]")
    command = submission.command([str(Stage.PLAN), "--as-of", "2026-11-20T19:00:00Z"], "spark-submit")
    assert command[:3] == ["spark-submit", "--master", "local[2]"]
    assert command[command.index("--py-files") + 1] == submission.package
    assert Path(submission.application).is_file()
    assert Path(submission.package).is_file()
    assert all(Path(jar).is_file() for jar in submission.conf["spark.driver.extraClassPath"].split(os.pathsep))
    assert f"spark.driver.extraClassPath={submission.conf['spark.driver.extraClassPath']}" in command
    assert command[-3:] == ["plan", "--as-of", "2026-11-20T19:00:00Z"]


def test_the_file_system_for_local_disks_is_used_only_where_all_processes_share_one(submitted):
    for master, wanted in (("local[*]", True), ("local-cluster[1,1,1024]", True), ("yarn", False), ("k8s://x", False)):
        conf = prepare_submission(submitted, master).conf
        assert ("spark.hadoop.fs.file.impl" in conf) is wanted
        assert ("spark.driver.extraClassPath" in conf) is wanted
    assert prepare_submission(submitted).master == submitted.spark.master


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("out/lake", "/srv/tidewise/out/lake"),
        ("s3a://bucket/lake", "s3a://bucket/lake"),
        ("sqlite:///out/mlflow.db", "sqlite:////srv/tidewise/out/mlflow.db"),
    ],
)
def test_relative_local_locations_are_made_absolute(location: str, expected: str) -> None:
    assert anchor(location, Path("/srv/tidewise")) == expected


@pytest.mark.parametrize("master", ["local[*]", "yarn"])
def test_classes_come_from_an_archive_only_where_the_driver_has_it(tmp_path, master):
    for jar in ALL_JARS:
        (tmp_path / jar.file_name).touch()
    settings = Settings(paths=Paths(out=str(tmp_path)), spark=Spark(jars_dir=str(tmp_path)))
    without = spark_conf(settings, spark_jars(tmp_path), master)
    (tmp_path / CLASS_ARCHIVE).touch()
    (tmp_path / ARCHIVE_STAMP).write_text(f"17\n{tmp_path}\n")
    conf = spark_conf(settings, spark_jars(tmp_path), master)
    used = f"{without[JAVA_OPTIONS]} {use_archive(str(tmp_path / CLASS_ARCHIVE))}"
    assert conf[JAVA_OPTIONS] == (used if master.startswith("local") else without[JAVA_OPTIONS])
    delta = [str(tmp_path / jar.file_name) for jar in DELTA_JARS]
    if master.startswith("local"):
        assert conf["spark.driver.extraClassPath"].split(os.pathsep)[1:] == delta
        assert "spark.jars" not in conf
    else:
        assert conf["spark.jars"].split(",") == delta


def test_an_archive_of_classes_that_was_moved_is_not_used_and_said(tmp_path, caplog):
    made, moved = tmp_path / "made", tmp_path / "moved"
    made.mkdir()
    for name in (*(jar.file_name for jar in ALL_JARS), CLASS_ARCHIVE):
        (made / name).touch()
    (made / ARCHIVE_STAMP).write_text(f"17\n{made}\n")
    assert spark_jars(made).class_archive == str(made / CLASS_ARCHIVE)
    assert not caplog.messages
    made.rename(moved)
    assert spark_jars(moved).class_archive is None
    assert f"{moved / CLASS_ARCHIVE} was made elsewhere" in caplog.text


@pytest.fixture(scope="module")
def hello(tmp_path_factory):
    """A small program of Java's with an archive of its classes."""
    folder = tmp_path_factory.mktemp("java")
    (folder / "Hello.java").write_text("class Hello { public static void main(String[] a) { System.out.print(1); } }")
    subprocess.run([java_tool("javac"), "Hello.java"], cwd=folder, check=True)
    with zipfile.ZipFile(folder / "hello.jar", "w") as jar:
        jar.write(folder / "Hello.class", "Hello.class")
    command = [java_tool("java"), *make_archive("made.jsa").split(), "-cp", "hello.jar", "Hello"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("state", ["usable", "missing", "broken", "stale"])
def test_an_archive_that_does_not_fit_is_passed_over_without_a_word(hello, tmp_path, state):
    shutil.copytree(hello, tmp_path / "run", copy_function=shutil.copy2)
    archive = tmp_path / "run" / "made.jsa"
    if state != "usable":
        archive.unlink()
    if state == "broken":
        archive.write_text("no archive")
    if state == "stale":
        shutil.copy(hello / "made.jsa", archive)
        os.utime(tmp_path / "run" / "hello.jar", (0, 0))  # Java knows a jar by its time
    options = [*use_archive(str(archive)).split(), "-Xlog:class+load:file=loaded.txt"]
    command = [java_tool("java"), *options, "-cp", "hello.jar", "Hello"]
    done = subprocess.run(command, cwd=tmp_path / "run", capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1", "")
    loaded = (tmp_path / "run" / "loaded.txt").read_text()
    assert ("Hello source: shared objects file (top)" in loaded) is (state == "usable")
