"""Phase 3 of Phoebe, Section III-E: what to expect of every scale-out, and which one to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lab.policies.phoebe.phoebe_options import RECOVERY_TARGET_S, Rule
from lab.policies.phoebe.recovery_time import projected_load, recovery_s
from lab.policies.phoebe.rule import Candidate, algorithm_1, logged_rule
from models.arrays import Floats, Ints


class ScaleOutModels(Protocol):
    """Models of a job over its scale-out."""

    def capacity_per_s(self, scale_outs: Sequence[int]) -> Floats:
        """Return (n,) T_max, records/s."""
        ...

    def latency(self, scale_outs: Sequence[int], load_per_s: float) -> tuple[Floats, Ints]:
        """Return (n,) latencies in ms and (n,) classes, 0 normal and 1 abnormal, at one load."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """f of Section III-B.

    Attributes:
        per_s: (T,) history and forecast, one value per second, records/s.
        now: index of the present.
    """

    per_s: Floats
    now: int

    @property
    def forecast_per_s(self) -> Floats:
        """The part that lies ahead."""
        return self.per_s[self.now :]


@dataclass(frozen=True, slots=True)
class ScaleOutChoice:
    """The scale-out to run and what was expected of all.

    Attributes:
        scale_out: to run.
        projected_per_s: load that latencies were predicted for, records/s.
        candidates: scale-out -> predictions.
    """

    scale_out: int
    projected_per_s: float
    candidates: Mapping[int, Candidate]


def evaluate_scale_outs(
    models: ScaleOutModels,
    load: Load,
    scale_outs: Sequence[int],
    *,
    downtime_s: float,
    checkpoint_interval_s: float,
    bins: int = 5,
) -> tuple[dict[int, Candidate], float]:
    """Return the predictions of M_R and M_L per scale-out, and the projected load.

    Args:
        models: of the job.
        load: history and forecast.
        scale_outs: to evaluate.
        downtime_s: D.
        checkpoint_interval_s: I; as in the paper a failure is expected just before the next checkpoint.
        bins: averaging bins of the forecast.
    """
    projected = projected_load(load.forecast_per_s, bins)
    latency, classes = models.latency(scale_outs, projected)
    result = {}
    for scale_out, capacity, latency_ms, kind in zip(
        scale_outs, models.capacity_per_s(scale_outs), latency, classes, strict=True
    ):
        expected_s = recovery_s(
            load.per_s,
            load.now,
            capacity_per_s=float(capacity),
            downtime_s=downtime_s,
            since_checkpoint_s=checkpoint_interval_s,
        )
        result[scale_out] = Candidate(scale_out, expected_s, float(latency_ms), int(kind))
    return result, projected


def choose_scale_out(
    candidates: Mapping[int, Candidate],
    projected_per_s: float,
    current: int,
    *,
    rule: Rule = "logged",
    target_s: float = RECOVERY_TARGET_S,
) -> ScaleOutChoice:
    """Return the choice by Algorithm 1 of the paper or by the rule that the prototype's logs follow.

    Raises:
        ValueError: no candidates.
    """
    if rule == "algorithm 1":
        chosen = algorithm_1(candidates, target_s=target_s)
    else:
        chosen = logged_rule(candidates, current, target_s=target_s).scale_out
    return ScaleOutChoice(chosen, projected_per_s, candidates)


def reason(choice: ScaleOutChoice, current: int, target_s: float = RECOVERY_TARGET_S) -> str:
    """Return one sentence on why."""
    candidate = choice.candidates.get(choice.scale_out)
    recovery = candidate.recovery_s if candidate is not None else math.nan
    verb = "keeps" if choice.scale_out == current else "runs on"
    within = "within" if np.isfinite(recovery) and recovery <= target_s else "against"
    expected = f"{recovery:.0f} s" if np.isfinite(recovery) else "no known time"
    return (
        f"the job {verb} {choice.scale_out} workers: a failure would take {expected} to recover from, {within} the "
        f"target of {target_s:.0f} s, at up to {choice.projected_per_s:,.0f} records/s"
    )
