"""What both ways to Spark on EMR have in common."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from include.settings.section import Section, Text
from include.spark.jars import S3_JARS, Jar

POLL_EVERY_S = 30


class Emr(Section):
    """A service of AWS, reached by the provider's operators.

    Attributes:
        aws_conn_id: of the connection with the login, where it is not this one.
    """

    provider: ClassVar[str] = "apache-airflow-providers-amazon"
    scheme: ClassVar[str] = "s3"
    brought: ClassVar[tuple[Jar, ...]] = S3_JARS

    aws_conn_id: Text | None = None

    def wait_options(self, connection_id: str, within_s: float) -> dict[str, Any]:
        """Return by which connection an operator asks, and how long it waits for the end."""
        return {
            "aws_conn_id": self.aws_conn_id or connection_id,
            "deferrable": False,
            "waiter_delay": POLL_EVERY_S,
            "waiter_max_attempts": math.ceil(within_s / POLL_EVERY_S),
        }
