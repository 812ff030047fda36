"""How worth is shown before anything is installed."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from include.settings.section import Days, Section, Text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f'is no regular expression ({error}); write ".*" for all jobs, say') from error
    return text


class Advise(Section):
    """What `make advise` compares, and in which money it shows savings."""

    price_per_slot_hour: float = Field(0.05, ge=0, le=1e6, description="money; what an hour of one slot costs")
    currency: Text = Field("USD", max_length=8, description="in which the price is given")
    days: Days = Field(7, description="last days of the history, which are appraised; models learn from those before")
    jobs: Annotated[Text, AfterValidator(_pattern)] = Field(
        ".*", description="regular expression; jobs whose `cluster/job` it matches from the beginning are appraised"
    )
    seeds: int = Field(2, ge=1, le=100, description="runs of each policy, with random downtimes and noise of their own")
    policies: tuple[Text, ...] = Field(
        ("programme", "planner", "controller_alone", "flink_autoscaler", "flink_autoscaler_tuned"),
        min_length=1,
        description="policies that are appraised, beside what ran and the best constant; the first is Tidewise's",
    )
    shown: int = Field(50, ge=1, le=10_000, description="jobs with a section of their own on the page")
