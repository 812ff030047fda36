"""The fleet's health: each figure beside its threshold of ``[health]``, for status, metrics, alerts and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from fleet.facts import ClusterStatus, DecisionFact, HealthFact, HoldFact, JobStatus, ModelFacts
from fleet.lost_tables import UnreadableTable
from include.settings import Health
from include.stage_states import StageState
from include.utc import DAY_S, HOUR_S
from models.scheduling.figures import format_count
from models.training.gate import LARGE_ERROR, name_large_errors

EVERYWHERE = "all"
Q90 = 0.9
_STILL_THERE_S = 7 * HOUR_S


class Fault(StrEnum):
    """What may be wrong, by the names of :attr:`fleet.facts.HealthFact.name`."""

    CONTROLLER_LATE = "controller_late"
    CLUSTER_SILENT = "cluster_silent"
    PLAN_OLD = "plan_old"
    METRICS_OLD = "metrics_old"
    MODELS_OLD = "models_old"
    CHAMPION_REFUSED = "champion_refused"
    MODELS_OFF = "models_off"
    MODELS_LOST = "models_lost"
    TABLE_LOST = "table_lost"
    RAW_FOLDER_GONE = "raw_folder_gone"
    QUARANTINE_RISING = "quarantine_rising"
    FILES_REFUSED = "files_refused"
    STEPS_REFUSED = "steps_refused"
    STEPS_ROLLED_BACK = "steps_rolled_back"
    FOREIGN_CHANGE = "foreign_change"
    WAITS_FOR_PERSON = "waits_for_person"
    STAGE_FAILING = "stage_failing"
    STAGE_EMPTY = "stage_empty"
    JOB_LATE = "job_late"
    JOB_DOWN = "job_down"
    COVERAGE_OFF = "coverage_off"
    DISK_FULL = "disk_full"


class _Check(NamedTuple):
    """What a figure is of, and what to do when it is beyond its threshold."""

    fault: Fault
    scope: str
    remedy: str


def judge_cluster(cluster: ClusterStatus, limits: Health, now_s: float) -> list[HealthFact]:
    """Return the health of one cluster; one whose mode is off needs no controller."""
    name = cluster.cluster
    controller = _judge_controller(cluster, limits, now_s)
    plan = _judge_age(
        _Check(Fault.PLAN_OLD, name, "does tidewise_hour run?"),
        *("the as-of of the newest plan", cluster.plan_as_of_s, now_s),
        most_h=limits.plan_old_h,
    )
    metrics = _judge_age(
        _Check(Fault.METRICS_OLD, name, "does tidewise_hour run, and does anything collect? tidewise doctor"),
        *("the end of the last ingested hour", cluster.metrics_until_s, now_s),
        most_h=limits.metrics_old_h,
    )
    share = cluster.quarantined / cluster.lines if cluster.lines else 0.0
    quarantine = HealthFact(
        Fault.QUARANTINE_RISING,
        name,
        share > limits.quarantined_share_max,
        share,
        limits.quarantined_share_max,
        "share",
        f"{cluster.quarantined} of {cluster.lines} lines of the last day were quarantined ({share:.1%})",
        "tidewise quarantine",
    )
    files = HealthFact(
        Fault.FILES_REFUSED,
        name,
        cluster.quarantined_files > 0,
        cluster.quarantined_files,
        0,
        "files",
        f"{cluster.quarantined_files} files of the last day could not be read to their end, or are misplaced",
        "tidewise quarantine",
    )
    return [
        *([] if controller is None else [controller]),
        *(plan, metrics, quarantine, files),
        *_judge_polls(cluster, limits, is_late=controller is not None and controller.needs_person),
        *_judge_coverage(cluster, limits),
    ]


def _judge_polls(cluster: ClusterStatus, limits: Health, *, is_late: bool) -> list[HealthFact]:
    """Return whether Flink still tells of its jobs, by a controller that works; nothing where there is none."""
    if cluster.silent_s is None or is_late:
        return []
    age_s, most_s = max(cluster.silent_s, 0.0), limits.controller_late_s
    detail = f"Flink has told nothing of its jobs for {describe_age(age_s)}"
    remedy = "is it up, and do its jobs run? Its address: tidewise doctor; nothing is sent meanwhile"
    fault = Fault.CLUSTER_SILENT
    return [HealthFact(fault, cluster.cluster, age_s > most_s, age_s, most_s, "s", detail, remedy)]


def _judge_coverage(cluster: ClusterStatus, limits: Health) -> list[HealthFact]:
    """Return whether bands hold what they promise; nothing while nobody knows."""
    share, most = cluster.coverage_q90, limits.coverage_off_max
    if share is None:
        return []
    detail = f"{share:.0%} of past load was at or below the forecasts' q90, which promises {Q90:.0%}"
    remedy = "bands are too " + ("narrow" if share < Q90 else "wide") + ": look at its sources (tidewise page), retrain"
    off = abs(share - Q90)
    return [HealthFact(Fault.COVERAGE_OFF, cluster.cluster, off > most, off, most, "share", detail, remedy)]


def judge_models(models: ModelFacts, limits: Health, now_s: float) -> list[HealthFact]:
    """Return the health of the models: their age, and whether the last training was refused."""
    age = _judge_age(
        _Check(Fault.MODELS_OLD, EVERYWHERE, "does tidewise_train run? docs/runbook.md#when-a-stage-fails"),
        *("the training of the models in use", models.trained_at_s, now_s),
        most_h=limits.models_old_h,
    )
    is_refused = models.gate in {"failed", "kept"}
    verdict = f"the last training's verdict is {models.gate}" if models.gate else "no model was ever trained"
    detail = f"{verdict}: {models.gate_detail}" if is_refused and models.gate_detail else verdict
    gate = HealthFact(
        *(Fault.CHAMPION_REFUSED, EVERYWHERE, is_refused, float(is_refused), 0.0, "verdict", detail),
        "look at the training's run in MLflow: make ui",
    )
    largest = max((error for error in models.errors.values() if error is not None), default=None)
    named = name_large_errors(models.errors)
    off = HealthFact(
        *(Fault.MODELS_OFF, EVERYWHERE, bool(named), largest, LARGE_ERROR, "share"),
        named or "no error of the models in use is larger than what they predict",
        "plans go by it: look at the training's run in MLflow (make ui), or take models back: tidewise models",
    )
    return [age, gate, off]


_OF_OPERATION = frozenset({Fault.CONTROLLER_LATE, Fault.PLAN_OLD, Fault.METRICS_OLD, Fault.MODELS_OLD})


def leave_at_rest(health: Iterable[HealthFact]) -> list[HealthFact]:
    """Return the health of a lake whose settings name no cluster, as after ``make run``: nobody waits for what is new.

    What its last data, plans and models are worth is judged as ever.
    """
    return [replace(one, needs_person=False) if one.name in _OF_OPERATION else one for one in health]


def judge_jobs(jobs: Iterable[JobStatus], holds: Sequence[HoldFact], limits: Health, now_s: float) -> list[HealthFact]:
    """Return what of the jobs needs a person; jobs without it are not listed."""
    result: list[HealthFact] = []
    for job in jobs:
        scope = f"{job.cluster}/{job.job}"
        why = f"tidewise why {scope}"
        last = f"; last: {job.last_decision.reason}, {job.last_decision.detail}" if job.last_decision else ""
        result += _judge_help(job.last_decision, scope, limits, now_s)
        if job.refusals >= limits.refusals_max:
            detail = f"{job.refusals} decisions were refused within a day{last}"
            result.append(_count(_Check(Fault.STEPS_REFUSED, scope, why), job.refusals, limits.refusals_max, detail))
        if job.roll_backs >= limits.roll_backs_max:
            detail = f"taken back within a day: {format_count(job.roll_backs, 'step')}"
            result.append(
                _count(_Check(Fault.STEPS_ROLLED_BACK, scope, why), job.roll_backs, limits.roll_backs_max, detail)
            )
        for one in job.waiting:
            result.append(_count(_Check(Fault.WAITS_FOR_PERSON, scope, one.remedy), len(job.waiting), 0, one.detail))
    for hold in holds:
        if hold.kind == "change":
            until = f"{datetime.fromtimestamp(hold.until_s, UTC):%Y-%m-%d %H:%M}Z" if hold.until_s else "released"
            detail = f"{hold.reason}: left alone until {until}"
            result.append(_count(_Check(Fault.FOREIGN_CHANGE, hold.scope, f"who was it? {hold.release}"), 1, 0, detail))
    return result


def _judge_help(last: DecisionFact | None, scope: str, limits: Health, now_s: float) -> Iterable[HealthFact]:
    """Yield that a job is late or down for too long, and why nothing more is done for it.

    The controller says it again every few hours: a job of which it says nothing any more is gone.
    """
    if last is None or now_s - last.at_s > _STILL_THERE_S:
        return
    for fault, since_s, most_s in (
        (Fault.JOB_LATE, last.late_since_s, limits.job_late_s),
        (Fault.JOB_DOWN, last.down_since_s, limits.job_down_s),
    ):
        if since_s is not None and now_s - since_s > most_s:
            why = ": ".join(filter(None, (last.reason, last.detail)))
            detail = f"{fault.replace('_', ' ')} for {describe_age(now_s - since_s)}; controller: {last.verb}, {why}"
            remedy = f"tidewise why {scope}"
            yield HealthFact(fault, scope, True, now_s - since_s, most_s, "s", detail, remedy)


def judge_tables(lost: Sequence[UnreadableTable]) -> list[HealthFact]:
    """Return the tables that are lost, one fact each."""
    remedy = "put it back: tidewise restore, or run its stages again (docs/runbook.md)"
    figure = _Check(Fault.TABLE_LOST, EVERYWHERE, remedy)
    return [_count(figure, 1, 0, str(one)) for one in lost]


def judge_raw_folder(folder: str, is_there: bool) -> HealthFact:
    """Return whether the raw files can be reached."""
    detail = f"the raw files' folder {folder} is {'there' if is_there else 'not there'}"
    remedy = "is it mounted? paths.raw names it"
    return HealthFact(Fault.RAW_FOLDER_GONE, EVERYWHERE, not is_there, float(not is_there), 0.0, "gone", detail, remedy)


def judge_stages(states: Iterable[StageState], now_s: float) -> list[HealthFact]:
    """Return which tasks failed in their last run, or had nothing to do; what a person started counts for a day."""
    result = []
    for one in states:
        if one.at_s > now_s or (not one.is_scheduled and now_s - one.at_s > DAY_S):
            continue
        ago = f"{describe_age(now_s - one.at_s)} ago"
        if one.error:
            detail = f"{one.task} failed {ago}: {one.error}"
            remedy = "its log in Airflow; docs/runbook.md#when-a-stage-fails"
            fact = _count(_Check(Fault.STAGE_FAILING, EVERYWHERE, remedy), 1, 0, detail)
            result.append(replace(fact, subject=one.task))
        elif one.empty:
            detail = f"{one.task} ended well {ago}, and {' and '.join(one.empty)} had nothing to do"
            remedy = "does anything collect, and is paths.raw mounted? tidewise doctor"
            fact = _count(_Check(Fault.STAGE_EMPTY, EVERYWHERE, remedy), len(one.empty), 0, detail)
            result.append(replace(fact, subject=one.task))
        if one.lost:
            detail = f"{one.task}, {ago}: {'; '.join(one.lost)}"
            remedy = "put the files back, or let tidewise_train run: its models are promoted as ever; tidewise models"
            fact = _count(_Check(Fault.MODELS_LOST, EVERYWHERE, remedy), len(one.lost), 0, detail)
            result.append(replace(fact, subject=one.task))
    return result


def judge_disks(shares: Mapping[str, float], limits: Health) -> list[HealthFact]:
    """Return how full the disks are, from folder -> free share of its disk."""
    least = limits.disk_free_min
    return [
        HealthFact(
            *(Fault.DISK_FULL, EVERYWHERE, share < least, share, least, "share"),
            f"{share:.1%} of the disk of {folder} is free",
            "make room: tidewise maintain, [retention]",
            folder,
        )
        for folder, share in shares.items()
    ]


def _judge_controller(cluster: ClusterStatus, limits: Health, now_s: float) -> HealthFact | None:
    """Return whether a controller is at work; None where its lease, renewed long after that time, does not tell."""
    ticked_at_s, late_s = cluster.ticked_at_s, limits.controller_late_s
    if ticked_at_s is not None and ticked_at_s > now_s + late_s:
        return None
    age_s = None if ticked_at_s is None else max(now_s - ticked_at_s, 0.0)
    is_late = cluster.mode != "off" and (age_s is None or age_s > late_s or not cluster.controller)
    if age_s is None:
        detail = "no controller has ever worked on it"
    elif not cluster.controller:
        detail = f"the controller has ended {describe_age(age_s)} ago"
    else:
        detail = f"{cluster.controller} ticked {describe_age(age_s)} ago"
    remedy = "start it: tidewise control, its service, or the DAG tidewise_control"
    return HealthFact(Fault.CONTROLLER_LATE, cluster.cluster, is_late, age_s, late_s, "s", detail, remedy)


def _judge_age(figure: _Check, what: str, at_s: float | None, now_s: float, *, most_h: float) -> HealthFact:
    most_s = most_h * HOUR_S
    if not most_h:
        return HealthFact(figure.fault, figure.scope, False, None, None, "s", "not part of this set-up", "")
    if at_s is None:
        return HealthFact(figure.fault, figure.scope, True, None, most_s, "s", f"{what}: there is none", figure.remedy)
    age_s = max(now_s - at_s, 0.0)
    detail = f"{what} was {describe_age(age_s)} ago"
    return HealthFact(figure.fault, figure.scope, age_s > most_s, age_s, most_s, "s", detail, figure.remedy)


def _count(figure: _Check, value: int, threshold: int, detail: str) -> HealthFact:
    return HealthFact(figure.fault, figure.scope, True, float(value), float(threshold), "count", detail, figure.remedy)


def describe_age(age_s: float) -> str:
    """Return a span of time as a person says it.

    >>> describe_age(42.0), describe_age(4000.0), describe_age(600_000.0)
    ('42 s', '67 min', '6.9 days')
    """
    if age_s < 120:
        return f"{age_s:.0f} s"
    if age_s < 2 * HOUR_S:
        return f"{age_s / 60:.0f} min"
    return f"{age_s / HOUR_S:.1f} h" if age_s < 48 * HOUR_S else f"{age_s / 86_400:.1f} days"
