"""Settings of DS2's scaling manager and what it remembers between policy intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.policies.ds2.adjust import Aggregation


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Settings; the defaults are those of DS2's own ``ds2.toml`` where it has one.

    Attributes:
        policy_interval_s: metrics window, and time between two calls of the policy.
        warm_up_intervals: ignored after a reconfiguration.
        activation_intervals: decisions considered before one is applied.
        aggregation: how they become one; ``median`` for operators that work in bursts, such as windows.
        target_rate_ratio: target / achieved source rate above which resources grow by that ratio; infinite: off.
        scaling_factor: headroom, 0.2 for 20% more than needed.
        minor_up, minor_down: instances more or less that are not worth a reconfiguration.
        degradation: relative loss of the achieved share of the target rate that rolls a reconfiguration back.
        min_improvement: relative gain of that share below which a reconfiguration counts as fruitless.
        max_fruitless: consecutive fruitless reconfigurations after which no more are made; 0: no limit.
        target_change: relative change of the target rate that lets the manager start afresh.
        shared_workers: the execution model of Timely: every worker runs every operator, so all of them get the rounded
            sum of the unrounded parallelisms.
    """

    policy_interval_s: float = 60.0
    warm_up_intervals: int = 0
    activation_intervals: int = 1
    aggregation: Aggregation = Aggregation.LAST
    target_rate_ratio: float = math.inf
    scaling_factor: float = 0.0
    minor_up: int = 0
    minor_down: int = 1
    degradation: float = 0.1
    min_improvement: float = 0.02
    max_fruitless: int = 3
    target_change: float = 0.05
    shared_workers: bool = False

    def __post_init__(self) -> None:
        if not self.policy_interval_s > 0 or self.warm_up_intervals < 0 or self.activation_intervals < 1:
            raise ValueError(
                "policy_interval_s must be positive, warm_up_intervals 0 and activation_intervals 1 or more"
            )
        if not self.target_rate_ratio >= 1 or not self.scaling_factor >= 0:
            raise ValueError("target_rate_ratio must be 1 or more, scaling_factor 0 or more")


@dataclass(frozen=True, slots=True)
class Action:
    """A reconfiguration whose effect is not judged yet.

    Attributes:
        before: operator -> instances before it.
        after: operator -> instances that it requested.
        achieved_share: achieved / target rate before it; None when there was no target.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    achieved_share: float | None


@dataclass(frozen=True, slots=True)
class ManagerState:
    """Memory of one job.

    Attributes:
        last_call_s: end of the last policy interval used; None before the first.
        intervals: since the last reconfiguration.
        decisions: those of the intervals after warm-up, oldest first, no more than the activation needs.
        action: the last reconfiguration, until judged.
        rejected: configurations that were rolled back for the present target rate.
        fruitless: consecutive reconfigurations that improved almost nothing.
        target_per_s: sum of the sources' target rates for which ``rejected`` and ``fruitless`` hold.
        reconfigurations: made so far, roll-backs included.
    """

    last_call_s: float | None = None
    intervals: int = 0
    decisions: tuple[Mapping[str, int], ...] = ()
    action: Action | None = None
    rejected: tuple[Mapping[str, int], ...] = ()
    fruitless: int = 0
    target_per_s: float | None = None
    reconfigurations: int = 0
