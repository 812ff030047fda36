"""The settings in force: read again when their file has changed, and nothing is sent while they cannot be used."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from include.settings import Roles, Settings, settings_file
from include.settings.file_owner import check_owner

log = logging.getLogger(__name__)

_STILL_S = 2.0  # a file that was written within this time may be half of one


@dataclass(frozen=True, slots=True)
class SettingsState:
    """The settings at one time; nothing is sent while they cannot be used or have just been changed.

    Attributes:
        settings: in force; None when they cannot be used.
        why_unusable: why not, as one sentence; empty when they can.
        just_changed: whether their file changed a moment ago, so that more may follow.
    """

    settings: Settings | None
    why_unusable: str
    just_changed: bool


class SettingsWatch:
    """Settings that follow their file."""

    def __init__(self, load: Callable[[], Settings], clock: Callable[[], float]) -> None:
        """Load when asked for the first time.

        Args:
            load: loads and checks.
            clock: epoch seconds.
        """
        self._load, self._clock = load, clock
        self._lock = threading.Lock()
        self._stamp: object = None
        self._changed_s: float | None = None
        self._settings: Settings | None = None
        self._roles = Roles()  # of the last settings that could be used
        self._why_unusable = "the settings were not read yet"

    def read(self) -> SettingsState:
        """Return the settings now, and whether something may be sent."""
        with self._lock:
            return self._read()

    def _read(self) -> SettingsState:
        stamp, now_s = read_stamp(), self._clock()
        if stamp != self._stamp:
            self._changed_s = None if self._stamp is None else now_s
            self._stamp = stamp
            self._read_again()
        is_still = self._changed_s is None or abs(now_s - self._changed_s) >= _STILL_S
        return SettingsState(self._settings, self._why_unusable, just_changed=not (is_still or self._why_unusable))

    def _read_again(self) -> None:
        try:
            check_owner(settings_file(), self._roles)  # a new file may not say anew who may change it
            loaded = self._load()
            check_owner(settings_file(), loaded.roles)
            self._settings, self._why_unusable, self._roles = loaded, "", loaded.roles
        except Exception as error:  # whatever it is: nothing is sent until it is mended
            self._settings, self._why_unusable = None, f"the settings cannot be used: {error}"
            log.error("%s; nothing is sent until they can", self._why_unusable)


def read_stamp() -> tuple[object, ...]:
    """Return what changes when the settings file does."""
    path = settings_file()
    try:
        about = path.stat()
    except OSError as error:
        return (str(path), type(error).__name__)
    return (str(path), about.st_mtime_ns, about.st_size, about.st_ino)
