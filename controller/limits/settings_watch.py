"""The settings in force: what tightens counts at once, what loosens when the file has been as it is for a while.

What loosens because it is left out counts when a person has said so: a file that was cut loosens nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from controller.limits.lost_restraints import find_lost_restraints, name_confirmation
from controller.limits.settings_memory import SettingsMemory
from include.settings import Roles, Settings, SettingsError, require_named_file, settings_file
from include.settings.file_owner import check_owner

log = logging.getLogger(__name__)

_STILL_S = 2.0  # a file that was written within this time may be half of one
_VERSIONS = 20  # that are compared; a file that changes more often than this waits until it does not


@dataclass(frozen=True, slots=True)
class SettingsState:
    """The settings at one time; nothing is sent while they cannot be used or have just been changed.

    Attributes:
        settings: as they are in the file; None when they cannot be used.
        why_unusable: why not, as one sentence; empty when they can.
        just_changed: whether their file changed a moment ago, so that more may follow.
        has_stood: whether the file has been as it is for long enough.
        before: the version that was in force and those that were in the file since; they count besides until the file
            has stood, and those that say what it leaves out until a person has confirmed it.
        named: clusters that some version has named since the process began.
    """

    settings: Settings | None
    why_unusable: str
    just_changed: bool
    has_stood: bool = True
    before: tuple[Settings, ...] = ()
    named: frozenset[str] = frozenset()

    @property
    def versions(self) -> tuple[Settings, ...]:
        """All that count, the one in the file first."""
        return () if self.settings is None else (self.settings, *self.before)


class SettingsWatch:
    """Settings that follow their file."""

    def __init__(
        self,
        load: Callable[[], Settings],
        clock: Callable[[], float],
        confirmed: Callable[[], Collection[str]] = tuple,
        memory: SettingsMemory | None = None,
    ) -> None:
        """Load when asked for the first time.

        ``confirmed`` returns ids of files (:func:`controller.limits.lost_restraints.name_confirmation`); without
        ``memory`` nobody knows what was in force before.
        """
        self._load, self._clock, self._confirmed, self._memory = load, clock, confirmed, memory
        self._lost: list[str] = []
        self._lock = threading.Lock()
        self._stamp: object = None
        self._path: Path | None = None
        self._changed_s: float | None = None
        self._settings: Settings | None = None
        self._before: list[Settings] = []
        self._named: frozenset[str] = frozenset()
        self._roles = Roles()  # of the last settings that could be used
        self._why_unusable = "the settings were not read yet"

    def read(self) -> SettingsState:
        """Return the settings now, and whether something may be sent."""
        with self._lock:
            return self._read()

    def load_in_force(self) -> Settings:
        """Return the settings that have stood for long enough; ages and bands are the narrowest that count.

        Raises:
            SettingsError: they cannot be used.
        """
        state = self.read()
        if state.settings is None:
            raise SettingsError(state.why_unusable)
        stood, versions = state.settings if state.has_stood else (*state.before, state.settings)[0], state.versions
        narrowest = {
            key: min(getattr(one.apply, key) for one in versions)
            for key in ("max_plan_age_h", "load_band", "confirm_timeout_s")
        }
        return stood.model_copy(update={"apply": stood.apply.with_values(narrowest)})

    def _read(self) -> SettingsState:
        stamp, now_s = read_stamp(), self._clock()
        if stamp != self._stamp:
            is_first, self._stamp = self._stamp is None, stamp
            self._changed_s = _written_s(now_s) if is_first else now_s
            self._read_again()
            if is_first and self._memory is not None:
                self._before = [one for one in self._memory.read() if one != self._settings]
        if self._changed_s is not None and abs(now_s - self._changed_s) >= max(self._loosen_after_s(), _STILL_S):
            self._changed_s = None
        if self._changed_s is None and self._settings is not None:
            self._before = self._find_unconfirmed(self._settings)
            if self._memory is not None:
                self._memory.write((self._settings, *self._before))
        return SettingsState(
            self._settings,
            self._why_unusable,
            just_changed=self._is_new(now_s),
            has_stood=self._changed_s is None,
            before=tuple(self._before),
            named=self._named,
        )

    def _find_unconfirmed(self, settings: Settings) -> list[Settings]:
        """Return the versions before that say what the present one leaves out, until a person has confirmed that."""
        lost = [find_lost_restraints(one, settings) for one in self._before]
        if not any(lost) or name_confirmation() in self._confirmed():
            self._lost = []
            return []
        names = sorted({key for keys in lost for key in keys})
        if names != self._lost:
            self._lost = names
            log.warning(
                "the settings file says no more: %s; what it said counts until the key is there again or "
                "`tidewise lift --settings` confirms the file",
                ", ".join(names),
            )
        return [one for one, keys in zip(self._before, lost, strict=True) if keys]

    def _is_new(self, now_s: float) -> bool:
        """Whether nothing may be sent yet: the file may be half of one, or nobody knows what was in force before."""
        if self._changed_s is None:
            return False
        return abs(now_s - self._changed_s) < _STILL_S or not self._before or len(self._before) >= _VERSIONS

    def _loosen_after_s(self) -> float:
        versions = [*self._before, *([] if self._settings is None else [self._settings])]
        return max((one.settings.loosen_after_s for one in versions), default=0.0)

    def _read_again(self) -> None:
        last = self._settings
        if last is not None and last not in self._before and len(self._before) < _VERSIONS:
            self._before.append(last)
        try:
            self._check_file()
            check_owner(settings_file(), self._roles)  # a new file may not say anew who may change it
            loaded = self._load()
            check_owner(settings_file(), loaded.roles)
            self._settings, self._why_unusable, self._roles = loaded, "", loaded.roles
            self._named |= frozenset(loaded.clusters)
        except Exception as error:  # whatever it is: nothing is sent until it is mended
            self._settings, self._why_unusable = None, f"the settings cannot be used: {error}"
            log.error("%s; nothing is sent until they can", self._why_unusable)

    def _check_file(self) -> None:
        """Refuse another file than the one that was read first: what it said would be forgotten.

        Raises:
            SettingsError: that file is gone.
        """
        require_named_file()
        path = settings_file()
        if self._path is None and path.is_file():
            self._path = path.absolute()
        if self._path is not None and (path.absolute() != self._path or not path.is_file()):
            raise SettingsError(f"{self._path}, which was read before, does not exist any more; write it again")


def _written_s(now_s: float) -> float | None:
    """Return when the file was written; None where it has none, or its time has not come by this clock."""
    try:
        written_s = settings_file().stat().st_mtime
    except OSError:
        return None
    return written_s if written_s <= now_s else None


def read_stamp() -> tuple[object, ...]:
    """Return what changes when the settings file does."""
    path = settings_file()
    try:
        about = path.stat()
    except OSError as error:
        return (str(path), type(error).__name__)
    return (str(path), about.st_mtime_ns, about.st_size, about.st_ino)
