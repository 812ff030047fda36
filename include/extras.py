"""Extras: packages that only some set-ups need, each locked in a requirements file of its own.

Standard library only: the set-up uses it before anything is installed.
"""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "celery": ("celery", "redis"),
    "docs": ("sphinx", "myst_parser", "furo"),
    "postgres": ("psycopg", "psycopg2", "asyncpg"),
    "s3": ("boto3",),
}
"""Extra -> modules that it brings; its file is ``requirements-<extra>.txt``."""


def lacks_extra(extra: str) -> bool:
    """Return whether a module of an extra is not installed here."""
    return any(find_spec(module) is None for module in EXTRAS[extra])
