"""Services that run Spark elsewhere, each with what its connection says, and what a request of one holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.submitting.databricks import Databricks
from include.submitting.emr_serverless import EmrServerless
from include.submitting.emr_steps import EmrSteps
from include.submitting.spark_operator import SparkOperator
from include.submitting.submitter import Submitter

ROLE = "arn:aws:iam::123456789012:role/tidewise"
SERVICES: Mapping[str, tuple[str, type[Any], dict[str, Any]]] = {
    "databricks": (
        "databricks",
        Databricks,
        {
            "new_cluster": {
                "spark_version": "18.0.x-scala2.13",
                "node_type_id": "m6i.xlarge",
                "num_workers": 2,
                "spark_conf": {"spark.team": "1"},
            }
        },
    ),
    "emr_serverless": (
        "aws",
        EmrServerless,
        {
            "application_id": "00f1abcdefghij01",
            "execution_role_arn": ROLE,
            "monitoring": {"s3MonitoringConfiguration": {"logUri": "s3://bucket/logs/"}},
            "spark_defaults": {"spark.emr-serverless.driver.disk": "40g"},
        },
    ),
    "emr_steps": ("aws", EmrSteps, {"job_flow_id": "j-ABCDEFGHIJKL1", "execution_role_arn": ROLE}),
    "spark_operator": (
        "kubernetes",
        SparkOperator,
        {
            "image": "registry/tidewise-spark:4.1.4",
            "namespace": "spark-jobs",
            "driver": {"cores": 2, "envFrom": [{"secretRef": {"name": "tidewise"}}]},
        },
    ),
}
"""Name -> type of the connection, class, key ``tidewise`` of the connection's extra."""


def open_service(name: str) -> Submitter:
    """Return a service without asking whether its provider is installed."""
    _, kind, values = SERVICES[name]
    result: Submitter = kind.model_validate(values)
    return result


def list_leaves(value: Any) -> Iterator[str]:
    """Yield every text of a request, a dictionary's and a variable's as NAME=VALUE; a command's lists are split."""
    if isinstance(value, Mapping):
        if set(value) == {"name", "value"}:
            yield f"{value['name']}={value['value']}"
            return
        for name, one in value.items():
            if isinstance(one, str):
                yield from one.split(",") if name in {"spark.jars", "jar"} else (f"{name}={one}",)
            else:
                yield from list_leaves(one)
    elif isinstance(value, list | tuple):
        is_jars = False
        for one in value:
            if isinstance(one, str):
                yield from one.split(",") if is_jars else (one,)
                is_jars = one == "--jars"
            else:
                yield from list_leaves(one)
