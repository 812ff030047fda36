"""Names that Airflow 3.1 has elsewhere than later ones: DAGs and tasks take them from here."""

from __future__ import annotations

try:
    from airflow.sdk import CronDataIntervalTimetable, CronTriggerTimetable
except ImportError:  # 3.1
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment]
try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
except ImportError:  # 3.1
    from airflow.exceptions import (  # type: ignore[attr-defined,no-redef]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
    )

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "CronDataIntervalTimetable",
    "CronTriggerTimetable",
]
