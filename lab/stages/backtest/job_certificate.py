"""The certificate of one job as Spark runs it: a row of what ran in, a row of figures out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.broadcast import Broadcast

from include.settings import Settings
from lab.advice.certificate import Certificate, certify
from lab.stages.inputs.subjects import build_subject
from lab.stages.inputs.what_ran import Followed, build_history
from models.bundle.fleet_bundle import FleetBundle

log = logging.getLogger(__name__)
ROW_SCHEMA = (
    "cluster STRING, job STRING, days DOUBLE, measured_share DOUBLE, cost DOUBLE, least DOUBLE, least_low DOUBLE, "
    "least_high DOUBLE, ratio DOUBLE, ratio_low DOUBLE, ratio_high DOUBLE, regret DOUBLE, slot_hours DOUBLE, "
    "late_minutes DOUBLE, rescales DOUBLE, best_slot_hours DOUBLE, best_late_minutes DOUBLE, best_rescales DOUBLE, "
    "reason STRING, skipped STRING"
)
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.split(", ")]
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class CertificateTask:
    """Common inputs of every job's certificate; shipped to the executors once.

    Attributes:
        settings: of the run.
        first_bin_s, bins: of the load's history.
        followed: bins in which what ran is followed.
        bundle: models of the fleet.
    """

    settings: Settings
    first_bin_s: int
    bins: int
    followed: Followed
    bundle: Broadcast[FleetBundle]


def make_certifier(task: CertificateTask) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the inputs of each job."""

    def run(jobs: pd.DataFrame) -> pd.DataFrame:
        rows = [certify_job(task, state) for state in jobs.to_dict("records")]
        return pd.DataFrame(rows, columns=COLUMNS, dtype=object)

    return run


def certify_job(task: CertificateTask, state: dict[Any, Any]) -> dict[str, object]:
    """Return the row of a job, or why it has no certificate."""
    key = {"cluster": state["cluster"], "job": state["job"]}
    try:
        subject = build_subject(task.settings, task.bundle.value, task.first_bin_s, task.bins, state)
        paid = task.settings.taskmanager_slots.get(subject.cluster, 1)
        made = certify(subject, build_history(subject.graph, task.followed, state, paid), task.settings)
    except ValueError as error:  # too little is known of it: the message says what
        return key | {"skipped": str(error)[:_LONGEST]}
    except Exception as error:  # one job must not keep the others from theirs
        log.exception("certificate of %s/%s", *key.values())
        return key | {"skipped": repr(error)[:_LONGEST]}
    return key | _list_figures(made)


def _list_figures(made: Certificate) -> dict[str, object]:
    names = ("measured_share", "least", "least_low", "least_high", "ratio", "ratio_low", "ratio_high", "regret")
    parts = ("slot_hours", "late_minutes", "rescales")
    return {
        "days": float(made.days),
        "cost": made.ran.cost,
        **{name: getattr(made, name) for name in names},
        **{name: getattr(made.ran, name) for name in parts},
        **{f"best_{name}": getattr(made.best, name) for name in parts},
        "reason": made.reason or None,
    }
