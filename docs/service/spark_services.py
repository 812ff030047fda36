"""Operators for stages on EMR Serverless, a step of an EMR cluster, Databricks and the Spark operator.

Recipes: none of these services was asked to run a stage. Copy what is yours into a package beside Airflow, name the
function by the connection's type (docs/spark_services.md), and replace what is marked ``yours``. A function gets

    task_id: of the task that runs the stage.
    submission: files of this machine, and Spark's configuration.
    asked: arguments of the stages.
    settings: of Tidewise.
    within_s: seconds that the stages may take.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from include.place import place
from include.settings import Settings
from include.spark.jars import DELTA_JARS, S3_JARS, Jar
from include.spark.submission import Submission


def ship(file: str, settings: Settings, scheme: str = "s3") -> str:
    """Write a file below ``paths.out``, under a name by its content, unless it is there; returns its URI."""
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    target = place(settings.paths.out) / "submitted" / digest / Path(file).name
    if not target.is_file():
        target.write_bytes(Path(file).read_bytes())
    return f"{scheme}:{str(target).partition(':')[2]}"


def ship_all(
    submission: Submission, settings: Settings, script: str, brought: Iterable[Jar], scheme: str = "s3"
) -> tuple[str, str, str, list[str], dict[str, str]]:
    """Return the URIs of script, code, settings and jars, and the rest of Spark's configuration.

    ``brought``: jars that the service has itself, in its own build.
    """
    conf = {name: value for name, value in submission.conf.items() if name != "spark.pyspark.driver.python"}
    jars = [jar for jar in conf.pop("spark.jars", "").split(",") if jar]
    names = {jar.file_name for jar in brought}
    jars = [
        jar if ":" in jar.partition("/")[0] else ship(jar, settings, scheme)
        for jar in jars
        if jar.rpartition("/")[2] not in names
    ]
    files = (str(Path(submission.application).with_name(script)), submission.package, submission.settings)
    shipped, code, file = (ship(each, settings, scheme) for each in files)
    return shipped, code, file, jars, conf


def wait_options(within_s: float) -> dict[str, Any]:
    """Return the options by which an operator of Amazon's provider waits in its own task."""
    return {"deferrable": False, "waiter_delay": 30, "waiter_max_attempts": math.ceil(within_s / 30)}


def emr_serverless_options(
    submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> dict[str, Any]:
    """Return the options of EmrServerlessStartJobOperator."""
    script, code, file, jars, conf = ship_all(submission, settings, "fetch_and_launch.py", S3_JARS)
    conf |= {"spark.emr-serverless.driverEnv.OMP_NUM_THREADS": "1", "spark.jars": ",".join(jars)}
    return {
        "aws_conn_id": settings.spark.connection_id,
        **wait_options(within_s),
        "name": f"tidewise-{asked[0]}",
        "application_id": "00f1abc",  # yours
        "execution_role_arn": "arn:aws:iam::1:role/tidewise",  # yours
        "job_driver": {"sparkSubmit": {"entryPoint": script, "entryPointArguments": [code, file, *asked]}},
        "configuration_overrides": {
            "applicationConfiguration": [{"classification": "spark-defaults", "properties": conf}],
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": "s3://bucket/logs/"}},  # yours
        },
    }


def emr_serverless(
    task_id: str, submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> Any:
    """Return the operator of a stage on EMR Serverless."""
    from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator

    options = emr_serverless_options(submission, asked, settings, within_s)
    return EmrServerlessStartJobOperator(task_id=task_id, **options)


def emr_step_options(
    submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> dict[str, Any]:
    """Return the options of EmrAddStepsOperator."""
    script, code, file, jars, conf = ship_all(submission, settings, "launch.py", S3_JARS)
    conf |= {"spark.yarn.appMasterEnv.OMP_NUM_THREADS": "1"}
    command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster"]
    command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    command += ["--jars", ",".join(jars), "--py-files", code, "--files", file, script]
    command += [*asked, "--settings", PurePosixPath(file).name]
    step = {
        "Name": f"tidewise-{asked[0]}",
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
    }
    return {
        "aws_conn_id": settings.spark.connection_id,
        **wait_options(within_s),
        "job_flow_id": "j-ABC",  # yours
        "steps": [step],
        "wait_for_completion": True,
    }


def emr_step(task_id: str, submission: Submission, asked: Sequence[str], settings: Settings, within_s: float) -> Any:
    """Return the operator of a stage as a step of an EMR cluster."""
    from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator

    return EmrAddStepsOperator(task_id=task_id, **emr_step_options(submission, asked, settings, within_s))


def databricks_options(
    submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> dict[str, Any]:
    """Return the options of DatabricksSubmitRunOperator."""
    script, code, file, jars, conf = ship_all(submission, settings, "fetch_and_launch.py", (*DELTA_JARS, *S3_JARS))
    task = {
        "task_key": f"tidewise-{asked[0]}",
        "new_cluster": {  # yours
            "spark_version": "18.0.x-scala2.13",
            "node_type_id": "m6i.xlarge",
            "num_workers": 2,
            "spark_conf": conf,
            "spark_env_vars": {"OMP_NUM_THREADS": "1"},
        },
        "libraries": [{"jar": jar} for jar in jars],
        "spark_python_task": {"python_file": script, "parameters": [code, file, *asked]},
    }
    return {
        "databricks_conn_id": settings.spark.connection_id,
        "json": {"run_name": task["task_key"], "tasks": [task], "timeout_seconds": round(within_s)},
    }


def databricks(task_id: str, submission: Submission, asked: Sequence[str], settings: Settings, within_s: float) -> Any:
    """Return the operator of a stage on Databricks."""
    from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator

    return DatabricksSubmitRunOperator(task_id=task_id, **databricks_options(submission, asked, settings, within_s))


def spark_operator_options(
    submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> dict[str, Any]:
    """Return the options of SparkKubernetesOperator."""
    script, code, file, jars, conf = ship_all(submission, settings, "launch.py", S3_JARS, "s3a")
    spec = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": "4.1.4",
        "image": "registry/spark:4.1.4",  # yours
        "mainApplicationFile": script,
        "arguments": [*asked, "--settings", PurePosixPath(file).name],
        "sparkConf": conf,
        "deps": {"pyFiles": [code], "files": [file], "jars": jars},
        "restartPolicy": {"type": "Never"},  # Airflow tries again
        "timeToLiveSeconds": round(within_s),  # of one that has ended
        "driver": {
            "serviceAccount": "spark",
            "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
            "envFrom": [{"secretRef": {"name": "tidewise"}}],
        },
    }
    application = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": spec}
    return {
        "kubernetes_conn_id": settings.spark.connection_id,
        "name": f"tidewise-{asked[0]}",
        "namespace": "spark",
        "template_spec": {"spark": application},
        "get_logs": True,
        "deferrable": False,
    }


def spark_operator(
    task_id: str, submission: Submission, asked: Sequence[str], settings: Settings, within_s: float
) -> Any:
    """Return the operator of a stage under the Spark operator for Kubernetes."""
    from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

    return SparkKubernetesOperator(task_id=task_id, **spark_operator_options(submission, asked, settings, within_s))
