"""Why a job was rescaled, or not: what was measured beside capacities, the plan's figures, the request, what it did."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.decisions import decision_of
from fleet.facts import DecisionFact, OutcomeFact, StepFact
from fleet.fleet_reader import FleetReader
from fleet.log_tables import Row, read_json
from fleet.plans import step_of
from include.lake_table import is_in
from models.control.case import SENDS, Verb
from models.control.request_states import describe_states
from models.control.state import JobHistory
from models.policies.memory import load

AROUND = timedelta(hours=1)
"""A request so far from the time that is asked about is what is meant."""
_MEASURED = timedelta(minutes=20)
_FOLLOWED = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    """What was measured of an operator in the last window before a decision; rates in records/s.

    Attributes:
        rate_per_s: that it processed; of a source what arrived, where that is known.
        capacity_per_s: that it could have processed (true processing rate).
        used_share: of the capacity, by the rate.
        busy_share: mean over its subtasks.
        pending_records, lag_s: of a source: backlog and its age.
    """

    operator: str
    at_s: float
    parallelism: int | None
    rate_per_s: float | None
    capacity_per_s: float | None
    used_share: float | None
    busy_share: float | None
    pending_records: float | None
    lag_s: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision with all that stands behind it.

    Attributes:
        free_slots: of the cluster then; None where it did not tell.
        measured: of each operator; empty where nothing was ingested of that time.
        plan: the step of the plan; None where the decision came from no plan, or its plan is gone.
        sent_at_s: when the request left; None where none did.
        answer: of Flink, in its words or the controller's.
        confirmed_at_s: when Flink ran what was requested; None where that was not observed within three hours.
        states: what the states of the request took, for a person; empty where nothing is known of them.
        outcome: as it was judged; None where it was not, yet.
        after: decisions on the job that followed within three hours, at most ten.
    """

    decision: DecisionFact
    free_slots: int | None
    measured: tuple[OperatorMetrics, ...]
    plan: StepFact | None
    sent_at_s: float | None
    answer: str
    confirmed_at_s: float | None
    states: str
    outcome: OutcomeFact | None
    after: tuple[DecisionFact, ...]


def explain(reader: FleetReader, cluster: str, job: str, at: datetime) -> Explanation | None:
    """Return what explains the rescale nearest to a time, else the last decision before it; None without any."""
    where = f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
    around = reader.log.read_lines(at - AROUND, at + AROUND + _FOLLOWED, where)
    chosen = choose_row((row for row in around if row["at"] <= at + AROUND), at)
    if chosen is None:
        before = reader.log.read_lines(at - timedelta(days=14), at, where)
        chosen = before[-1] if before else None
        if chosen is None:
            return None
        decided = datetime.fromtimestamp(chosen["decided_at_s"], UTC)
        around = reader.log.read_lines(decided, decided + _FOLLOWED, where)
    decided = datetime.fromtimestamp(chosen["decided_at_s"], UTC)
    following = [row for row in around if decided <= row["at"] <= decided + _FOLLOWED]
    windows = reader.tables.read_windows(cluster, job, decided - _MEASURED, decided)
    windows += reader.recent.read_live_windows(cluster, job, decided - _MEASURED, decided)
    windows.sort(key=lambda row: (row["window_start"], row["operator"]))
    plan = reader.tables.read_plan_of(cluster, job, chosen["step_id"], decided) if chosen["step_id"] else None
    judged = reader.tables.read_outcomes_of(cluster, job, decided, decided + timedelta(days=2))
    return form_explanation(chosen, following, windows, None if plan is None else step_of(plan), judged)


def choose_row(rows: Iterable[Row], at: datetime) -> Row | None:
    """Return the request nearest to a time, first the decision and not its answer; None without one."""
    requests = [row for row in rows if row["verb"] in SENDS]
    if not requests:
        return None
    return min(requests, key=lambda row: (abs((row["at"] - at).total_seconds()), bool(row["answer"])))


def form_explanation(
    row: Row,
    following: Sequence[Row],
    windows: Sequence[Mapping[str, Any]],
    plan: StepFact | None,
    judged: Iterable[Mapping[str, Any]],
) -> Explanation:
    """Return an explanation from rows of the tables, each in the order of time."""
    same = [one for one in following if one["decided_at_s"] == row["decided_at_s"] and one["verb"] == row["verb"]]
    answers = [one for one in same if one["answer"]]
    wishes = [one["wish_changed"] for one in same if one["wish_changed"]]  # not in the row of an answer
    is_sent = any(one["answer"] and not str(one["answer"]).startswith("withdrawn") for one in same)
    confirmed = [one for one in following if one["verb"] == Verb.CONFIRM and one["step_id"] == row["step_id"]]
    outcomes = [outcome_of(one) for one in judged if one["step_id"] == row["step_id"]]
    free = read_json(row, "observed").get("free_slots")
    last_of_same = max(range(len(following)), key=lambda place: following[place] in same, default=-1) if same else -1
    after = [one for one in following[last_of_same + 1 :] if not one["answer"] and one not in same]
    return Explanation(
        decision=replace(decision_of(row), wish_changed=wishes[0] if wishes else ""),
        free_slots=free if isinstance(free, int) else None,
        measured=tuple(map(_figures_of, {one["operator"]: one for one in windows}.values())),  # the last of each
        plan=plan,
        sent_at_s=row["decided_at_s"] if is_sent else None,
        answer=answers[-1]["answer"] if answers else "",
        confirmed_at_s=confirmed[0]["at"].timestamp() if confirmed else None,
        states=_describe_times(following[following.index(confirmed[0]) :]) if confirmed else "",
        outcome=outcomes[0] if outcomes else None,
        after=tuple(decision_of(one) for one in after[:10]),
    )


def _describe_times(rows: Sequence[Row]) -> str:
    """Return what the states of the request took that the first row confirms, by the last row before another one is."""
    others = (place for place, row in enumerate(rows) if place and row["verb"] == Verb.CONFIRM)
    last = rows[next(others, len(rows)) - 1]
    times = load(JobHistory, last["history"]).times_of_requests
    return describe_states(times[-1]) if times else ""


def outcome_of(row: Mapping[str, Any]) -> OutcomeFact:
    """Return a row of ``gold.rescale_outcomes`` as a fact."""
    return OutcomeFact(
        cluster=row["cluster"],
        job=row["job"],
        step_id=row["step_id"],
        requested_at_s=_seconds(row["requested_at"]),
        confirmed_at_s=_seconds(row["confirmed_at"]),
        judged_at_s=_seconds(row["judged_at"]),
        slots_from=row["slots_from"],
        slots_to=row["slots_to"],
        is_worse=row["is_worse"],
        rolled_back=bool(row["rolled_back"]),
        throughput_before_per_s=row["throughput_before_per_s"],
        throughput_after_per_s=row["throughput_after_per_s"],
        lag_before_s=row["lag_before_s"],
        lag_after_s=row["lag_after_s"],
        detail=row["detail"] or "",
    )


def _figures_of(row: Mapping[str, Any]) -> OperatorMetrics:
    arrives = row["target_data_rate_per_s"] if row["is_source"] else None
    rate = _number(row["observed_processing_rate_per_s"] if arrives is None else arrives)
    capacity = _number(row["true_processing_rate_per_s"])
    return OperatorMetrics(
        operator=row["operator"],
        at_s=row["window_start"].timestamp() + row["window_s"],
        parallelism=row["parallelism"],
        rate_per_s=rate,
        capacity_per_s=capacity,
        used_share=rate / capacity if rate is not None and capacity else None,
        busy_share=_number(row["busy_share"]),
        pending_records=_number(row["pending_records"]),
        lag_s=_number(row["age_s"]),
    )


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _seconds(value: datetime | None) -> float | None:
    return None if value is None else value.timestamp()
