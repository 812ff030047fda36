"""Ratios of edges as training learns them from a job's windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spark_jobs.train.edge_ratios import EDGE_COLUMNS, fit_job_edges

GRAPH = [
    {"operator": "big", "upstream": ["route"]},
    {"operator": "route", "upstream": ["source"]},
    {"operator": "small", "upstream": ["route"]},
    {"operator": "source", "upstream": []},
]
RATES = {"source": (1000.0, 400.0), "route": (400.0, 400.0), "big": (360.0, 0.0), "small": (40.0, 0.0)}


def rows(graph: list[dict[str, object]] | None, windows: int = 3, **rates: tuple[float, float]) -> pd.DataFrame:
    starts = pd.date_range("2026-11-20", periods=windows, freq="5min")
    measured = [
        ("eu", "orders", None, name, start, factor * taken, factor * sent)
        for name, (taken, sent) in rates.items()
        for factor, start in enumerate(starts, 1)
    ]
    listed = [("eu", "orders", graph, None, None, None, None)]
    columns = ["cluster", "job", "graph", "operator", "window_start", "rate_per_s", "output_per_s"]
    return pd.DataFrame(listed + measured, columns=columns)


def ratios(found: pd.DataFrame) -> dict[tuple[str, str], float]:
    assert list(found.columns) == list(EDGE_COLUMNS)
    return {(row["upstream"], row["operator"]): row["ratio"] for _, row in found.iterrows()}


def test_side_outputs_and_a_filter_in_the_sources_chain() -> None:
    result = ratios(fit_job_edges(rows(GRAPH, **RATES)))
    assert result == {
        ("source", "route"): pytest.approx(0.4),
        ("route", "big"): pytest.approx(0.9),
        ("route", "small"): pytest.approx(0.1),
    }


def test_an_operator_that_came_later_is_measured_in_its_own_windows() -> None:
    whole = rows(GRAPH, **RATES)
    late = whole[(whole["operator"] != "small") | (whole["window_start"] > "2026-11-20 00:05")]
    assert ratios(fit_job_edges(late))["route", "small"] == pytest.approx(0.1)


def test_an_operator_that_was_never_measured_leaves_its_edge_unknown() -> None:
    known = {name: one for name, one in RATES.items() if name != "small"}
    result = ratios(fit_job_edges(rows(GRAPH, **known)))
    assert np.isnan(result["route", "small"])
    assert result["route", "big"] == pytest.approx(0.9)


@pytest.mark.parametrize("graph", [None, [{"operator": "a", "upstream": ["gone"]}]])
def test_a_job_without_a_graph_has_no_edges(graph: list[dict[str, object]] | None) -> None:
    assert fit_job_edges(rows(graph, **RATES)).empty
