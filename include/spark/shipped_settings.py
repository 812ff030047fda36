"""The settings of a submission as one file, for a driver that has neither our environment nor our folders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path

from include.atomic_write import replace_atomically
from include.readers import limit_readers
from include.settings import ENV_PREFIX, SETTINGS_FILE_VARIABLE, Settings, SettingsError
from include.utc import DAY_S

OPTION = "--settings"
_NEEDED_S = 7 * DAY_S
_PREFIX, _SUFFIX = "tidewise-settings-", ".json"


def ship_settings(settings: Settings, folder: Path) -> Path:
    """Write what is set into a file that is named by its content; returns its path.

    A default is left out, so that a price, say, that nobody has said is none there either.

    Logins and keys are in it as the settings have them: by the name of a variable or file. Its owner and the group of
    the settings may read it. Files that no stage was submitted with for days are removed.

    Raises:
        SettingsError: there is no such group here, or this user is not in it.
    """
    text = json.dumps(settings.model_dump(mode="json", exclude_unset=True), sort_keys=True, indent=1)
    file = folder / f"{_PREFIX}{_digest(text.encode())}{_SUFFIX}"
    with replace_atomically(file) as temporary:
        temporary.touch(mode=0o600)
        limit_readers(temporary, settings.paths.group, 0o600 if settings.paths.group is None else 0o640)
        temporary.write_text(text, encoding="utf-8")
    oldest_s = file.stat().st_mtime - _NEEDED_S
    for one in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(FileNotFoundError):  # another stage removes it as well
            if one.stat().st_mtime < oldest_s:
                one.unlink()
    return file


def split_argv(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the file that the submitter names, and the other arguments.

    >>> split_argv(["plan", "--as-of", "2026-01-01T00:00:00Z", "--settings", "/out/tidewise-settings-1.json"])
    ('/out/tidewise-settings-1.json', ['plan', '--as-of', '2026-01-01T00:00:00Z'])
    >>> split_argv(["plan"])
    (None, ['plan'])
    """
    if OPTION not in argv[:-1]:
        return None, list(argv)
    at = list(argv).index(OPTION)
    return argv[at + 1], [*argv[:at], *argv[at + 2 :]]


def take_settings(named: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Let settings be loaded from the submitter's file alone; what the environment of this process says does not count.

    Raises:
        SettingsError: the file is not here, or is another one than the submitter's.
    """
    # Spark puts shipped files into the working directory of a driver that runs on the cluster.
    candidates = [Path(named), Path(Path(named).name)]
    file = next((one for one in candidates if one.is_file()), None)
    if file is None:
        raise SettingsError(f"the submitter's settings are neither {named} nor in the working directory {Path.cwd()}")
    if file.name != f"{_PREFIX}{_digest(file.read_bytes())}{_SUFFIX}":
        raise SettingsError(f"{file} is not what the submitter wrote: its content does not have the hash of its name")
    for name in [one for one in environment if one.upper().startswith(ENV_PREFIX)]:
        del environment[name]
    environment[SETTINGS_FILE_VARIABLE] = str(file.absolute())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
