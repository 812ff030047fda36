"""A situation refuses what no policy can work with when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations
from models.policies.situations import assume_untrained, build_live_situation
from models.scheduling.demand import LEVELS, SourceForecast
from models.scheduling.slot_prices import SlotPrices

GRAPH = JobGraph((Operator("source"), Operator("map", ("source",))))


def windows(operators: int = 2, **changes: float) -> Observations:
    shape = (1, operators)
    measures = {name: np.full(shape, changes.get(name, np.nan)) for name in MEASURES}
    return Observations(np.array([0]), 300, np.ones(shape, np.int64), disturbed=np.zeros(1, bool), **measures)


GOOD = {
    "as_of_s": 600,
    "graph": GRAPH,
    "parallelism": {"source": 1, "map": 2},
    "models": assume_untrained(GRAPH, Observations.nothing(2)),
    "forecast": SourceForecast(600, 600, {"source": np.full((len(LEVELS), 1), 100.0)}),
    "slots_max": 8,
    "options": Planner(),
    "observations": windows(processing_rate_per_s=100.0),
}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"as_of_s": -1}, "as_of_s = -1 must be at least 0"),
        ({"slots_max": 0}, "slots_max = 0 must be at least 1"),
        ({"seed": -3}, "seed = -3"),
        ({"parallelism": {"source": 1}}, "parallelism: of map nothing is given"),
        ({"parallelism": {"source": 1, "map": 1, "gone": 1}}, "gone is no operator of the job"),
        ({"parallelism": {"source": 0, "map": 1}}, "must be at least 1"),
        ({"parallelism": {"source": float("nan"), "map": 1}}, "must be at least 1"),
        ({"observations": windows(3)}, "of 3 operators, the job has 2"),
        ({"observations": windows(processing_rate_per_s=-1.0)}, "processing_rate_per_s is negative"),
        ({"observations": windows(busy_share=-0.1)}, "busy_share is negative"),
        ({"slot_prices": SlotPrices(np.array([-1.0]), np.zeros(1), 0.0)}, "slot_prices"),
        ({"slot_prices": SlotPrices(np.zeros(0), np.zeros(1), 0.0)}, "slot_prices"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make_situation(**{**GOOD, **changes})


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"slots_max = 0.*; seed = -1"):
        make_situation(**{**GOOD, "slots_max": 0, "seed": -1})


def test_what_was_not_measured_and_no_windows_at_all_are_allowed() -> None:
    assert len(make_situation(**{**GOOD, "observations": Observations.nothing()}).observations) == 0
    assert np.isnan(make_situation(**{**GOOD, "observations": windows()}).observations.busy_share).all()


def test_a_live_situation_needs_a_window() -> None:
    with pytest.raises(ValueError, match="there is no window"):
        build_live_situation(Snapshot(600, GRAPH, {"source": 1, "map": 2}, True, Observations.nothing(2), 8, Planner()))
