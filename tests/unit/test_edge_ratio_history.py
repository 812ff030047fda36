"""Edge ratios from windows of two releases: the earlier one had what a source sent in the place of what it took."""

from __future__ import annotations

import pandas as pd
import pytest

from spark_jobs.train.edge_ratios import fit_job_edges

SOURCE, SINK = "Source: orders -> Filter", "Sink: out"


def windows(*measured: tuple[float, float]) -> pd.DataFrame:
    """Return the rows of a job whose source took and sent so many records/s in each window, with its graph."""
    rows = [
        {"operator": name, "window_start": 300 * number, "rate_per_s": took, "output_per_s": gave}
        for number, (taken, sent) in enumerate(measured)
        for name, took, gave in ((SOURCE, taken, sent), (SINK, sent, 0.0))
    ]
    graph = [{"operator": SOURCE, "upstream": []}, {"operator": SINK, "upstream": [SOURCE]}]
    made = pd.DataFrame([*rows, {"graph": graph}]).assign(cluster="c", job="orders")
    return made.astype({"graph": object})


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
    (edge,) = fit_job_edges(windows(*measured)).to_dict("records")
    assert (edge["upstream"], edge["operator"]) == (SOURCE, SINK)
    assert edge["ratio"] == pytest.approx(ratio)
