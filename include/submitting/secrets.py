"""No secret is in a request: services show to many what they were asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from include.submitting.refusal import SubmitError

_NAME = re.compile(r"secret|passw|token|credential|access[._-]?key|account[._-]key|api[._-]?key", re.IGNORECASE)
_NO_SECRET = re.compile(r".*\.(provider|provider\.path|enabled)", re.IGNORECASE)
_VALUE = re.compile(r"//[^/@\s]+:[^/@\s]+@|-D\S*(?:secret|passw|token)\S*=", re.IGNORECASE)
_REFERENCE = re.compile(r"\{\{secrets/[^{}]+\}\}|EMR\.secret@\S+")
"""What Databricks and EMR Serverless themselves put a secret in the place of."""


def check_secrets(values: Mapping[str, str], key: str) -> None:
    """Check that none of the values is a secret, by the names and by what the values look like.

    Args:
        values: name -> value.
        key: where they are written.

    Raises:
        SubmitError: one seems to be; the value is not in the message.
    """
    named = sorted(name for name, value in values.items() if _is_secret(name, str(value)))
    if named:
        raise SubmitError(
            f"{key} names {', '.join(named)}, and everybody who sees the run would see it: give the driver its rights "
            "by a role, or write a reference to a secret of the service ({{secrets/scope/key}} on Databricks)"
        )


def _is_secret(name: str, value: str) -> bool:
    if _REFERENCE.fullmatch(value):
        return False
    return _VALUE.search(value) is not None or (_NAME.search(name) is not None and not _NO_SECRET.fullmatch(name))
