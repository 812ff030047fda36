"""A due step with what the tables know of its job, as read by the driver, and the row that records its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row

from include.control.step_guard import DueStep, Mode, Surroundings, mode_of
from include.settings import Settings
from spark_jobs.apply.flink import Outcome


@dataclass(frozen=True, slots=True)
class DueCase:
    """One row of :func:`spark_jobs.apply.inputs.with_surroundings`.

    Attributes:
        step: the step.
        mode: of its cluster.
        claimed_at: when an earlier run claimed it without leaving an outcome; None for a step that is new.
        row: the other columns.
    """

    step: DueStep
    mode: Mode
    claimed_at: datetime | None
    row: Row

    @classmethod
    def of(cls, row: Row, settings: Settings) -> DueCase:
        """Read a row."""
        step = DueStep(
            step_id=row["step_id"],
            plan_as_of=_at(row["as_of_s"]),
            cluster=row["cluster"],
            job=row["job"],
            job_id=row["job_id"],
            apply_at=_at(row["apply_at_s"]),
            valid_until=_at(row["valid_until_s"]),
            parallelism_from=row["parallelism_from"],
            parallelism_to=row["parallelism_to"],
            expected_recovery_s=row["expected_recovery_s"],
            superseded=row["superseded"],
            of_net=row["of_net"],
        )
        return cls(step, mode_of(settings, step.cluster), _maybe_at(row["decided_at_s"]), row)

    def surroundings(
        self,
        now: datetime,
        settings: Settings,
        *,
        running: Mapping[str, int] | None,
        free_slots: int | None = None,
        restarting: bool = False,
    ) -> Surroundings:
        """Return what is known when the step is judged."""
        cluster = settings.cluster(self.step.cluster)
        return Surroundings(
            now=now,
            mode=self.mode,
            has_rest_url=cluster.rest_url is not None,
            running=running,
            observed_until=_maybe_at(self.row["observed_until_s"]),
            load_per_s=self.row["load_per_s"],
            forecast_q50_per_s=self.row["q50_per_s"],
            forecast_q90_per_s=self.row["q90_per_s"],
            last_rescale_at=_maybe_at(self.row["last_rescale_at_s"]),
            slots_max=cluster.slots_max,
            free_slots=free_slots,
            restarting=restarting,
        )

    def outcome_row(self, outcome: Outcome, decided_at: datetime, refusal: str | None = None) -> dict[str, Any]:
        """Return the row of ``gold.applied_steps``."""
        step = self.step
        return {
            "step_id": step.step_id,
            "as_of": step.plan_as_of,
            "cluster": step.cluster,
            "job": step.job,
            "job_id": step.job_id,
            "mode": self.mode,
            "status": outcome.status,
            "refusal": refusal,
            "detail": outcome.detail,
            "decided_at": decided_at,
            "apply_at": step.apply_at,
            "parallelism_from": step.parallelism_from,
            "parallelism_to": step.parallelism_to,
            "parallelism_confirmed": outcome.parallelism,
            "requested_at": outcome.requested_at,
            "confirmed_at": outcome.confirmed_at,
            "realised_downtime_s": outcome.downtime_s,
            "expected_recovery_s": step.expected_recovery_s,
        }


def _at(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)


def _maybe_at(epoch_s: float | None) -> datetime | None:
    return None if epoch_s is None else _at(epoch_s)
