"""What may not stand in the settings: they are stored, shipped and logged, so they name where a secret is."""

from __future__ import annotations

import re

_OF_DATABASE = re.compile(r"(postgresql|mysql|mssql)\b")
_USER = re.compile(r"//[^/?#]*@")
_PASSWORD = re.compile(r"//[^/?#:]*:(?!\d*(?:[/?#]|$)).*@")  # which may hold any letter; a port is none
_IN_QUERY = re.compile(r"(?:pass|pwd|secret|token)[^=&?]*(?:=|%3d)", re.IGNORECASE)
_NAME = re.compile(r"secret|passw|token|credential|access[._-]?key|account[._-]key|api[._-]?key", re.IGNORECASE)
_NO_SECRET = re.compile(
    r".*(\.(provider|provider\.path|enabled)|File)|spark\.kubernetes\.\w+\.secret(s|KeyRef)\..*", re.IGNORECASE
)
_VALUE = re.compile(r"//[^/@\s]+:[^/@\s]+@|-D\S*(?:secret|passw|token)\S*=", re.IGNORECASE)
_REFERENCE = re.compile(r"\{\{secrets/[^{}]+\}\}|EMR\.secret@\S+")
"""What Databricks and EMR Serverless themselves put a secret in the place of."""


def check_uri(text: str, instead: str) -> str:
    """Refuse a URI with credentials; a database's may name a user, whose password its driver has from elsewhere.

    Raises:
        ValueError: it has; ``instead`` says what to write.
    """
    scheme, _, rest = text.partition("://")
    address, _, query = rest.partition("?")
    has_user = _USER.search(f"//{address}") is not None and _OF_DATABASE.match(scheme) is None
    if "://" in text and (has_user or _PASSWORD.search(f"//{rest}") or _IN_QUERY.search(query)):
        raise ValueError(f"must not hold credentials, which logs would show; {instead}")
    return text


def is_secret(name: str, value: str) -> bool:
    """Whether a setting of Spark or of a service seems to be a secret, by its name or by what its value looks like."""
    if _REFERENCE.fullmatch(value):
        return False
    return _VALUE.search(value) is not None or (_NAME.search(name) is not None and not _NO_SECRET.fullmatch(name))
