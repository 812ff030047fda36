"""The requests of stages, given to the real classes of Airflow's providers and to the services' own descriptions.

The providers are no part of the project's packages. In an environment that has them too, with the versions of
requirements.txt: `pip install apache-airflow-providers-databricks apache-airflow-providers-amazon
apache-airflow-providers-cncf-kubernetes`, then `python -m pytest -m long` of this file. No service is asked anything.
"""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import distributions
from typing import Any

import pytest
from services import SERVICES, list_leaves, open_service

from include.submitting.connection_types import KEY, find_submitter
from include.submitting.requests import Request
from include.submitting.submitter import ShippedSubmission

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="tidewise-airflow-"))
INSTALLED = {one.name for one in distributions()}
WITHIN_S = 7200.0
ROOT = "s3://bucket/out/submitted"
SHIPPED = ShippedSubmission(
    name="tidewise-forecast-plan",
    application=f"{ROOT}/1/launch.py",
    package=f"{ROOT}/2/tidewise-0123.zip",
    settings=f"{ROOT}/3/tidewise-settings-0123.json",
    jars=(f"{ROOT}/4/tidewise-log-store-1.jar", f"{ROOT}/5/own.jar"),
    conf={"spark.sql.session.timeZone": "UTC", "spark.driver.extraJavaOptions": "-Da=1 -XX:+UseParallelGC"},
    environment={"OMP_NUM_THREADS": "1"},
    arguments=("forecast", "plan", "--as-of", "2026-11-27T20:00:00Z"),
)
pytestmark = pytest.mark.long


def make_operator(service: str) -> Any:
    """Return the provider's operator of a service, with the request of a submission."""
    connection_type, kind, values = SERVICES[service]
    if kind.provider not in INSTALLED:
        pytest.skip(f"{kind.provider} is not installed in this environment")
    submitter = find_submitter(connection_type, {KEY: values})
    assert isinstance(submitter, kind)
    return Request(submitter.operator, submitter.form_options(SHIPPED, "service", WITHIN_S)).make_operator("plan")


def validate(service_name: str, operation: str, request: dict[str, Any]) -> None:
    """Check a request by the description of the service that AWS's client ships."""
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    shape = get_session().get_service_model(service_name).operation_model(operation).input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()


def test_databricks_takes_the_run() -> None:
    operator = make_operator("databricks")
    request = operator._prepare_submit_json({})  # what it posts
    assert set(list_leaves(operator.json)) <= set(list_leaves(request))  # beside numbers, which are texts there
    (task,) = request["tasks"]
    assert task["spark_python_task"]["parameters"][:2] == [SHIPPED.package, SHIPPED.settings]
    assert (operator.databricks_conn_id, operator.wait_for_termination) == ("service", True)
    assert operator.deferrable is False


def test_emr_serverless_takes_the_job_run() -> None:
    operator = make_operator("emr_serverless")
    validate(
        "emr-serverless",
        "StartJobRun",
        {
            "clientToken": operator.client_request_token,
            "applicationId": operator.application_id,
            "executionRoleArn": operator.execution_role_arn,
            "jobDriver": operator.job_driver,
            "name": operator.name,
            "configurationOverrides": operator.configuration_overrides,
        },
    )
    assert (operator.aws_conn_id, operator.wait_for_completion, operator.deferrable) == ("service", True, False)
    assert operator.waiter_delay * operator.waiter_max_attempts >= WITHIN_S


def test_emr_takes_the_step() -> None:
    operator = make_operator("emr_steps")
    request = {
        "JobFlowId": operator.job_flow_id,
        "Steps": operator.steps,
        "ExecutionRoleArn": operator.execution_role_arn,
    }
    validate("emr", "AddJobFlowSteps", request)
    assert (operator.aws_conn_id, operator.wait_for_completion, operator.deferrable) == ("service", True, False)
    assert operator.waiter_delay * operator.waiter_max_attempts >= WITHIN_S


def test_the_spark_operator_takes_the_application() -> None:
    from airflow.providers.cncf.kubernetes.operators.custom_object_launcher import CustomObjectLauncher

    operator = make_operator("spark_operator")
    name = operator.create_job_name()
    body = CustomObjectLauncher(name, operator.namespace, None, None, operator.template_body).body
    assert (body["apiVersion"], body["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    assert body["metadata"] == {"name": name, "namespace": "spark-jobs"}
    spec = body["spec"]
    assert spec["arguments"] == [*SHIPPED.arguments, "--settings", "tidewise-settings-0123.json"]
    assert spec["deps"] == {"pyFiles": [SHIPPED.package], "files": [SHIPPED.settings], "jars": list(SHIPPED.jars)}
    assert spec["driver"]["envFrom"] == [{"secretRef": {"name": "tidewise"}}]
    assert (operator.kubernetes_conn_id, operator.deferrable) == ("service", False)


@pytest.mark.parametrize("service", SERVICES)
def test_an_option_that_the_operator_does_not_know_is_refused_by_it(service: str) -> None:
    """Without this the other tests would show nothing."""
    operator = make_operator(service)
    submitter = open_service(service)
    options = submitter.form_options(SHIPPED, "service", WITHIN_S) | {"misspelt": 1}
    with pytest.raises(Exception, match="misspelt"):
        Request(submitter.operator, options).make_operator(operator.task_id)
