"""Whether the person at the keyboard may do what they ask for."""

from __future__ import annotations

import os

from fleet.acts.people import NotAllowedError, check_role
from include.settings import Roles
from include.settings.file_owner import login_of
from include.settings.people import Act


def read_login() -> str:
    """Return the login name of the user of this process; a variable cannot change it."""
    return login_of(os.getuid())


def require_role(roles: Roles, act: Act, told: str | None) -> str:
    """Return who acts. Only where nobody is named for the act may the name that they tell be another than their login.

    Raises:
        NotAllowedError: they may not, or give another name.
    """
    login = read_login()
    if not roles.named_for(act):
        return told or login
    check_role(roles, act, login)
    if told not in {None, login}:
        raise NotAllowedError(f"roles.{act} goes by login names: leave out --by {told}, you are {login}")
    return login
