"""What a replay will take, in CPU hours, before it begins."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.replay.replay_candidates import BOUND

# CPU seconds that a candidate takes for a day of the trace, roughly; the largest jobs take twice as long.
_CPU_S = {
    "rl_decentralised": 8.0,
    "dragster_gradient": 4.0,
    "conttune_a3": 3.0,
    "conttune_a0": 3.0,
    "programme": 4.0,
    BOUND: 2.8,
    "planner": 2.5,
    "controller_alone": 2.5,
    "dragster_saddle": 2.5,
    "rl": 2.0,
    "rl_plus": 2.0,
    "mdp": 1.5,
    "daedalus": 0.5,
    "optscaler": 0.45,
}
_OTHER_S = 0.8


def estimate_cpu_s(policy: str) -> float:
    """Return the CPU seconds of a candidate for a day, in its own or another form, or without a part."""
    name = policy.removesuffix("_best")
    base = "planner" if name.startswith("planner_") else name
    return _CPU_S.get(base, _OTHER_S)


def describe_estimate(policies: Sequence[str], seeds: int, days: float) -> str:
    """Return the estimate of a run as a sentence.

    Args:
        policies: candidates.
        seeds: of each.
        days: of all traces together, once for each job and scenario.
    """
    hours = sum(map(estimate_cpu_s, policies)) * seeds * days / 3600.0
    runs = f"{len(policies)} candidates x {seeds} seeds x {days:.1f} days"
    return f"estimated: {hours:.2f} CPU hours, twice that for jobs of many operators ({runs})"
