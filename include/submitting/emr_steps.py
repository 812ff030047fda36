"""A step of a cluster of EMR that runs."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from include.settings.section import Section, Text
from include.spark.jars import S3_JARS, Jar
from include.submitting.emr_serverless import POLL_EVERY_S
from include.submitting.submitter import LAUNCHING, ShippedSubmission
from include.submitting.yarn_command import form_command


class EmrSteps(Section):
    """One step: spark-submit on YARN, the driver on the cluster.

    Attributes:
        job_flow_id: of the cluster.
        execution_role_arn: of the step's runtime role, where the cluster has such roles.
        aws_conn_id: of the connection with the login, where it is not this one.
    """

    provider: ClassVar[str] = "apache-airflow-providers-amazon"
    operator: ClassVar[str] = "airflow.providers.amazon.aws.operators.emr:EmrAddStepsOperator"
    application: ClassVar[str] = LAUNCHING
    scheme: ClassVar[str] = "s3"
    brought: ClassVar[tuple[Jar, ...]] = S3_JARS

    job_flow_id: Text
    execution_role_arn: Text | None = None
    aws_conn_id: Text | None = None

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the operator, which else does not wait."""
        step = {
            "Name": shipped.name,
            "ActionOnFailure": "CONTINUE",  # the cluster has other steps
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": form_command(shipped)},
        }
        return {
            "aws_conn_id": self.aws_conn_id or connection_id,
            "job_flow_id": self.job_flow_id,
            "steps": [step],
            "execution_role_arn": self.execution_role_arn,
            "deferrable": False,
            "wait_for_completion": True,
            "waiter_delay": POLL_EVERY_S,
            "waiter_max_attempts": math.ceil(within_s / POLL_EVERY_S),
        }
