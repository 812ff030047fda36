"""Upkeep of all tables and of the raw files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deltalake import DeltaTable

from include.maintenance.raw_upkeep import find_old_days, remove_raw_days
from include.maintenance.table_upkeep import TableMaintenance, keep_up
from include.missed_hours import read_ingested
from include.place import place
from include.settings import Settings
from include.tables import BY_PERSONS, CONTROLLED, TABLES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LakeMaintenance:
    """What was done, or would be done.

    Attributes:
        tables: of every table that exists and could be kept up.
        raw_days: folders of raw files.
        kept_days: folders of raw files that are old and stay, and why.
        failures: table -> why its upkeep failed; the others went on.
    """

    tables: Sequence[TableMaintenance]
    raw_days: Sequence[Path]
    kept_days: dict[Path, str]
    failures: dict[str, str]


def keep_up_lake(settings: Settings, now: datetime, *, applies: bool) -> LakeMaintenance:
    """Keep up every table, one after the other; one that fails does not keep the others from it."""
    made, failures = [], {}
    for table in (*TABLES, *CONTROLLED, *BY_PERSONS):
        path = f"{settings.paths.lake}/{table.relative_path}"
        try:
            if not DeltaTable.is_deltatable(path):
                continue
            done = keep_up(path, table, settings.retention, now, applies=applies)
        except Exception as error:  # the next upkeep tries again
            log.exception("upkeep of %s", table.name)
            failures[table.name] = f"{type(error).__name__}: {error}"
            continue
        log.info("tidewise: upkeep %s%s", done, "" if applies else " (nothing was changed)")
        made.append(done)
    raw = find_old_days(
        place(settings.paths.raw),
        settings.retention.raw_days,
        now,
        lambda day: read_ingested(settings.paths.lake, day, day),
    )
    for folder, why in raw.kept.items():
        log.warning("tidewise: %s is older than retention.raw_days and stays: %s", folder, why)
    if applies:
        remove_raw_days(raw.old)
    return LakeMaintenance(made, raw.old, raw.kept, failures)
