"""A job run of an application of EMR Serverless."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from include.settings.section import Text
from include.spark.conf import JARS
from include.submitting.emr import Emr
from include.submitting.merging import merge
from include.submitting.submitter import FETCHING, ShippedSubmission


class EmrServerless(Emr):
    """One job run.

    Attributes:
        application_id: of the application.
        execution_role_arn: of the role with which the driver reads and writes the buckets.
        monitoring: ``monitoringConfiguration`` of its API: where the driver's log goes.
        spark_defaults: more of Spark's configuration, sizes of workers for one.
    """

    operator: ClassVar[str] = "airflow.providers.amazon.aws.operators.emr:EmrServerlessStartJobOperator"
    application: ClassVar[str] = FETCHING

    application_id: Text
    execution_role_arn: Text
    monitoring: dict[str, Any] | None = None
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
            **self.wait_options(connection_id, within_s),
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
        }
