"""What the page reads: the lake through ``fleet/``, with the settings as they are now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fleet.facts import FleetStatus
from fleet.fleet_reader import FleetReader
from fleet.loads import LoadFact
from fleet.small_tables import JobKey, RowsOfJobs
from include.lake_table import timestamp_of
from include.place import place
from include.settings import Settings
from include.tables import JOB_DAYS
from include.tables.plan_row import PlanRow
from page.results_view import ResultsPage, ResultsReader

FRESH_S = 2.0
"""Facts of the present are used again for so long: a page, its style sheet and a reload are one look at the fleet."""
PAST_FRESH_S, LOOKS = 30.0, 8
"""Those of a past time, in which little changes, for longer; so many looks are held."""


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """Where settings come from: another one is other settings."""

    file: str
    owner: str
    changed_at_s: float
    size: int


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """The fleet at one time.

    Attributes:
        origin: where they come from; None: they are the defaults.
        plans: rows of the newest plan of each job.
        loads: what was measured last.
    """

    settings: Settings
    origin: SettingsOrigin | None
    facts: FleetStatus
    plans: Mapping[JobKey, tuple[PlanRow, ...]]
    loads: Mapping[JobKey, LoadFact]
    days: RowsOfJobs


class _CachedSnapshot(NamedTuple):
    read_at_s: float
    look: LakeSnapshot


class FleetSource:
    """Reads for requests of several threads, one after the other.

    ``find_origin`` returns where the settings come from.
    """

    def __init__(
        self,
        load: Callable[[], Settings],
        find_origin: Callable[[], SettingsOrigin | None],
        variables: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._load, self._find_origin, self._variables, self.clock = load, find_origin, variables, clock
        self._lock = threading.RLock()
        self._origin: SettingsOrigin | None = None
        self._reader: FleetReader | None = None
        self._looks: dict[float | None, _CachedSnapshot] = {}  # by time, the oldest first; None: the present
        self._results: ResultsReader | None = None

    @contextmanager
    def reading(self) -> Iterator[FleetReader]:
        """Have the reader for oneself; a new one after the settings have changed.

        Raises:
            SettingsError: they cannot be used.
        """
        with self._lock:
            origin = self._find_origin()
            if self._reader is None or origin != self._origin:
                self._reader = FleetReader(self._load(), self._variables)
                self._origin, self._looks = origin, {}
            yield self._reader

    def read(self, at_s: float | None = None) -> LakeSnapshot:
        """Return the fleet at a time, or now.

        Raises:
            DeltaError, OSError: a table cannot be read.
            SettingsError: the settings cannot be used.
        """
        with self.reading() as reader:
            now_s = self.clock()
            known = self._looks.pop(at_s, None)
            if known is None or not 0 <= now_s - known.read_at_s < (FRESH_S if at_s is None else PAST_FRESH_S):
                look = look_at(reader, self._origin, now_s if at_s is None else at_s)
                known = _CachedSnapshot(now_s, look)
            self._looks[at_s] = known
            for oldest in list(self._looks)[:-LOOKS]:
                del self._looks[oldest]
            return known.look

    def read_results(self, now_s: float, month: str) -> ResultsPage:
        """Return what came of Tidewise in a month, or in the last days.

        Raises:
            DeltaError, OSError: a table cannot be read.
            SettingsError: the settings cannot be used.
        """
        with self.reading() as reader:
            if self._results is None or self._results.reader is not reader:
                self._results = ResultsReader(reader)
            return self._results.read(now_s, month)

    def has_advice(self) -> bool:
        """Whether ``tidewise advise`` has left its page."""
        with self.reading() as reader:
            return _advice(reader.settings).is_file()

    def read_advice(self) -> str | None:
        """Return the page of ``tidewise advise``; None where there is none."""
        with self.reading() as reader:
            try:
                return _advice(reader.settings).read_text(encoding="utf-8")
            except FileNotFoundError:
                return None

    def forget(self) -> None:
        """Read anew at the next request: somebody has done something."""
        with self._lock:
            self._looks = {}


def look_at(reader: FleetReader, origin: SettingsOrigin | None, at_s: float) -> LakeSnapshot:
    """Return the fleet at a time, epoch seconds.

    Raises:
        DeltaError, OSError: a table cannot be read.
    """
    facts = reader.read(at_s)
    measured = [one.metrics_until_s for one in facts.clusters if one.metrics_until_s is not None]
    loads = reader.recent.read_last_loads(timestamp_of(max(measured))) if measured else {}
    for job in facts.jobs:
        if job.window is not None and (
            (known := loads.get((job.cluster, job.job))) is None or known.at_s < job.window.at_s
        ):
            loads[job.cluster, job.job] = job.window
    plans, days = reader.tables.read_plans(facts.at_s), reader.tables.read_last(JOB_DAYS, facts.at_s)
    return LakeSnapshot(reader.settings, origin, facts, plans, loads, days)


def _advice(settings: Settings) -> Path:
    return place(settings.paths.out) / "advice.html"
