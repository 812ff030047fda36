"""A step of a cluster of EMR that runs."""

from __future__ import annotations

from typing import Any, ClassVar

from include.settings.section import Text
from include.submitting.emr import Emr
from include.submitting.submitter import LAUNCHING, ShippedSubmission
from include.submitting.yarn_command import form_command


class EmrSteps(Emr):
    """One step: spark-submit on YARN, the driver on the cluster.

    Attributes:
        job_flow_id: of the cluster.
        execution_role_arn: of the step's runtime role, where the cluster has such roles.
    """

    operator: ClassVar[str] = "airflow.providers.amazon.aws.operators.emr:EmrAddStepsOperator"
    application: ClassVar[str] = LAUNCHING

    job_flow_id: Text
    execution_role_arn: Text | None = None

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the operator, which else does not wait."""
        step = {
            "Name": shipped.name,
            "ActionOnFailure": "CONTINUE",  # the cluster has other steps
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": form_command(shipped)},
        }
        return {
            **self.wait_options(connection_id, within_s),
            "job_flow_id": self.job_flow_id,
            "steps": [step],
            "execution_role_arn": self.execution_role_arn,
            "wait_for_completion": True,
        }
