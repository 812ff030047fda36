"""A SparkApplication of the Spark operator for Kubernetes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from include.settings.section import Section, Text
from include.spark.jars import S3_JARS, Jar
from include.submitting.refusal import SubmitError
from include.submitting.submitter import LAUNCHING, ShippedSubmission
from include.submitting.yarn_command import name_settings

SPARK_VERSION = "4.1.4"
"""Of PySpark in ``requirements.in``."""
_OURS = ("env", "serviceAccount")


class SparkOperator(Section):
    """One application.

    Attributes:
        image: with Spark, Python, the packages of requirements.txt, and Hadoop's client of S3 on the class path.
        namespace: of the application.
        service_account: of the driver, which starts the executors.
        driver, executor: more of these parts of its specification: ``envFrom`` of a Secret, ``cores``, volumes.
        image_pull_secrets: for the image's registry.
    """

    provider: ClassVar[str] = "apache-airflow-providers-cncf-kubernetes"
    operator: ClassVar[str] = "airflow.providers.cncf.kubernetes.operators.spark_kubernetes:SparkKubernetesOperator"
    application: ClassVar[str] = LAUNCHING
    scheme: ClassVar[str] = "s3a"
    brought: ClassVar[tuple[Jar, ...]] = S3_JARS

    image: Text
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] = "default"
    service_account: Text = "spark"
    driver: dict[str, Any] = Field(default_factory=dict)
    executor: dict[str, Any] = Field(default_factory=dict)
    image_pull_secrets: list[Text] = Field(default_factory=list)

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the operator, which itself gives the application its name and namespace."""
        if named := sorted(set(_OURS) & self.driver.keys()):
            raise SubmitError(f"driver.{named[0]} of the connection is set by Tidewise: use envFrom, service_account")
        variables = [{"name": name, "value": value} for name, value in shipped.environment.items()]
        spec = {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": SPARK_VERSION,
            "image": self.image,
            "imagePullSecrets": list(self.image_pull_secrets),
            "mainApplicationFile": shipped.application,
            "arguments": name_settings(shipped),
            "sparkConf": dict(shipped.conf),
            "deps": {"pyFiles": [shipped.package], "files": [shipped.settings], "jars": list(shipped.jars)},
            "restartPolicy": {"type": "Never"},  # Airflow tries again
            "timeToLiveSeconds": round(within_s),  # of one that has ended
            "driver": {**self.driver, "serviceAccount": self.service_account, "env": variables},
            "executor": dict(self.executor),
        }
        application = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": spec}
        return {
            "kubernetes_conn_id": connection_id,
            "name": shipped.name,
            "namespace": self.namespace,
            "template_spec": {"spark": application},
            "get_logs": True,
            "deferrable": False,
        }
