"""One of several programs that commit to one table at once: ``racing_writer.py spark|delta-rs|upkeep NAME COUNT``.

Prints ``begin`` when it is ready, then a line for each commit: ``done NUMBER`` or ``failed NUMBER why``. The program
begins to commit when a line comes in on standard input.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from include.lake_table import LakeTable
from include.maintenance.table_upkeep import keep_up
from include.settings import load_settings
from include.tables import Table

RACE = Table(
    "ops.race",
    {"writer": "STRING", "number": "INT", "date": "DATE"},
    keys=("writer", "number"),
    partition_by=("date",),
)
PAST = datetime(2026, 1, 1, tzinfo=UTC)  # a day that is over: upkeep merges its files


def spark_writer(name: str) -> Callable[[int], object]:
    """Return what commits a row through Spark."""
    from spark_jobs.lake import Lake, rows_of
    from spark_jobs.session import start_session

    settings = load_settings()
    spark = start_session(settings, name)
    lake = Lake(spark, settings.paths.lake)
    lake.ensure(RACE)
    lake.read(RACE).count()

    def commit(number: int) -> None:
        rows = rows_of(spark, RACE.columns, [{"writer": name, "number": number, "date": PAST.date()}])
        rows.coalesce(1).write.format("delta").mode("append").save(lake.path(RACE))

    return commit


def delta_writer(name: str) -> Callable[[int], object]:
    """Return what commits a row through delta-rs, as the controller does."""
    table = LakeTable(load_settings().paths.lake, RACE)
    return lambda number: table.append([{"writer": name, "number": number, "date": PAST.date()}])


def upkeep(name: str) -> Callable[[int], object]:
    """Return what merges the files of the table, as the daily upkeep does."""
    settings = load_settings()
    path = f"{settings.paths.lake}/{RACE.relative_path}"
    return lambda number: keep_up(path, RACE, settings.retention, datetime.now(UTC), applies=True)


def main() -> None:
    kind, name, count = sys.argv[1:]
    commit = {"spark": spark_writer, "delta-rs": delta_writer, "upkeep": upkeep}[kind](name)
    print("begin", flush=True)
    sys.stdin.readline()
    stopped = threading.Event()
    if kind == "upkeep":  # until the others are done
        threading.Thread(target=lambda: (sys.stdin.readline(), stopped.set()), daemon=True).start()
    number = 0
    while not stopped.wait(0.5 if kind == "upkeep" else 0) and number < int(count):
        try:
            commit(number)
            print("done", number, flush=True)
        except Exception as error:
            print("failed", number, type(error).__name__, str(error).split("\n")[0][:300], flush=True)
        number += 1


if __name__ == "__main__":
    main()
