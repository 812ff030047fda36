"""Who on this machine may read what is written: its owner, and the group that the settings name."""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from pathlib import Path

from include.place import is_object, place
from include.settings import Settings, SettingsError


def limit_readers(path: Path, group: str | None, mode: int) -> None:
    """Give a file or folder a mode, and a group that is named.

    Raises:
        SettingsError: there is no such group here, or this user is not in it.
        PermissionError: it is somebody else's.
    """
    if group is not None:
        try:
            shutil.chown(path, group=group)
        except (LookupError, PermissionError) as error:
            raise SettingsError(f"paths.group = {group}: {error}; write a group that this user is in") from error
    path.chmod(mode)


def close_out(settings: Settings) -> None:
    """Make ``paths.out``, and let nobody else than its owner and group into it; another user's folder stays as it is.

    Raises:
        SettingsError: there is no such group here, or this user is not in it.
    """
    folder, group = place(settings.paths.out), settings.paths.group
    if is_object(folder):
        return
    of_group = 0o050 if group is not None else 0
    with suppress(OSError):  # a disk that is only read, say: what writes there tells it
        folder.mkdir(parents=True, exist_ok=True)
        limit_readers(folder, group, stat.S_IMODE(folder.stat().st_mode) & ~0o007 | of_group)
