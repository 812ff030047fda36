"""Files of a submission in the object store: by their content, once; nothing else of this machine is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from services import SERVICES, list_leaves, open_service

from include import place as places
from include.place import place
from include.settings import PROJECT, Settings
from include.spark.conf import JARS, spark_conf
from include.spark.jars import DELTA_JARS, LOG_STORE_CLASS, S3_JARS, SparkJars
from include.spark.shipped_settings import ship_settings
from include.spark.submission import Submission
from include.submitting.refusal import SubmitError
from include.submitting.shipping import ship_file, ship_submission

ROOT = "s3a://bucket/out"
SETTINGS = Settings.model_validate(
    {
        "paths": {"lake": "s3://bucket/lake", "raw": "s3://bucket/raw", "out": "s3://bucket/out"},
        "spark": {"executor_python": "/opt/python", "options": {JARS: "s3a://team/own.jar,local:///opt/team.jar"}},
    }
)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store of obstore's own in the place of S3; tests/long/test_paths_on_s3.py has S3's protocol."""
    result = MemoryStore()
    monkeypatch.setattr(places, "_open_bucket", lambda *_: result)
    return result


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Submission:
    folder = tmp_path_factory.mktemp("submission")
    jars = [folder / jar.file_name for jar in (*DELTA_JARS, *S3_JARS)]
    jars.append(folder / "tidewise-log-store-1.jar")
    for jar in jars:
        jar.write_bytes(jar.name.encode())
    paths = tuple(str(jar) for jar in jars)
    package = folder / "tidewise-0123.zip"
    package.write_bytes(b"code")
    spark = SparkJars(paths[:2], str(folder / "local.jar"), None, paths[2:])
    return Submission(
        application=str(PROJECT / "spark_jobs" / "launch.py"),
        package=str(package),
        master="yarn",
        conf=spark_conf(SETTINGS, spark, "yarn"),
        environment={"PYSPARK_PYTHON": "/here/python", "OMP_NUM_THREADS": "1", "TIDEWISE_SETTINGS": "/here/x.toml"},
        settings=str(ship_settings(SETTINGS, folder)),
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_request_names_nothing_that_only_this_machine_has(
    service: str, store: MemoryStore, submission: Submission
) -> None:
    submitter = open_service(service)
    asked = ["plan", "--as-of", "2026-11-27T20:00:00Z"]
    shipped = ship_submission(submission, submitter, SETTINGS, "tidewise-plan", asked)
    leaves = list(list_leaves(submitter.form_options(shipped, "spark_default", 60.0)))
    assert [one for one in leaves if "/here/" in one or str(PROJECT) in one or "/tmp/" in one] == []
    written = {f"{submitter.scheme}://bucket/{one['path']}" for one in store.list().collect()}
    uris = {shipped.application, shipped.package, shipped.settings, *shipped.jars}
    assert uris - written == {"s3a://team/own.jar", "local:///opt/team.jar"}
    assert written <= uris  # nothing was brought that nobody reads
    # The log store by which commits are created once is never left out.
    assert shipped.conf["spark.delta.logStore.s3a.impl"] == LOG_STORE_CLASS
    assert [one for one in shipped.jars if one.endswith("/tidewise-log-store-1.jar")]
    assert not {jar.file_name for jar in submitter.brought} & {one.rpartition("/")[2] for one in shipped.jars}
    assert shipped.arguments == tuple(asked)
    assert set(shipped.conf) == set(submission.conf) - {JARS, "spark.pyspark.driver.python"}


def test_the_driver_gets_the_bytes_that_are_here(store: MemoryStore, submission: Submission) -> None:
    shipped = ship_submission(submission, open_service("spark_operator"), SETTINGS, "x", [])
    for uri, file in {shipped.package: submission.package, shipped.settings: submission.settings}.items():
        assert place(uri).read_bytes() == Path(file).read_bytes()
        assert place(uri).name == Path(file).name  # by which the driver knows the settings
    assert json.loads(place(shipped.settings).read_bytes())["paths"]["lake"] == "s3a://bucket/lake"


def test_a_file_is_brought_once_and_another_content_gets_another_name(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "own.jar"
    file.write_bytes(b"one")
    first = ship_file(file, ROOT)
    before = store.head(first._key)
    assert ship_file(file, ROOT) == first
    assert store.head(first._key) == before
    file.write_bytes(b"two")
    second = ship_file(file, ROOT)
    assert second != first
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")


def test_a_large_file_arrives_whole(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "large.jar"
    file.write_bytes(bytes(range(256)) * 4096 * 11)  # 11 MiB: more than one part
    assert ship_file(file, ROOT).read_bytes() == file.read_bytes()


def test_what_cannot_be_brought_is_named(store: MemoryStore, submission: Submission, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"gone.jar cannot be brought to s3a://bucket/out: .*No such file"):
        ship_file(tmp_path / "gone.jar", ROOT)
    file = tmp_path / "own.jar"
    file.write_bytes(b"one")
    with pytest.raises(SubmitError, match=r"paths.out = /data/out is a folder of this machine"):
        ship_file(file, "/data/out")
    secret = replace(submission, conf={**submission.conf, "spark.hadoop.fs.s3a.secret.key": "planted"})
    with pytest.raises(SubmitError, match=r"spark.options names spark.hadoop.fs.s3a.secret.key") as refused:
        ship_submission(secret, open_service("emr_steps"), SETTINGS, "x", [])
    assert "planted" not in str(refused.value)
