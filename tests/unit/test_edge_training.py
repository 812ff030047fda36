"""Ratios of edges as training learns them from a job's windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from include.settings import Training
from models.topology import Edge
from models.training.job_facts import EDGE_DAYS, learn_facts
from models.training.job_windows import KnownOperator, TrainingHistory, TrainingWindows

GRAPH = {"big": ("route",), "route": ("source",), "small": ("route",), "source": ()}
RATES = {"source": (1000.0, 400.0), "route": (400.0, 400.0), "big": (360.0, 0.0), "small": (40.0, 0.0)}
AS_OF_S = 1_780_000_000
ALL = Training(holdout_share=1e-9)

SOURCE, SINK = "Source: orders -> Filter", "Sink: out"


def ratios(
    graph: Mapping[str, Sequence[str]],
    windows: Sequence[Mapping[str, tuple[float, float]]],
    *,
    age_s: int = 0,
    idle: float | None = None,
) -> dict[Edge, float]:
    """Return the ratios after windows, each operator -> what it took and what it sent."""
    names = tuple(sorted({name for window in windows for name in window}))
    shape = (len(windows), len(names))
    taken, sent, at = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for row, window in enumerate(windows):
        for name, (took, gave) in window.items():
            place = (row, names.index(name))
            taken[place], sent[place], at[place] = took, gave, 1
    unknown = np.full(shape, np.nan)
    measured = TrainingWindows(
        names,
        AS_OF_S - age_s - 300 * np.arange(len(windows), 0, -1),
        np.full(len(windows), 300.0),
        at,
        rate_per_s=taken,
        output_per_s=sent,
        true_rate_per_s=unknown,
        busy=unknown,
        busy_most=unknown,
        held_up=np.zeros(shape),
        latency_ms=unknown,
        is_demand=np.ones(shape, bool),
        is_source=np.array([name == "source" for name in names]),
        idle_share=None if idle is None else np.full(shape, idle),
    )
    known = tuple(KnownOperator(name, tuple(upstream), None) for name, upstream in graph.items())
    return dict(learn_facts(TrainingHistory(("eu", "orders"), measured, known, 8), ALL, AS_OF_S).edges)


def scaled(factor: int, rates: Mapping[str, tuple[float, float]] = RATES) -> dict[str, tuple[float, float]]:
    return {name: (factor * taken, factor * sent) for name, (taken, sent) in rates.items()}


def test_side_outputs_and_a_filter_in_the_sources_chain() -> None:
    assert ratios(GRAPH, [scaled(factor) for factor in (1, 2, 3)]) == {
        ("source", "route"): pytest.approx(0.4),
        ("route", "big"): pytest.approx(0.9),
        ("route", "small"): pytest.approx(0.1),
    }


def test_what_fills_buffers_before_a_full_operator_went_over_its_edge() -> None:
    chain, filling = {"source": (), "slow": ("source",)}, [{"source": (700.0, 700.0), "slow": (500.0, 500.0)}] * 3
    assert ratios(chain, filling, idle=0.0)["source", "slow"] == pytest.approx(1.0)
    assert ratios(chain, filling, idle=0.5)["source", "slow"] == pytest.approx(5 / 7)


def test_an_operator_that_came_later_is_measured_in_its_own_windows() -> None:
    early = {name: one for name, one in scaled(1).items() if name != "small"}
    assert ratios(GRAPH, [early, scaled(2), scaled(3)])["route", "small"] == pytest.approx(0.1)


def test_an_operator_that_was_never_measured_leaves_its_edge_unknown() -> None:
    known = {name: one for name, one in RATES.items() if name != "small"}
    result = ratios(GRAPH, [scaled(factor, known) for factor in (1, 2)])
    assert np.isnan(result["route", "small"])
    assert result["route", "big"] == pytest.approx(0.9)


@pytest.mark.parametrize("graph", [{}, {"a": ("gone",)}])
def test_a_job_without_a_graph_has_no_edges(graph: dict[str, tuple[str, ...]]) -> None:
    assert ratios(graph, [RATES]) == {}


def test_what_a_job_did_long_ago_does_not_count() -> None:
    old = ratios(GRAPH, [RATES], age_s=EDGE_DAYS * 86_400 + 1)
    assert ("source", "route") not in old


@pytest.mark.parametrize(
    ("measured", "ratio"),
    [
        ([(100.0, 100.0), (120.0, 120.0), (1000.0, 100.0), (900.0, 90.0)], 0.1),  # two windows of the earlier release
        ([(1000.0, 100.0), (0.0, 0.0)], 0.1),
        ([(100.0, 100.0), (120.0, 120.0)], 1.0),  # it does send what it takes, as far as is known
    ],
)
def test_windows_of_an_earlier_release_do_not_blur_the_ratio_of_a_source(
    measured: list[tuple[float, float]], ratio: float
) -> None:
    windows = [{SOURCE: (taken, sent), SINK: (sent, 0.0)} for taken, sent in measured]
    assert ratios({SOURCE: (), SINK: (SOURCE,)}, windows) == {(SOURCE, SINK): pytest.approx(ratio)}
