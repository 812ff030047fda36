"""A job run of an application of EMR Serverless."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pydantic import Field

from include.settings.section import Section, Text
from include.spark.conf import JARS
from include.spark.jars import S3_JARS, Jar
from include.submitting.merging import merge
from include.submitting.submitter import FETCHING, ShippedSubmission

POLL_EVERY_S = 30


class EmrServerless(Section):
    """One job run.

    Attributes:
        application_id: of the application.
        execution_role_arn: of the role with which the driver reads and writes the buckets.
        aws_conn_id: of the connection with the login, where it is not this one.
        monitoring: ``monitoringConfiguration`` of its API: where the driver's log goes.
        spark_defaults: more of Spark's configuration, sizes of workers for one.
    """

    provider: ClassVar[str] = "apache-airflow-providers-amazon"
    operator: ClassVar[str] = "airflow.providers.amazon.aws.operators.emr:EmrServerlessStartJobOperator"
    application: ClassVar[str] = FETCHING
    scheme: ClassVar[str] = "s3"
    brought: ClassVar[tuple[Jar, ...]] = S3_JARS

    application_id: Text
    execution_role_arn: Text
    monitoring: dict[str, Any] | None = None
    aws_conn_id: Text | None = None
    spark_defaults: dict[str, str] = Field(default_factory=dict)

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the operator, which else gives up after 25 minutes."""
        variables = {f"spark.emr-serverless.driverEnv.{name}": value for name, value in shipped.environment.items()}
        jars = {JARS: ",".join(shipped.jars)} if shipped.jars else {}
        # As properties: a value may hold spaces, which the API's line of parameters would break.
        properties = merge({**shipped.conf, **variables, **jars}, self.spark_defaults, "spark_defaults")
        overrides: dict[str, Any] = {
            "applicationConfiguration": [{"classification": "spark-defaults", "properties": properties}]
        }
        if self.monitoring is not None:
            overrides["monitoringConfiguration"] = self.monitoring
        return {
            "aws_conn_id": self.aws_conn_id or connection_id,
            "name": shipped.name,
            "application_id": self.application_id,
            "execution_role_arn": self.execution_role_arn,
            "job_driver": {
                "sparkSubmit": {
                    "entryPoint": shipped.application,
                    "entryPointArguments": [shipped.package, shipped.settings, *shipped.arguments],
                }
            },
            "configuration_overrides": overrides,
            "deferrable": False,
            "waiter_delay": POLL_EVERY_S,
            "waiter_max_attempts": math.ceil(within_s / POLL_EVERY_S),
        }
