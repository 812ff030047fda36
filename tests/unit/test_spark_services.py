"""The recipes of docs/service/spark_services.py: files by content, nothing that only this machine has."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from include import place as places
from include.place import place
from include.settings import PROJECT, Settings
from include.spark.conf import JARS, spark_conf
from include.spark.jars import DELTA_JARS, LOG_STORE_CLASS, S3_JARS, SparkJars
from include.spark.shipped_settings import ship_settings
from include.spark.submission import Submission

_FILE = PROJECT / "docs" / "service" / "spark_services.py"
RECIPES = runpy.run_path(str(_FILE))
SERVICES = sorted(name for name in RECIPES if name.endswith("_options") and name != "wait_options")
SETTINGS = Settings.model_validate(
    {
        "paths": {"lake": "s3://bucket/lake", "raw": "s3://bucket/raw", "out": "s3://bucket/out"},
        "spark": {"executor_python": "/opt/python", "options": {JARS: "s3a://team/own.jar,local:///opt/team.jar"}},
    }
)
ASKED = ["plan", "--as-of", "2026-11-27T20:00:00Z"]
WITHIN_S = 7200.0


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store of obstore's own in the place of S3."""
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
    return Submission(
        application=str(PROJECT / "spark_jobs" / "launch.py"),
        package=str(package),
        master="yarn",
        conf=spark_conf(SETTINGS, SparkJars(paths[:2], str(folder / "local.jar"), None, paths[2:]), "yarn"),
        environment={"PYSPARK_PYTHON": "/here/python", "TIDEWISE_SETTINGS": "/here/x.toml"},
        settings=str(ship_settings(SETTINGS, folder)),
    )


def list_texts(value: Any) -> Iterator[str]:
    """Yield every text of a request; what joins several by commas is split."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from list_texts(f"{name}={each}" if isinstance(each, str) and name.startswith("spark.") else each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from list_texts(each)
    elif isinstance(value, str):
        yield from value.removeprefix("spark.jars=").split(",")


@pytest.mark.parametrize("service", SERVICES)
def test_a_request_has_every_part_once_and_names_nothing_that_only_this_machine_has(
    service: str, store: MemoryStore, submission: Submission
) -> None:
    options = RECIPES[service](submission, ASKED, SETTINGS, WITHIN_S)
    texts = list(list_texts(json.loads(json.dumps(options))))
    assert [text for text in texts if "/here/" in text or str(PROJECT) in text or "/tmp/" in text] == []
    written = {f"bucket/{each['path']}" for each in store.list().collect()}
    named = {text.partition("://")[2] for text in texts if "/out/submitted/" in text}
    assert named == written  # nothing is brought that nobody reads
    for part in (*ASKED, "s3a://team/own.jar", "local:///opt/team.jar"):
        assert texts.count(part) == 1, part
    for name, value in submission.conf.items():
        if name not in {JARS, "spark.pyspark.driver.python"}:
            assert all(part in texts for part in f"{name}={value}".split(",")), name
    assert f"spark.delta.logStore.s3a.impl={LOG_STORE_CLASS}" in texts
    assert [text for text in texts if text.endswith("/tidewise-log-store-1.jar")]
    assert not [text for text in texts if text.rpartition("/")[2] in {jar.file_name for jar in S3_JARS}]
    (settings,) = {text for text in texts if text.endswith(Path(submission.settings).name) and "//" in text}
    assert place(settings.replace("s3:", "s3a:")).read_bytes() == Path(submission.settings).read_bytes()


def test_every_service_has_a_recipe_and_a_file_is_brought_once(store: MemoryStore, submission: Submission) -> None:
    assert SERVICES == ["databricks_options", "emr_serverless_options", "emr_step_options", "spark_operator_options"]
    page = (PROJECT / "docs" / "spark_services.md").read_text()
    operators = {name.removesuffix("_options") for name in SERVICES}
    assert operators == {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} <= RECIPES.keys()
    first = RECIPES["ship"](submission.package, SETTINGS)
    before = store.list().collect()
    assert RECIPES["ship"](submission.package, SETTINGS) == first
    assert store.list().collect() == before


def test_the_spark_that_is_named_is_the_one_that_is_pinned() -> None:
    (version,) = re.findall(r'"sparkVersion": "([\d.]+)"', _FILE.read_text())
    assert f"pyspark=={version}\n" in (PROJECT / "requirements.in").read_text()
