"""No secret is in a request: services show to many what they were asked for."""

from __future__ import annotations

from collections.abc import Mapping

from include.settings.secret_values import is_secret
from include.submitting.refusal import SubmitError


def check_secrets(values: Mapping[str, str], key: str) -> None:
    """Check that none of the values is a secret, by the names and by what the values look like.

    Args:
        values: name -> value.
        key: where they are written.

    Raises:
        SubmitError: one seems to be; the value is not in the message.
    """
    named = sorted(name for name, value in values.items() if is_secret(name, str(value)))
    if named:
        raise SubmitError(
            f"{key} names {', '.join(named)}, and everybody who sees the run would see it: give the driver its rights "
            "by a role, or write a reference to a secret of the service ({{secrets/scope/key}} on Databricks)"
        )
