"""The columns of ``gold.plans``, once: its schema, what planning writes of a job, what controller and report read.

A new column is a field here, and where planning computes its value (``spark_jobs/plan/plan_rows.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Self

from include.tables.schema import PARALLELISM

_TIME = "TIMESTAMP"


def _of_job(kind: str, default: object = None) -> Any:
    """Return a column that the planning of a job fills; ``kind`` is its SQL type."""
    metadata = {"kind": kind, "is_of_job": True, "is_read": True}
    if kind == PARALLELISM:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def _of_plan(kind: str, *, is_read: bool = False) -> Any:
    """Return a column that is the same for all jobs of a plan."""
    return field(default=None, metadata={"kind": kind, "is_of_job": False, "is_read": is_read})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One row: a step; a job that needs none has one row with status hold, a refused one says why.

    Times are epoch seconds here and timestamps in the table, whose columns have no ``_s``. None: the plan does not say.
    """

    as_of_s: float | None = _of_plan(_TIME, is_read=True)
    step_id: str = _of_job("STRING", "")  # hash of job, effective_at and parallelism_to, and as_of
    cluster: str = _of_job("STRING", "")
    job: str = _of_job("STRING", "")
    job_id: str | None = _of_job("STRING")
    step_index: int = _of_job("INT", 0)
    status: str = _of_job("STRING", "")  # planned, hold or refused
    apply_at_s: float | None = _of_job(_TIME)  # effective_at - lead_time_s
    effective_at_s: float | None = _of_job(_TIME)
    valid_until_s: float | None = _of_job(_TIME)
    parallelism_from: Mapping[str, int] = _of_job(PARALLELISM)
    parallelism_to: Mapping[str, int] = _of_job(PARALLELISM)
    slots_from: int | None = _of_job("INT")
    slots: int | None = _of_job("INT")
    expected_load_q50_per_s: float | None = _of_job("DOUBLE")  # highest of the bins of the step, all sources together
    expected_load_q90_per_s: float | None = _of_job("DOUBLE")
    expected_capacity_per_s: float | None = _of_job("DOUBLE")  # source records per s that the configuration sustains
    expected_capacity_lower_per_s: float | None = _of_job("DOUBLE")
    expected_capacity_upper_per_s: float | None = _of_job("DOUBLE")
    expected_utilisation: float | None = _of_job("DOUBLE")  # q50 load / expected capacity
    p_late: float | None = _of_job("DOUBLE")  # probability that load exceeds capacity in the worst bin
    expected_late_minutes: float | None = _of_job("DOUBLE")  # while the step runs; null of a policy that prices none
    day_late_minutes: float | None = _of_job("DOUBLE")  # the same of the job over the whole plan, in each of its rows
    expected_recovery_s: float | None = _of_job("DOUBLE")
    lead_time_s: float | None = _of_job("DOUBLE")
    band_load_low_per_s: float | None = _of_job("DOUBLE")  # it goes out as planned while the load is no lower
    band_load_high_per_s: float | None = _of_job("DOUBLE")  # nor higher; null: no such end, or no band
    band_backlog_low_s: float | None = _of_job("DOUBLE")  # the same of the age of the backlog
    band_backlog_high_s: float | None = _of_job("DOUBLE")
    slot_hours_saved: float | None = _of_job("DOUBLE")  # against staying as it is over the step (negative: added)
    safer_parallelism: Mapping[str, int] = _of_job(PARALLELISM)  # of the priced sizes the next with more paid slots
    safer_slots: int | None = _of_job("INT")
    safer_slot_hours_more: float | None = _of_job("DOUBLE")  # than the step, while it runs
    safer_late_minutes: float | None = _of_job("DOUBLE")  # expected in that time
    cheaper_parallelism: Mapping[str, int] = _of_job(PARALLELISM)  # the next with fewer paid slots
    cheaper_slots: int | None = _of_job("INT")
    cheaper_slot_hours_more: float | None = _of_job("DOUBLE")  # negative: so many fewer
    cheaper_late_minutes: float | None = _of_job("DOUBLE")
    reason: str = _of_job("STRING", "")  # one sentence for a person
    refusal: str | None = _of_job("STRING")  # named reason when refused, null otherwise
    warning: str | None = _of_job("STRING")  # what a person should know of the models; null when all is well
    policy: str | None = _of_job("STRING")
    model_version: str | None = _of_plan("STRING", is_read=True)
    forecast_version: str | None = _of_job("STRING")
    observations_until_s: float | None = _of_job(_TIME)
    code_version: str | None = _of_plan("STRING", is_read=True)
    input_versions: Mapping[str, int] | None = _of_plan("MAP<STRING, BIGINT>")  # table -> Delta version that was read
    settings: str | None = _of_plan("STRING")  # JSON of all that shapes a plan

    @classmethod
    def of(cls, row: Mapping[Any, Any], **more: Any) -> Self:
        """Read a row of the table, as Arrow or pandas gives it; what it lacks or has as null gets its default."""
        values = {name: read(value) for name, column, read in _READERS if (value := row.get(column)) is not None}
        return cls(**{name: value for name, value in values.items() if value is not None}, **more)

    def to_job_row(self) -> dict[str, Any]:
        """Return what the planning of a job fills, by :data:`JOB_ROW`: whole seconds, and parallelism as JSON."""
        return {one.name: _write(getattr(self, one.name), one.metadata["kind"]) for one in _FIELDS if _is_of_job(one)}

    @property
    def has_ended(self) -> bool:
        """Whether the job had come to its end when the plan was made."""
        return self.refusal == "job_ended"

    @property
    def apply_at(self) -> datetime | None:
        """When the step is sent."""
        return _to_time(self.apply_at_s)

    @property
    def effective_at(self) -> datetime | None:
        """When it is in effect."""
        return _to_time(self.effective_at_s)


_FIELDS = fields(PlanRow)


def _is_of_job(column: Field[Any]) -> bool:
    return bool(column.metadata["is_of_job"])


def _column(column: Field[Any]) -> str:
    return column.name.removesuffix("_s") if column.metadata["kind"] == _TIME else column.name


def _read_map(value: Any) -> dict[str, int]:
    return {str(name): int(count) for name, count in dict(value).items()}


def _read_time(value: Any) -> float | None:
    if value != value:  # noqa: PLR0124 - pandas' NaT
        return None
    return float((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


def _reader(kind: str) -> Callable[[Any], Any]:
    """Return what reads a value that is not null: None for NaN, as pandas has for null."""
    if kind.startswith("MAP"):
        return _read_map
    if kind == _TIME:
        return _read_time
    read = {"INT": int, "DOUBLE": float}.get(kind, str)
    return lambda value: read(value) if value == value else None  # noqa: PLR0124


_READERS = tuple((one.name, _column(one), _reader(one.metadata["kind"])) for one in _FIELDS)
"""Name, column and reader of each: the page reads all rows of a plan, the controller those of its jobs."""


def _write(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == PARALLELISM:
        return json.dumps(dict(value), sort_keys=True)
    return int(value) if kind == _TIME else value


def _to_time(epoch_s: float | None) -> datetime | None:
    return None if epoch_s is None else datetime.fromtimestamp(epoch_s, UTC)


PLAN_COLUMNS = {_column(one): str(one.metadata["kind"]) for one in _FIELDS}
"""Column -> SQL type, in the order of the table."""
READ_COLUMNS = tuple(_column(one) for one in _FIELDS if one.metadata["is_read"])
"""What a reader needs of a row: all but the settings and the versions of the inputs."""
JOB_ROW = {
    one.name: {_TIME: "BIGINT", PARALLELISM: "STRING"}.get(one.metadata["kind"], str(one.metadata["kind"]))
    for one in _FIELDS
    if _is_of_job(one)
}
"""Name -> SQL type of what :meth:`PlanRow.to_job_row` gives."""
TIMES = {one.name: _column(one) for one in _FIELDS if _is_of_job(one) and one.metadata["kind"] == _TIME}
"""Name in :data:`JOB_ROW` -> column of the table."""
PARALLELISMS = tuple(one.name for one in _FIELDS if one.metadata["kind"] == PARALLELISM)
