"""One configuration of S3 for all clients: settings, an Airflow connection and variables never say different things."""

from __future__ import annotations

import json

import pytest

from include import s3_client
from include.s3_client import ENDPOINT, REGION, S3ClientError, client_options, export_client, read_client
from include.settings import Settings, SettingsError, load_settings, s3_keys
from include.spark.conf import spark_conf
from include.spark.jars import LOG_STORE_CLASS, S3_JARS, SparkJars, log_store_jar, missing_s3_jars

MINIO = "http://minio:9000"


def export(environment: dict[str, str], endpoint=None, region=None, connection_id=None) -> dict[str, str]:
    export_client(endpoint, region, connection_id, environment)
    return environment


def test_what_the_settings_say_reaches_every_client_under_its_own_name():
    made = export({}, endpoint=MINIO)
    assert {made[name] for name in ENDPOINT} == {MINIO}
    assert {made[name] for name in REGION} == {"us-east-1"}
    assert made["AWS_ALLOW_HTTP"] == "true"
    assert client_options(made) == {"allow_http": True}


@pytest.mark.parametrize("name", ENDPOINT)
def test_any_usual_name_is_enough_and_reaches_the_others(name):
    made = export({name: "https://store:9000"})
    assert read_client(made).endpoint == "https://store:9000"
    assert "AWS_ALLOW_HTTP" not in made
    assert client_options(made) == {}


def test_without_an_endpoint_nothing_is_written():
    assert export({"AWS_ACCESS_KEY_ID": "a"}) == {"AWS_ACCESS_KEY_ID": "a"}


@pytest.mark.parametrize("name", [*ENDPOINT, *REGION])
def test_two_truths_are_refused_by_name(name):
    with pytest.raises(S3ClientError, match=f"storage.* but {name} = .*write it in one place"):
        export({name: "other"}, endpoint=MINIO, region="eu-west-1")


def test_a_trailing_slash_is_no_other_endpoint():
    export({"AWS_ENDPOINT_URL": f"{MINIO}/"}, endpoint=MINIO)


def test_what_a_user_changed_after_that_is_the_users():
    environment = export({}, endpoint=MINIO)
    environment["AWS_ENDPOINT_URL"] = "https://other"
    with pytest.raises(S3ClientError, match="AWS_ENDPOINT_URL = https://other"):
        export(environment, endpoint=MINIO)


def test_settings_that_are_loaded_again_replace_the_earlier_ones_and_no_variable_of_the_user():
    environment = export({"AWS_REGION": "eu-west-1"}, endpoint=MINIO)
    export(environment, endpoint="https://other")
    assert read_client(environment) == s3_client.S3Client("https://other", "eu-west-1")
    assert "AWS_ALLOW_HTTP" not in environment


@pytest.mark.parametrize("name", s3_client.UNSAFE)
def test_a_writer_that_would_not_ask_is_refused(name):
    for value in s3_client.UNSAFE[name]:
        with pytest.raises(S3ClientError, match=f"{name} = {value}.*commits would be lost; remove it"):
            export({name: value}, endpoint=MINIO)
    export({name: "etag"}, endpoint=MINIO)


CONNECTIONS = [
    json.dumps(
        {
            "conn_type": "aws",
            "login": "key",
            "password": "se/cret",
            "extra": {"endpoint_url": MINIO, "region_name": "eu-west-1"},
        }
    ),
    f"aws://key:se%2Fcret@/?region_name=eu-west-1&endpoint_url={MINIO}",
]


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_an_airflow_connection_says_all_of_it(connection):
    made = export({"AIRFLOW_CONN_LAKE": connection}, connection_id="lake")
    assert read_client(made) == s3_client.S3Client(MINIO, "eu-west-1")
    assert (made["AWS_ACCESS_KEY_ID"], made["AWS_SECRET_ACCESS_KEY"]) == ("key", "se/cret")


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_a_connection_beside_another_key_is_refused_without_showing_either(connection):
    with pytest.raises(S3ClientError, match=r"AIRFLOW_CONN_LAKE .password., but AWS_SECRET_ACCESS_KEY;") as refused:
        export({"AIRFLOW_CONN_LAKE": connection, "AWS_SECRET_ACCESS_KEY": "planted"}, connection_id="lake")
    assert "planted" not in str(refused.value)
    assert "cret" not in str(refused.value).replace("SECRET", "").replace("storage", "")


@pytest.mark.parametrize("text", ["", "{broken", "[1]"])
def test_a_connection_that_is_none_is_refused(text):
    if text == "[1]":
        with pytest.raises(S3ClientError):
            export({"AIRFLOW_CONN_LAKE": '{"extra": "[1"}'}, connection_id="lake")
        return
    with pytest.raises(S3ClientError, match="AIRFLOW_CONN_LAKE"):
        export({"AIRFLOW_CONN_LAKE": text}, connection_id="lake")


def test_a_path_on_s3_needs_the_jars(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARK_ENV_LOADED", raising=False)
    monkeypatch.setenv("TIDEWISE__SPARK__JARS_DIR", str(tmp_path))
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", "s3://bucket/lake")
    with pytest.raises(SettingsError, match=r"paths.lake: .* lacks hadoop-aws-3.4.2.jar.*make setup EXTRA=s3"):
        load_settings()
    for path in (*(tmp_path / jar.file_name for jar in S3_JARS), log_store_jar(tmp_path)):
        path.touch()
    assert missing_s3_jars(tmp_path) == []
    assert s3_keys(load_settings()) == ["paths.lake"]


def test_spark_is_configured_as_the_others_are(monkeypatch):
    jars = SparkJars(("delta.jar",), "local.jar", None, ("s3.jar",))
    local = Settings()
    assert not [key for key in spark_conf(local, jars, "local[1]") if "s3" in key]
    for name, value in export({}, endpoint=MINIO).items():
        monkeypatch.setenv(name, value)
    paths = local.paths.model_copy(update={"lake": "s3a://bucket/lake"})
    on_s3 = local.model_copy(update={"paths": paths})
    conf = spark_conf(on_s3, jars, "spark://host:7077")
    assert conf["spark.jars"] == "delta.jar,s3.jar"
    assert conf["spark.hadoop.fs.s3a.endpoint"] == MINIO
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert conf["spark.hadoop.fs.s3a.performance.flags"] == "create,mkdir"
    assert {conf[f"spark.delta.logStore.{scheme}.impl"] for scheme in ("s3", "s3a")} == {LOG_STORE_CLASS}
