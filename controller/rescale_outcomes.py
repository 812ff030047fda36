"""What became of rescales that were confirmed and judged, in ``gold.rescale_outcomes``: training learns from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controller.control_log import LogEntry
from controller.log_codec import unique_names
from controller.plan_rows import PlanStep
from include.lake_table import LakeTable, date_of, maybe_timestamp, timestamp_of
from include.tables import RESCALE_OUTCOMES
from include.version import code_version
from models.control.outcome import Measurements
from models.control.reconcile import Verb


@dataclass(frozen=True, slots=True)
class RescaleOutcome:
    """A judged rescale.

    Attributes:
        entry: that judged it: its case holds the request and the verdict.
        before, after: measurements that were compared.
        promised: the plan's step; None where no plan stands behind it.
        origin: plan, reactive or pin.
    """

    entry: LogEntry
    before: Measurements
    after: Measurements
    promised: PlanStep | None
    origin: str


def append_outcomes(lake: str, outcomes: Sequence[RescaleOutcome]) -> None:
    """Append judged rescales in one commit.

    Raises:
        ValueError: an entry judges nothing: no request was confirmed, or its outcome is not known.
    """
    LakeTable(lake, RESCALE_OUTCOMES).append([_row(outcome) for outcome in outcomes])


def _row(outcome: RescaleOutcome) -> dict[str, Any]:
    entry, before, after, promised = outcome.entry, outcome.before, outcome.after, outcome.promised
    case = entry.case
    request = case.history.to_judge
    if request is None or case.outcome.is_worse is None:
        raise ValueError(f"the entry of {entry.job} judges no rescale")
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
        "confirmed_at": maybe_timestamp(case.history.confirmed_at_s),
        "judged_at": timestamp_of(case.now_s),
        "parallelism_from": {names.get(vertex, vertex): count for vertex, count in ran.items()},
        "parallelism_to": {names.get(vertex, vertex): count for vertex, count in request.target.items()},
        "slots_from": case.observed.slots_of(ran),
        "slots_to": case.observed.slots_of(request.target),
        "promised_recovery_s": promised.expected_recovery_s if promised else None,
        "promised_capacity_per_s": promised.expected_capacity_per_s if promised else None,
        "promised_load_q50_per_s": promised.load_q50_per_s if promised else None,
        "promised_load_q90_per_s": promised.load_q90_per_s if promised else None,
        "throughput_before_per_s": before.throughput_per_s,
        "throughput_after_per_s": after.throughput_per_s,
        "arriving_before_per_s": _none_if_nan(before.arriving_per_s),
        "arriving_after_per_s": _none_if_nan(after.arriving_per_s),
        "backpressured_share_before": before.backpressured_share,
        "backpressured_share_after": after.backpressured_share,
        "lag_before_s": before.lag_s,
        "lag_after_s": after.lag_s,
        "restarts": after.restarts - before.restarts,
        "is_worse": case.outcome.is_worse,
        "detail": case.outcome.detail,
        "rolled_back": entry.action.verb is Verb.ROLL_BACK and entry.sends,
        "plan_as_of": maybe_timestamp(entry.provenance.plan_as_of_s),
        "model_version": entry.provenance.model_version,
        "code_version": code_version(),
        "date": date_of(case.now_s),
    }


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
