"""The settings in force, kept below the lake: a controller that starts anew knows what their file said before."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from include.control.small_objects import ObjectFolder, StoreUnreadableError, object_name
from include.settings import Settings, SettingsError, check_settings, settings_file

FOLDER = "_control/settings"
log = logging.getLogger(__name__)


class SettingsMemory:
    """One small object per settings file; settings hold no secrets, only where they are."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)
        self._written: tuple[Settings, ...] = ()
        self._trouble = ""

    def read(self) -> list[Settings]:
        """Return the versions that counted last; what cannot be read any more is told, and left out."""
        result = []
        try:
            for one in json.loads(self._folder.read_all().get(_name(), b"[]")):
                result.append(check_settings(one))
        except (StoreUnreadableError, SettingsError, ValueError, TypeError, RecursionError) as error:
            self._tell(f"what the settings said before is not known: {error}")
        return result

    def write(self, versions: tuple[Settings, ...]) -> None:
        """Keep the versions that count; where that is impossible the next controller knows less of them."""
        if list(map(id, versions)) == list(map(id, self._written)):
            return
        try:
            self._folder.write(_name(), json.dumps(_contents(versions)).encode())
            self._written = versions
        except StoreUnreadableError as error:
            self._tell(f"the settings are not kept for the next controller: {error}")

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            log.warning("%s", trouble)
        self._trouble = trouble


def _name() -> str:
    return object_name(str(settings_file().absolute()))


def _contents(versions: Sequence[Settings]) -> list[object]:
    """Return what was set in each version; a key that has its default since nobody set it stays unset."""
    return [one.model_dump(mode="json", exclude_unset=True) for one in versions]
