"""What every service is asked through: a submission whose files any driver can fetch, and the service's own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from include.spark.jars import Jar

FETCHING = "fetch_and_launch.py"
"""Script of ``spark_jobs/`` for services that take one Python file and its arguments."""
LAUNCHING = "launch.py"


@dataclass(frozen=True, slots=True)
class ShippedSubmission:
    """A submission whose files lie in the object store.

    Attributes:
        name: of the application.
        application: URI of the script.
        package: URI of the zip of the project's code.
        settings: URI of the settings in force.
        jars: URIs, without those that the service brings.
        conf: Spark's configuration, without the jars.
        environment: variables of the driver; none of them is a secret.
        arguments: of the stages.
    """

    name: str
    application: str
    package: str
    settings: str
    jars: tuple[str, ...]
    conf: Mapping[str, str]
    environment: Mapping[str, str]
    arguments: tuple[str, ...]


class Submitter(Protocol):
    """One service, with what the connection says of it."""

    provider: ClassVar[str]
    """Package with the operator, as pip knows it."""
    operator: ClassVar[str]
    """``module:class``."""
    application: ClassVar[str]
    """Script of ``spark_jobs/`` that the service is given."""
    scheme: ClassVar[str]
    """By which the service knows S3: ``s3`` or ``s3a``."""
    brought: ClassVar[tuple[Jar, ...]]
    """Jars that the service has itself, in its own build."""

    def form_options(self, shipped: ShippedSubmission, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return the options of the provider's operator, but for its task id.

        Args:
            shipped: what to run.
            connection_id: of Airflow's connection to the service.
            within_s: how long the stages may take.

        Raises:
            SubmitError: the connection says something that Tidewise has to set itself.
        """
