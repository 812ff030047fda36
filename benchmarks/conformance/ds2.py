"""Cases of DS2's policy: rates in, parallelism out."""

from __future__ import annotations

from typing import Any

from benchmarks.conformance.cases import CaseError, Json, Outcome, attempt, number
from include.domain.graph import JobGraph, Operator
from lab.policies.ds2.optimum import OperatorRates, optimum

_WHOLE_TOLERANCE = 1e-4
_LEAST_RELATIVE = 1e-9


def check(case: Json) -> Outcome:
    """Run one case: parallelism exactly, unrounded parallelism and target rates to the digits that the case gives."""
    expected = {key: case[key] for key in ("expected", "raw", "target_rate", "workers") if case.get(key) is not None}
    name = str(case.get("name", "(no name)"))
    got = attempt(_run, case)
    if "error" in got:
        return Outcome(name, expected, got, ("error",))
    if "expected" not in expected:
        return Outcome(name, expected, got, ("expected",))
    differing = [
        f"expected.{one}" for one, wanted in expected["expected"].items() if got["expected"].get(one) != wanted
    ]
    for key in ("raw", "target_rate"):
        result: dict[str, float] = got[key]
        given = expected.get(key, {})
        differing += [f"{key}.{one}" for one, wanted in given.items() if not _close(wanted, result.get(one))]
    if "workers" in expected and not _close(expected["workers"], got["workers"]):
        differing.append("workers")
    return Outcome(name, expected, got, tuple(differing))


def _run(case: Json) -> dict[str, Any]:
    rates = {
        name: OperatorRates(int(one["p"]), number(one["tproc"]), number(one["tout"]))
        for name, one in case["ops"].items()
    }
    upstream: dict[str, list[str]] = {name: [] for name in rates}
    for one, other in case["edges"]:
        if other not in upstream or one not in upstream:
            raise CaseError(f"the edge {one!r} -> {other!r} joins no two operators of the case")
        upstream[other].append(one)
    graph = JobGraph.from_operators([Operator(name, tuple(feeding)) for name, feeding in upstream.items()])
    result = optimum(graph, rates, scaling_factor=number(case.get("factor", 0.0)))
    return {
        "expected": dict(result.parallelism),
        "raw": dict(result.raw),
        "target_rate": dict(result.target_per_s),
        "workers": result.timely_workers_raw,
    }


def _close(wanted: object, result: float | None) -> bool:
    """Return whether a value is the given one, to half a unit of its last digit."""
    if result is None or not isinstance(wanted, (int, float)):
        return False
    digits = repr(float(wanted))
    decimals = 0 if digits.endswith(".0") or "e" in digits else len(digits.partition(".")[2])
    tolerance = 0.51 * 10.0**-decimals if decimals else _WHOLE_TOLERANCE
    return abs(result - wanted) <= max(tolerance, _LEAST_RELATIVE * abs(wanted))
