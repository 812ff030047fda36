"""Who may change the settings file that a controller goes by: its owner, where the settings name who that may be.

Stages read a copy of it that Spark has shipped, which belongs to whoever runs them.
"""

from __future__ import annotations

import pwd
import stat
from pathlib import Path

from include.settings.people import Roles
from include.settings.tree import SettingsError

_WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def login_of(user_id: int) -> str:
    """Return the login name of a user id; the id where it has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def check_owner(path: Path, roles: Roles) -> None:
    """Refuse a settings file that somebody can have written who may not change limits by the settings in force.

    Raises:
        SettingsError: its owner may not change limits, or others can write it.
    """
    if not roles.limits or not path.is_file():
        return
    about = path.stat()
    owner = login_of(about.st_uid)
    if not roles.may("limits", owner):
        named = ", ".join(sorted({*roles.named_for("limits")}))
        raise SettingsError(f"{path} belongs to {owner}, who may not change limits; roles.limits names {named}")
    if about.st_mode & _WRITTEN_BY_OTHERS:
        mode = stat.filemode(about.st_mode)
        raise SettingsError(f"{path} can be written by others than its owner ({mode}); write chmod go-w {path}")
