"""How long data are kept, and how the tables are kept small."""

from __future__ import annotations

from pydantic import Field

from include.settings.section import Days, Section


class Retention(Section):
    """How long rows are kept; unset: for ever. All else can be made again of raw files and bronze."""

    raw_days: Days | None = Field(None, description="days of raw files, which stay until they are ingested")
    bronze_days: Days | None = Field(None, description="days of bronze tables")
    silver_days: Days | None = Field(
        730, description="days of silver tables; no less than trainings and forecasts read"
    )
    gold_days: Days | None = Field(730, description="days of models, forecasts, plans and comparisons in gold tables")
    tick_days: Days | None = Field(90, description="days of what evaluations write")
    log_days: Days | None = Field(1095, description="days of what was sent, of quarantine and of data quality")
    time_travel_days: int = Field(30, ge=7, le=3660, description="days for which a table can be read as it was")
    compact_after_days: int = Field(2, ge=1, le=365, description="days after which the small files of a day are merged")
