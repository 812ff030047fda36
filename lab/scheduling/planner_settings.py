"""Constants of the policies ``planner`` and ``controller_alone``, beside the settings that the product has.

Their published costs are with these values; replays of ablations and searches change single ones.
"""

from __future__ import annotations

from include.settings import Costs, Planner, Timing
from include.settings.section import Section


class PlannerCosts(Costs):
    """What the planner weighs besides prices.

    Attributes:
        rescale_margin: a planned rescale saves so many times its cost.
        failure_margin: lateness after a failure counts so many times.
        recovery_quantile: quantile of the load while a job recovers.
        overload_tolerance: share by which load may exceed capacity.
        overload_late_share: late share of an hour with overload.
        overload_slots_share: share of all slots added to end an overload.
    """

    rescale_margin: float = 3.0
    failure_margin: float = 2.0
    recovery_quantile: float = 0.5
    overload_tolerance: float = 0.0
    overload_late_share: float = 0.06
    overload_slots_share: float = 0.3


class PlannerTiming(Timing):
    """How far ahead a rise is sent.

    Attributes:
        lead_margin_s: added to the lead time.
        max_lead_s: a scale-up is sent at most so much ahead.
    """

    lead_margin_s: float = 60.0
    max_lead_s: int = 1800


class ReactiveSettings(Section):
    """The reactive controller: what it does from what is measured between two plans.

    Attributes:
        utilisation_max: utilisation above which a planned job is scaled up, if records wait as well.
        lag_s: records that wait for longer than this count as waiting.
        overload: utilisation above which a planned job is scaled up without waiting for lag.
        hold_s: after a scale-up of a planned job no scale-down is sent for so long.
        utilisation_target: utilisation that the scale-up of a planned job aims at.
        rescales_for_catch_up: scale a job up for as long as it works off a backlog, if that is cheaper.
        rescales_while_restarting: the same already while the job restarts after a failure.
        unplanned_utilisation_target: utilisation that a rescale of a job without a plan aims at.
        unplanned_utilisation_max: utilisation above which a job without a plan is scaled up.
        scale_down_margin: a job without a plan is scaled down once that had saved so many x two rescales, lateness
            included.
    """

    utilisation_max: float = 1.05
    lag_s: float = 15.0
    overload: float = 1.1
    hold_s: int = 0
    utilisation_target: float = 0.9
    rescales_for_catch_up: bool = True
    rescales_while_restarting: bool = True
    unplanned_utilisation_target: float = 0.85
    unplanned_utilisation_max: float = 0.95
    scale_down_margin: float = 1.0


class PlannerSettings(Planner):
    """Settings of the planner, and what is constant under its policies.

    Attributes:
        load_quantile: of the load that a plan covers.
        costs, timing: with what these policies add.
        reactive: when a job leaves its plan.
    """

    load_quantile: float = 0.9
    costs: PlannerCosts = PlannerCosts()
    timing: PlannerTiming = PlannerTiming()
    reactive: ReactiveSettings = ReactiveSettings()

    @classmethod
    def of(cls, options: Planner) -> PlannerSettings:
        """Return the settings of a job with the constants; as they are where they have them.

        >>> PlannerSettings.of(Planner(horizon_h=12)).with_values({"costs.rescale_margin": 1.0}).horizon_h
        12
        """
        if isinstance(options, PlannerSettings):
            return options
        costs = PlannerCosts.model_construct(**dict(options.costs))
        timing = PlannerTiming.model_construct(**dict(options.timing))
        return cls.model_construct(**{**dict(options), "costs": costs, "timing": timing})
