"""What became of rescales that were judged, in ``gold.rescale_outcomes``: training learns from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controller.log.control_log import LogEntry
from controller.log.log_codec import unique_names
from include.lake_table import LakeTable, date_of, maybe_timestamp, timestamp_of
from include.tables import RESCALE_OUTCOMES
from include.tables.plan_row import PlanRow
from models.control.case import Verb
from models.control.failing_rescale import FAILS
from models.control.outcome import Measurements
from models.control.state import Request


@dataclass(frozen=True, slots=True)
class RescaleOutcome:
    """A judged rescale.

    Attributes:
        entry: that judged it: its case holds the request and the verdict, or its decision says that the job fails.
        before, after: measurements that were compared; None where there are none, as of a job that fails.
        promised: the plan's step; None where no plan stands behind it.
        origin: plan, reactive or pin.
    """

    entry: LogEntry
    before: Measurements | None
    after: Measurements | None
    promised: PlanRow | None
    origin: str


def append_outcomes(lake: str, outcomes: Sequence[RescaleOutcome], code_version: str) -> None:
    """Append judged rescales in one commit, with the version of the controller's code.

    Raises:
        ValueError: an entry judges nothing: no request was confirmed, or its outcome is not known.
    """
    LakeTable(lake, RESCALE_OUTCOMES).append([_row(outcome, code_version) for outcome in outcomes])


def _row(outcome: RescaleOutcome, code_version: str) -> dict[str, Any]:
    entry, before, after, promised = outcome.entry, outcome.before, outcome.after, outcome.promised
    case, request = entry.case, judged_request(entry)
    if request is None:
        raise ValueError(f"the entry of {entry.job} judges no rescale")
    fails = entry.action.reason == FAILS
    was_confirmed = case.history.to_judge is request
    cluster, _, job = entry.job.partition("/")
    names = unique_names(entry.provenance.operators)
    ran = request.running_before or request.before
    return {
        "cluster": cluster,
        "job": job,
        "job_id": request.job_id,
        "step_id": request.step_id,
        "origin": outcome.origin,
        "requested_at": timestamp_of(request.sent_at_s),
        "confirmed_at": maybe_timestamp(case.history.confirmed_at_s if was_confirmed else None),
        "judged_at": timestamp_of(case.now_s),
        "parallelism_from": {names.get(vertex, vertex): count for vertex, count in ran.items()},
        "parallelism_to": {names.get(vertex, vertex): count for vertex, count in request.target.items()},
        "slots_from": case.observed.slots_of(ran),
        "slots_to": case.observed.slots_of(request.target),
        "promised_recovery_s": promised.expected_recovery_s if promised else None,
        "promised_capacity_per_s": promised.expected_capacity_per_s if promised else None,
        "promised_load_q50_per_s": promised.expected_load_q50_per_s if promised else None,
        "promised_load_q90_per_s": promised.expected_load_q90_per_s if promised else None,
        **_measured("before", before),
        **_measured("after", after),
        "restarts": None if before is None or after is None else after.restarts - before.restarts,
        "is_worse": fails or case.outcome.is_worse,
        "detail": entry.action.detail if fails else case.outcome.detail,
        "rolled_back": entry.action.verb is Verb.ROLL_BACK and entry.sends,
        "plan_as_of": maybe_timestamp(entry.provenance.plan_as_of_s),
        "model_version": entry.provenance.model_version,
        "code_version": code_version,
        "date": date_of(case.now_s),
    }


def judged_request(entry: LogEntry) -> Request | None:
    """Return the request that an entry judges; None where it judges none."""
    history = entry.case.history
    if entry.action.reason == FAILS:
        return history.in_flight or history.to_judge
    return None if entry.case.outcome.is_worse is None else history.to_judge


def _measured(when: str, result: Measurements | None) -> dict[str, float | None]:
    return {
        f"throughput_{when}_per_s": None if result is None else result.throughput_per_s,
        f"arriving_{when}_per_s": None if result is None else _none_if_nan(result.arriving_per_s),
        f"backpressured_share_{when}": None if result is None else result.backpressured_share,
        f"lag_{when}_s": None if result is None else _none_if_nan(result.lag_s),
    }


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
