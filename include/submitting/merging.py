"""What Tidewise sets together with what the connection says besides."""

from __future__ import annotations

from collections.abc import Mapping

from include.submitting.refusal import SubmitError
from include.submitting.secrets import check_secrets


def merge(ours: Mapping[str, str], theirs: Mapping[str, str], key: str) -> dict[str, str]:
    """Return both; what only one of them names stays as it is.

    >>> merge({"a": "1"}, {"b": "2"}, "spark_conf")
    {'b': '2', 'a': '1'}

    Args:
        ours: what Tidewise sets.
        theirs: what the connection says.
        key: where the connection says it.

    Raises:
        SubmitError: they say different things of one name, or the connection writes a secret.
    """
    both = sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
    if both:
        raise SubmitError(f"{key} of the connection names {', '.join(both)}, which Tidewise sets: leave it out there")
    check_secrets(theirs, f"{key} of the connection")
    return {**theirs, **ours}
