"""The columns of ``gold.plans``, once: its schema, what planning writes of a job, what controller and report read.

A new column is a field here, and where planning computes its value (``spark_jobs/plan/plan_rows.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Self

from include.tables.schema import PARALLELISM

_TIME = "TIMESTAMP"
_VERSIONS = "MAP<STRING, BIGINT>"


def _stored(kind: str, default: object = None, *, is_read: bool = True) -> Any:
    """Return a column of an SQL type; ``is_read``: by who reads plans."""
    metadata = {"kind": kind, "is_read": is_read}
    if kind == PARALLELISM:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One row: a step; a job that needs none has one row with status hold, a refused one says why.

    Times are epoch seconds here and timestamps in the table, whose columns have no ``_s``. None: the plan does not say.
    """

    as_of_s: float | None = _stored(_TIME)
    step_id: str = _stored("STRING", "")  # hash of job, as_of, effective_at, parallelism_to
    cluster: str = _stored("STRING", "")
    job: str = _stored("STRING", "")
    job_id: str | None = _stored("STRING")
    step_index: int = _stored("INT", 0)
    status: str = _stored("STRING", "")  # planned, hold, refused
    apply_at_s: float | None = _stored(_TIME)  # effective_at - lead_time_s
    effective_at_s: float | None = _stored(_TIME)
    valid_until_s: float | None = _stored(_TIME)
    parallelism_from: Mapping[str, int] = _stored(PARALLELISM)
    parallelism_to: Mapping[str, int] = _stored(PARALLELISM)
    slots_from: int | None = _stored("INT")
    slots: int | None = _stored("INT")
    expected_load_q50_per_s: float | None = _stored("DOUBLE")  # highest of the step's bins, of all sources
    expected_load_q90_per_s: float | None = _stored("DOUBLE")
    expected_capacity_per_s: float | None = _stored("DOUBLE")  # that the configuration sustains
    expected_capacity_lower_per_s: float | None = _stored("DOUBLE")
    expected_capacity_upper_per_s: float | None = _stored("DOUBLE")
    expected_utilisation: float | None = _stored("DOUBLE")  # q50 load / expected capacity
    p_late: float | None = _stored("DOUBLE")  # P(load > capacity) in the worst bin
    expected_late_minutes: float | None = _stored("DOUBLE")  # while the step runs
    day_late_minutes: float | None = _stored("DOUBLE")  # of the whole plan
    expected_recovery_s: float | None = _stored("DOUBLE")
    lead_time_s: float | None = _stored("DOUBLE")
    band_load_low_per_s: float | None = _stored("DOUBLE")  # while the load is no lower, the step goes out as planned
    band_load_high_per_s: float | None = _stored("DOUBLE")  # null: no such end, or no band
    band_backlog_low_s: float | None = _stored("DOUBLE")  # age of the backlog
    band_backlog_high_s: float | None = _stored("DOUBLE")
    slot_hours_saved: float | None = _stored("DOUBLE")  # against staying as it is; negative: added
    safer_parallelism: Mapping[str, int] = _stored(PARALLELISM)  # next size with more paid slots
    safer_slots: int | None = _stored("INT")
    safer_slot_hours_more: float | None = _stored("DOUBLE")  # than the step
    safer_late_minutes: float | None = _stored("DOUBLE")
    cheaper_parallelism: Mapping[str, int] = _stored(PARALLELISM)  # next size with fewer paid slots
    cheaper_slots: int | None = _stored("INT")
    cheaper_slot_hours_more: float | None = _stored("DOUBLE")
    cheaper_late_minutes: float | None = _stored("DOUBLE")
    reason: str = _stored("STRING", "")
    refusal: str | None = _stored("STRING")  # named reason
    warning: str | None = _stored("STRING")  # about the models
    policy: str | None = _stored("STRING")
    model_version: str | None = _stored("STRING")
    forecast_version: str | None = _stored("STRING")
    observations_until_s: float | None = _stored(_TIME)
    code_version: str | None = _stored("STRING")
    input_versions: Mapping[str, int] | None = _stored(_VERSIONS, is_read=False)  # table -> Delta version
    settings: str | None = _stored("STRING", is_read=False)  # JSON of all that shapes a plan

    @classmethod
    def of(cls, row: Mapping[Any, Any], **more: Any) -> Self:
        """Read a row of the table, as Arrow or pandas gives it; what it lacks or has as null gets its default."""
        values = {name: read(value) for name, column, read in _READERS if (value := row.get(column)) is not None}
        return cls(**{name: value for name, value in values.items() if value is not None}, **more)

    def to_columns(self) -> dict[str, Any]:
        """Return the row of the table: column -> value, times to the second."""
        return {_column(one): _write(getattr(self, one.name), one.metadata["kind"]) for one in _FIELDS}

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
    if kind.startswith("MAP"):
        return dict(sorted(value.items()))
    return _to_time(int(value)) if kind == _TIME else value


def _to_time(epoch_s: float | None) -> datetime | None:
    return None if epoch_s is None else datetime.fromtimestamp(epoch_s, UTC)


PLAN_COLUMNS = {_column(one): str(one.metadata["kind"]) for one in _FIELDS}
"""Column -> SQL type, in the order of the table."""
READ_COLUMNS = tuple(_column(one) for one in _FIELDS if one.metadata["is_read"])
"""What a reader needs of a row: all but the settings and the versions of the inputs."""
