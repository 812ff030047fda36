"""How worth is shown before anything is installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from include.policy_catalogue import WITHOUT_PLANS
from include.settings.names import JobKey
from include.settings.planner import JobGoals
from include.settings.section import Days, Section, Text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f'is no regular expression ({error}); write ".*" for all jobs, say') from error
    return text


class Advise(Section):
    """What `tidewise advise` compares, and in which money it shows savings."""

    price_per_slot_hour: float = Field(0.05, ge=0, le=1e6, description="money; what an hour of one slot costs")
    currency: Text = Field("USD", max_length=8, description="in which the price is given")
    days: Days = Field(7, description="last days of the history, which are appraised; models learn from those before")
    jobs: Annotated[Text, AfterValidator(_pattern)] = Field(
        ".*", description="regular expression; jobs whose `cluster/job` it matches from the beginning are appraised"
    )
    seeds: int = Field(2, ge=1, le=100, description="runs of each policy, with random downtimes and noise of their own")
    policies: tuple[Text, ...] = Field(
        ("programme", WITHOUT_PLANS, "flink_autoscaler", "flink_autoscaler_tuned"),
        min_length=1,
        description="policies that are appraised, beside what ran and the best constant; the first is Tidewise's",
    )
    frontier: bool = Field(
        True,
        description="named goals, and the operator's autoscaler over its headroom, are replayed as well, and shown on "
        "a job's page too: slot-hours against late minutes; it nearly doubles the time",
    )
    objectives: dict[JobKey, JobGoals] = Field(
        default_factory=dict,
        description='`[advise.objectives."cluster/job"]`: goals as in `[planner.jobs]`, of which is shown what they '
        "would cost a month; nothing is switched on",
    )
    shown: int = Field(50, ge=1, le=10_000, description="jobs with a section of their own on the page")


def find_empty_objective(objectives: Mapping[str, JobGoals]) -> str | None:
    """Return which objective asks for nothing that costs anything, in one line with what to write; None without any."""
    for job, goals in objectives.items():
        if goals.late_after_s is None and goals.recovery_within_s is None:
            return (
                f'advise.objectives."{job}" has neither late_after_s nor recovery_within_s, so there is nothing to '
                "price; write recovery_within_s = 300, say"
            )
    return None
