"""The settings in force: read again when their file has changed, and nothing is sent while they cannot be used."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from include.settings import Settings, settings_file

log = logging.getLogger(__name__)

_STILL_S = 2.0  # a file that was written within this time may be half of one


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
        self._why_off = "the settings were not read yet"

    def read(self) -> tuple[Settings | None, str]:
        """Return the settings, and why nothing may be sent: empty when it may."""
        with self._lock:
            return self._read()

    def _read(self) -> tuple[Settings | None, str]:
        stamp, now_s = read_stamp(), self._clock()
        if stamp != self._stamp:
            self._changed_s = None if self._stamp is None else now_s
            self._stamp = stamp
            self._read_again()
        if self._changed_s is not None and abs(now_s - self._changed_s) < _STILL_S:
            return self._settings, self._why_off or "the settings have just been changed"
        return self._settings, self._why_off

    def _read_again(self) -> None:
        try:
            self._settings, self._why_off = self._load(), ""
        except Exception as error:  # whatever it is: nothing is sent until it is mended
            self._settings, self._why_off = None, f"the settings cannot be used: {error}"
            log.error("%s; nothing is sent until they can", self._why_off)


def read_stamp() -> tuple[object, ...]:
    """Return what changes when the settings file does."""
    path = settings_file()
    try:
        about = path.stat()
    except OSError as error:
        return (str(path), type(error).__name__)
    return (str(path), about.st_mtime_ns, about.st_size, about.st_ino)
