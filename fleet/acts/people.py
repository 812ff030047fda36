"""Whether a person may do what they ask for."""

from __future__ import annotations

from include.settings import Roles
from include.settings.people import Act


class NotAllowedError(Exception):
    """The roles of the settings do not allow it; the message is one line."""


def check_role(roles: Roles, act: Act, login: str) -> None:
    """Refuse a person whom the settings do not name for an act; where nobody is named, everyone may.

    Raises:
        NotAllowedError: they may not.
    """
    if not roles.may(act, login):
        listed = ", ".join(sorted({*roles.named_for(act)}))
        raise NotAllowedError(f"{login} may not: roles.{act} names {listed}")
