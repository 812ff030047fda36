"""A run of Databricks on a cluster of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from include.settings.section import Section
from include.spark.jars import DELTA_JARS, S3_JARS, Jar
from include.submitting.merging import merge
from include.submitting.submitter import FETCHING, ShippedSubmission


class Databricks(Section):
    """One task of a Python file: Databricks no longer takes the arguments of spark-submit.

    Attributes:
        new_cluster: as in its Jobs API. A cluster that runs already would have a configuration of its own.
    """

    provider: ClassVar[str] = "apache-airflow-providers-databricks"
    operator: ClassVar[str] = "airflow.providers.databricks.operators.databricks:DatabricksSubmitRunOperator"
    application: ClassVar[str] = FETCHING
    scheme: ClassVar[str] = "s3"
    brought: ClassVar[tuple[Jar, ...]] = (*DELTA_JARS, *S3_JARS)

    new_cluster: dict[str, Any]

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the operator."""
        cluster = dict(self.new_cluster)
        for key, ours in {"spark_conf": shipped.conf, "spark_env_vars": shipped.environment}.items():
            cluster[key] = merge(ours, cluster.get(key) or {}, f"new_cluster.{key}")
        task = {
            "task_key": shipped.name,
            "new_cluster": cluster,
            "libraries": [{"jar": jar} for jar in shipped.jars],
            "spark_python_task": {
                "python_file": shipped.application,
                "parameters": [shipped.package, shipped.settings, *shipped.arguments],
            },
        }
        return {
            "databricks_conn_id": connection_id,
            "json": {"run_name": shipped.name, "tasks": [task], "timeout_seconds": round(within_s)},
        }
