"""Logged decisions of Phoebe's prototype: candidates in, decision out."""

from __future__ import annotations

import csv
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.conformance.cases import Json, Outcome, attempt, differences, number
from include.settings import PROJECT
from lab.policies.phoebe.capacity_profile import LatencyClasses
from lab.policies.phoebe.rule import Candidate, ScaleOutDecision, logged_rule

_CHECKED = ("valid_rec", "valid_both", "first_valid", "decision")


def check(case: Json) -> Outcome:
    """Run one logged optimisation step."""
    expected = {key: case[key] for key in _CHECKED if key in case}
    name = " ".join(str(case.get(part, "?")) for part in ("exp", "run", "ts"))
    got = attempt(_run, case)
    if "error" in got or "decision" not in expected:
        return Outcome(name, expected, got, ("error" if "error" in got else "decision",))
    return Outcome(name, expected, got, tuple(differences(expected, got)))


def _run(case: Json) -> dict[str, Any]:
    result = logged_rule(candidates(case), int(case["current"]))
    return as_logged(result)


def as_logged(decision: ScaleOutDecision) -> dict[str, Any]:
    """Return a decision in the words of the log."""
    return {
        "valid_rec": list(decision.valid_recovery),
        "valid_both": list(decision.valid),
        "first_valid": decision.valid[0] if decision.valid else None,
        "decision": decision.scale_out,
    }


def candidates(case: Json) -> dict[int, Candidate]:
    """Return the candidates of a logged step.

    The log gives predicted latencies and not their classes.  These come from the clusters of the one published profile
    (Section III-D), never from the decision that is to be found.
    """
    latency_ms = np.array([number(case["latency"][scale_out]) for scale_out in case["rec_time"]])
    kinds = np.where(np.isfinite(latency_ms), latency_classes().classify(np.nan_to_num(latency_ms)), 1)
    return {
        int(scale_out): Candidate(int(scale_out), number(recovery_s), float(latency), int(kind))
        for (scale_out, recovery_s), latency, kind in zip(case["rec_time"].items(), latency_ms, kinds, strict=True)
    }


@lru_cache(maxsize=1)
def latency_classes() -> LatencyClasses:
    """Return the clusters of the latencies that the published profiling phase measured without a backlog."""
    with (PROJECT / "data" / "cases" / "phoebe_profile_cars.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["isBckPres"] == "0"]
    return LatencyClasses.fit([float(row["avgLat"]) for row in rows])
