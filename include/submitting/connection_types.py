"""Which service a connection of Airflow is of."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import ValidationError

from include.submitting.databricks import Databricks
from include.submitting.emr_serverless import EmrServerless
from include.submitting.emr_steps import EmrSteps
from include.submitting.refusal import SubmitError
from include.submitting.spark_operator import SparkOperator
from include.submitting.submitter import Submitter

KEY = "tidewise"
"""Key of a connection's extra: what the service has to know besides."""
SPARK_SUBMIT = ("spark", "yarn", "k8s", "local")
"""Types of connections that spark-submit goes by; all but the first come from a URI, whose scheme is Spark's master."""
_SERVICES: Mapping[str, tuple[type[Any], ...]] = {
    "databricks": (Databricks,),
    "aws": (EmrServerless, EmrSteps),
    "emr": (EmrServerless, EmrSteps),
    "kubernetes": (SparkOperator,),
}


def find_submitter(connection_type: str | None, extra: Mapping[str, Any]) -> Submitter | None:
    """Return the service of a connection; None: spark-submit.

    Args:
        connection_type: of Airflow.
        extra: of the connection; nothing but its key ``tidewise`` is read.

    Raises:
        SubmitError: no service is known by that type, its provider is not installed, or the key does not fit.
    """
    if connection_type in SPARK_SUBMIT:
        return None
    kinds = _SERVICES.get(connection_type or "")
    if kinds is None:
        known = ", ".join(("spark", *_SERVICES))
        raise SubmitError(f"stages are not submitted through a connection of type {connection_type!r}, but of {known}")
    values = extra.get(KEY)
    if not isinstance(values, Mapping):
        raise SubmitError(f'the extra of the {connection_type} connection has no "{KEY}": {{...}}; see docs/deploy.md')
    kind = next((one for one in kinds if values.keys() & _needed(one)), kinds[0])
    if not _is_installed(kind.provider):
        raise SubmitError(
            f"a connection of type {connection_type} needs Airflow's provider {kind.provider}, which is not installed "
            f"here: pip install {kind.provider}"
        )
    try:
        submitter: Submitter = kind.model_validate(dict(values))
    except ValidationError as error:  # its text may quote what was written
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)]
        raise SubmitError(f'"{KEY}" in the extra of the {connection_type} connection: {"; ".join(faults)}') from None
    return submitter


def _is_installed(package: str) -> bool:
    """Return whether a package is installed; to look for the module itself would import all of Airflow."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _needed(kind: type[Any]) -> set[str]:
    """Return the keys that a service cannot do without and others do not have."""
    return {name for name, one in kind.model_fields.items() if one.is_required()} - {"execution_role_arn"}
