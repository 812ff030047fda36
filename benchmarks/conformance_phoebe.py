"""Logged decisions of Phoebe's prototype: candidates in, decision out."""

from __future__ import annotations

from typing import Any

from benchmarks.conformance_cases import Json, Outcome, attempt, differences, number
from models.policies.phoebe.rule import Candidate, Decision, logged_rule

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
    found = logged_rule(candidates(case), int(case["current"]))
    return as_logged(found)


def as_logged(decision: Decision) -> dict[str, Any]:
    """Return a decision in the words of the log."""
    return {
        "valid_rec": list(decision.valid_recovery),
        "valid_both": list(decision.valid),
        "first_valid": decision.valid[0] if decision.valid else None,
        "decision": decision.scale_out,
    }


def candidates(case: Json) -> dict[int, Candidate]:
    """Return the candidates of a logged step.

    The log gives no latency classes, only which scale-outs pass both tests: those are normal.  A scale-out that does
    not recover in time is left out of the decision whatever its class.
    """
    normal = set(case["valid_both"])
    latency = case["latency"]
    return {
        int(scale_out): Candidate(
            scale_out=int(scale_out),
            recovery_s=number(recovery_s),
            latency_ms=number(latency[scale_out]),
            latency_class=0 if int(scale_out) in normal else 1,
        )
        for scale_out, recovery_s in case["rec_time"].items()
    }
