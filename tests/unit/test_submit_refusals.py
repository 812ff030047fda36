"""What cannot be submitted is refused by name, before anything leaves this machine."""

from __future__ import annotations

from importlib.metadata import distributions

import pytest
from services import SERVICES

from include.settings import Settings
from include.submitting.connection_types import KEY, SPARK_SUBMIT, find_submitter
from include.submitting.places import check_places
from include.submitting.refusal import SubmitError
from include.submitting.requests import find_refusal
from include.submitting.secrets import check_secrets

REMOTE = {
    "paths": {"lake": "s3://b/lake", "raw": "s3://b/raw", "out": "s3://b/out"},
    "mlflow": {"tracking_uri": "http://mlflow:5000", "artifact_root": "s3://b/artifacts"},
}


@pytest.mark.parametrize("connection_type", SPARK_SUBMIT)
def test_masters_of_spark_go_by_spark_submit(connection_type: str) -> None:
    assert find_submitter(connection_type, {}) is None


@pytest.mark.parametrize("connection_type", ["http", "", None, "Spark", "livy"])
def test_another_type_is_refused_with_those_that_are_known(connection_type: str | None) -> None:
    with pytest.raises(SubmitError, match=rf"of type {connection_type!r}, but of spark, databricks, aws, emr, kuber"):
        find_submitter(connection_type, {KEY: {}})


@pytest.mark.parametrize("service", SERVICES)
def test_a_provider_that_is_not_installed_is_named(service: str) -> None:
    connection_type, kind, values = SERVICES[service]
    if kind.provider in {one.name for one in distributions()}:
        pytest.skip(f"{kind.provider} is installed here")
    with pytest.raises(SubmitError, match=rf"of type {connection_type} needs .*: pip install {kind.provider}$"):
        find_submitter(connection_type, {KEY: values})


@pytest.mark.parametrize("connection_type", ["databricks", "aws", "emr", "kubernetes"])
@pytest.mark.parametrize("extra", [{}, {KEY: None}, {KEY: "text"}, {"token": "t0p"}])
def test_a_connection_without_the_key_is_refused(connection_type: str, extra: dict[str, object]) -> None:
    with pytest.raises(SubmitError, match=rf'{connection_type} connection has no "{KEY}"') as refused:
        find_submitter(connection_type, extra)
    assert "t0p" not in str(refused.value)


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_that_is_misspelt_or_missing_is_named_and_its_value_is_not(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection_type, kind, values = SERVICES[service]
    for one in (kind, *(other for name, other, _ in SERVICES.values() if name == connection_type)):
        monkeypatch.setattr(one, "provider", "pytest")  # is installed; nothing of a provider is imported to read a key
    submitter = find_submitter(connection_type, {KEY: values})
    assert isinstance(submitter, kind)
    with pytest.raises(SubmitError, match=r"misspelt: Extra inputs are not permitted") as refused:
        find_submitter(connection_type, {KEY: {**values, "misspelt": "planted"}})
    assert "planted" not in str(refused.value)
    required = next(name for name, one in kind.model_fields.items() if one.is_required())
    with pytest.raises(SubmitError, match=r": Field required"):
        find_submitter(connection_type, {KEY: {name: one for name, one in values.items() if name != required}})


def test_every_place_of_this_machine_is_named() -> None:
    check_places(Settings.model_validate(REMOTE))
    with pytest.raises(SubmitError) as refused:
        check_places(Settings())
    named = ("paths.lake", "paths.raw", "paths.out", "mlflow.artifact_root", "mlflow.tracking_uri")
    assert [one for one in named if f"{one} = " not in str(refused.value)] == []


@pytest.mark.parametrize("name", ["lake", "raw", "out"])
def test_one_folder_is_enough_to_be_refused(name: str) -> None:
    settings = Settings.model_validate({**REMOTE, "paths": {**REMOTE["paths"], name: "/mnt/here"}})
    with pytest.raises(SubmitError, match=rf"does not see paths.{name} = /mnt/here: write"):
        check_places(settings)


@pytest.mark.parametrize(
    "uri", ["sqlite:///out/mlflow.db", "sqlite+pysqlite:///out/mlflow.db", "file:/x", "out/mlruns"]
)
def test_a_store_of_mlflow_on_this_machine_is_refused(uri: str) -> None:
    settings = Settings.model_validate({**REMOTE, "mlflow": {**REMOTE["mlflow"], "tracking_uri": uri}})
    with pytest.raises(SubmitError, match=r"does not see mlflow.tracking_uri"):
        check_places(settings)


def test_artifacts_of_the_server_are_no_place_of_this_machine() -> None:
    served = {"tracking_uri": "http://mlflow:5000", "artifact_root": "mlflow-artifacts:/tidewise"}
    check_places(Settings.model_validate({**REMOTE, "mlflow": served}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "planted"),
        ("spark.hadoop.fs.s3a.access.key", "planted"),
        ("spark.hadoop.fs.s3a.session.token", "planted"),
        ("spark.ssl.keyPassword", "planted"),
        ("spark.hadoop.fs.azure.account.key.x", "planted"),
        ("AWS_SECRET_ACCESS_KEY", "planted"),
        ("spark.team.jdbc", "postgresql://user:planted@host/db"),
        ("spark.driver.extraJavaOptions", "-Xmx1g -Djavax.net.ssl.trustStorePassword=planted"),
    ],
)
def test_a_secret_is_refused_by_its_name_alone(name: str, value: str) -> None:
    with pytest.raises(SubmitError, match=name) as refused:
        check_secrets({"spark.a": "b", name: value}, "spark.options")
    assert "planted" not in str(refused.value)


def test_names_of_secrets_are_no_secrets() -> None:
    values = {
        "spark.hadoop.fs.s3a.secret.key": "{{secrets/scope/key}}",
        "spark.team.password": "EMR.secret@arn:aws:secretsmanager:eu-west-1:1:secret:x",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "x.y.Provider",
        "spark.team.url": "s3a://bucket/folder",
        "spark.driver.extraJavaOptions": "-Dteam=1",
    }
    check_secrets(values, "spark.options")


def test_what_the_doctor_asks_has_an_answer_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_refusal("spark", {}, Settings()) is None
    monkeypatch.setattr(SERVICES["databricks"][1], "provider", "pytest")
    extra = {KEY: SERVICES["databricks"][2]}
    assert find_refusal("databricks", extra, Settings.model_validate(REMOTE)) is None
    assert "does not see paths.lake" in str(find_refusal("databricks", extra, Settings()))
    monkeypatch.setattr(SERVICES["databricks"][1], "provider", "apache-airflow-providers-none")
    assert "pip install apache-airflow-providers-none" in str(find_refusal("databricks", extra, Settings()))
