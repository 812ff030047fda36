"""Where data and models live, and the Spark session that reads them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from include.settings.connection import SecretReference, check_http_url
from include.settings.secret_values import check_uri, is_secret
from include.settings.section import Section, Text, must_fit

_MASTERS = (
    r"local(\[(\*|[1-9]\d{0,3})(,[1-9]\d{0,3})?\])?",
    r"local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]",
    r"spark://[\w.-]+:\d{1,5}(,[\w.-]+:\d{1,5})*",
    r"k8s://\S+",
    r"yarn",
)
_BYTES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LEAST_MEMORY, _MOST_MEMORY = 512 * 2**20, 16 * 2**40  # Spark refuses to start with less
_WRITE_MLFLOW = (
    "write the address alone; the password comes from MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, from "
    "PGPASSWORD or ~/.pgpass, or from ?read_default_file=... of MySQL"
)
_WRITE_KEYS = "write the place alone; keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role"
_TRACKING = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "file", "databricks")


def _master(text: str) -> str:
    if not any(re.fullmatch(form, text) for form in _MASTERS):
        raise ValueError(
            "is no master of Spark; write local[*], local[2], spark://host:7077, yarn or k8s://https://host"
        )
    return check_uri(text.removeprefix("k8s://"), "give the login in spark.kubernetes.authenticate...File") and text


def _memory(text: str) -> str:
    result = re.fullmatch(r"([1-9]\d{0,8})([kmgtKMGT])", text)
    if result is None:
        raise ValueError("is no size of memory as Java writes it; write 4g or 2048m, say")
    if not _LEAST_MEMORY <= int(result[1]) * _BYTES[result[2].lower()] <= _MOST_MEMORY:
        raise ValueError("must be from 512m, which Spark needs to start, to 16t; write 4g, say")
    return text


KEYS = {
    "spark.master": "master",
    "spark.driver.memory": "driver_memory",
    "spark.sql.shuffle.partitions": "shuffle_partitions",
    "spark.executor.instances": "executors",
    "spark.executor.cores": "executor_cores",
    "spark.executor.memory": "executor_memory",
    "spark.pyspark.python": "executor_python",
}
"""Name of Spark's -> the key of ``[spark]`` that sets it."""
_FIXED = (
    r"spark\.sql\.(extensions|catalog\.spark_catalog|session\.timeZone|execution\.arrow\.pyspark\.enabled)",
    r"spark\.pyspark\.driver\.python",
    r"spark\.hadoop\.fs\.(file|s3|s3a)\.(impl|endpoint.*|path\.style\.access|connection\.ssl\.enabled)",
    r"spark\.delta\.logStore\..*",
)
"""Without these, tables are not read or written rightly."""


def _option(name: str) -> str:
    if name in KEYS:
        raise ValueError(f"is set by spark.{KEYS[name]}: write that")
    if any(re.fullmatch(form, name) for form in _FIXED):
        raise ValueError("is set by Tidewise, without which tables would be read or written wrongly: leave it out")
    if not re.fullmatch(r"spark\.[A-Za-z0-9_.:-]{1,200}", name):
        raise ValueError('is no name of Spark\'s configuration; write "spark.executor.memoryOverhead", say')
    return name


def _options(given: dict[str, str]) -> dict[str, str]:
    secrets = sorted(name for name, value in given.items() if is_secret(name, value))
    if secrets:
        raise ValueError(
            f"{', '.join(secrets)} would be on Spark's command line for all to see; write it into the Spark "
            "installation's spark-defaults.conf, or name a file or a secret of the service"
        )
    return given


def _tracking_uri(text: str) -> str:
    scheme, result, rest = text.partition(":")
    if result and scheme.split("+")[0] not in _TRACKING:
        raise ValueError(f"MLflow has no store of the scheme {scheme!r}; write sqlite:///out/mlflow.db, say")
    if scheme == "sqlite" and not re.fullmatch(r"///[^?]+(\?.*)?", rest):
        raise ValueError("names no file; write sqlite:///out/mlflow.db, say")
    if scheme in {"http", "https"} and not re.match(r"//[^/\s]+", rest):
        raise ValueError("names no host; write http://mlflow:5000, say")
    return check_uri(text, _WRITE_MLFLOW)


_registered_name = must_fit(
    r"[^/:]*", "MLflow allows neither / nor : in the name of a model; write tidewise-fleet, say"
)


def _scheme(text: str) -> str:
    """Return the scheme of a URI, in small letters; of a local folder none, also with a colon in its name."""
    scheme, colon, _ = text.partition(":")
    return scheme.lower() if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme) else ""


def _folder_or_bucket(text: str) -> str:
    scheme = _scheme(text)
    if scheme not in {"", "file", "s3", "s3a"}:
        raise ValueError(
            f"is a URI of the scheme {scheme!r}, but only local folders and S3 are supported; write "
            "s3a://bucket/folder, or the folder where that storage is mounted, /mnt/lake, say"
        )
    if scheme.startswith("s3") and not re.match(r"//[^/\s]+", text.partition(":")[2]):
        raise ValueError("names no bucket; write s3a://bucket/folder, say")
    return check_uri(text, _WRITE_KEYS)


def _place(text: str) -> str:
    """Return a root of files; s3:// is the same place as s3a://, the name by which Hadoop knows it."""
    text = _folder_or_bucket(text)
    return f"s3a:{text.partition(':')[2]}" if _scheme(text).startswith("s3") else text


def _artifacts(text: str) -> str:
    """Return the root of MLflow's files; s3a:// is the same place, under the name by which MLflow knows it."""
    if _scheme(text) == "mlflow-artifacts":
        return text  # the server of the tracking URI keeps them
    text = _folder_or_bucket(text)
    return f"s3:{text.partition(':')[2]}" if _scheme(text).startswith("s3") else text


def _endpoint(text: str) -> str:
    return check_http_url(text, write="write http://minio:9000, say", instead=_WRITE_KEYS).rstrip("/")


class Paths(Section):
    """Where data lives."""

    lake: Annotated[Text, AfterValidator(_place)] = Field(
        "out/lake", description="folder of the Delta tables, or s3a://bucket/folder"
    )
    raw: Annotated[Text, AfterValidator(_place)] = Field(
        "out/raw", description="folder of the raw files, or s3a://bucket/folder"
    )
    out: Annotated[Text, AfterValidator(_place)] = Field(
        "out",
        description="folder of report, plans.json and other files, or s3a://bucket/folder",
    )
    group: Text | None = Field(None, description="group that may read `out` and shipped settings")


class Storage(Section):
    """Where S3 is, for every path on it and every client: Spark, delta-rs, MLflow, holds and answers.

    What is left open comes from the usual variables (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, ...).
    """

    endpoint: Annotated[str, AfterValidator(_endpoint)] | None = Field(
        None, description="address of a store other than AWS's: http://minio:9000"
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,50}$")] | None = Field(
        None, description="region of the buckets; us-east-1 with an endpoint"
    )
    connection_id: Annotated[str, Field(pattern=r"^\w{1,200}$")] | None = Field(
        None,
        description="Airflow connection of type aws, as a variable `AIRFLOW_CONN_<ID>`",
    )


class Backup(Section):
    """What ``tidewise backup`` and ``tidewise restore`` need beside the places."""

    key: SecretReference | None = Field(
        None,
        description='`"file:PATH"` or `"env:NAME"` of the key that signs manifests: only a backup signed by it is '
        "restored",
    )


class Spark(Section):
    """How a Spark session is started, where the master does not say."""

    master: Annotated[Text, AfterValidator(_master)] = Field(
        "local[*]", description="master URL: local[*], spark://host:7077, yarn, k8s://..."
    )
    driver_memory: Annotated[Text, AfterValidator(_memory)] = Field("4g", description="heap of the driver: 4g, 2048m")
    executors: int | None = Field(None, ge=1, le=10_000, description="how many; unset: what the cluster gives")
    executor_cores: int | None = Field(None, ge=1, le=256, description="cores of an executor; unset: Spark's default")
    executor_memory: Annotated[Text, AfterValidator(_memory)] | None = Field(
        None, description="heap of an executor: 4g, 2048m; unset: Spark's default"
    )
    executor_python: Text | None = Field(None, description="Python on the executors; unset: the driver's path")
    options: Annotated[dict[Annotated[str, AfterValidator(_option)], str], AfterValidator(_options)] = Field(
        default_factory=dict, description='more of Spark\'s configuration: {"spark.executor.memoryOverhead" = "1g"}'
    )
    shuffle_partitions: int = Field(4, ge=1, le=100_000, description="partitions after a shuffle")
    jars_dir: Text = Field(".cache/jars", description="folder of Delta's jars")
    package_zip: Text = Field("out/tidewise.zip", description="file for the executors' code")
    connection_id: Annotated[str, Field(pattern=r"^[\w#!()\-.:/\\]{1,200}$")] = Field(
        "spark_default", description="Airflow connection of Spark's master or service"
    )


class Mlflow(Section):
    """Where models are logged."""

    tracking_uri: Annotated[Text, AfterValidator(_tracking_uri)] = Field(
        "sqlite:///out/mlflow.db", description="MLflow's database or server"
    )
    artifact_root: Annotated[Text, AfterValidator(_artifacts)] = Field(
        "out/mlartifacts", description="folder of logged files, or s3://bucket/folder"
    )
    experiment: Text = Field("tidewise", description="experiment of the trainings")
    registered_model: Annotated[Text, _registered_name] = Field(
        "tidewise-fleet", description="name of the registered model"
    )
