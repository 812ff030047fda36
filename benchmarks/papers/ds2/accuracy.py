"""Section 5.5, Fig. 8: source rate and latency of each query with the parallelism that DS2 indicates, and around it.

The text has the claims, not the plotted figures: the indicated parallelism is the lowest that keeps up, with less there
is backpressure, and more "does not significantly improve latency".
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2.convergence import Runs
from benchmarks.papers.ds2.nexmark import QUERIES, SLOTS, job, source_rates
from lab.simulation.testbed import Testbed, TestbedWindow

START = 12  # the text's example; any start ends within an instance of the same parallelism (Table 4)
DURATION_S = 300.0
# Of the paper's configurations only these can be named without its plot.
AROUND = {"one instance less": -1, "as indicated": 0, "one instance more": 1}
_WIDTH = 3


def cells(indicated: Runs) -> list[Cell]:
    """Return the figures of six queries.

    Args:
        indicated: runs of DS2 without ignoring any change.
    """
    ends = {query: indicated[query, START].path[-1] for query in QUERIES}
    keys = [(query, around) for query in QUERIES for around in AROUND]
    specs = [job(query, f"{query} {around}") for query, around in keys]
    at = np.ones((len(keys), _WIDTH), np.int64)
    for place, ((query, around), spec) in enumerate(zip(keys, specs, strict=True)):
        at[place, len(spec.operators) - 1] = np.clip(ends[query] + AROUND[around], 1, SLOTS)
    rates = np.stack([source_rates(query, _WIDTH) for query, _ in keys])
    bed = Testbed(specs, at, has_buffers=False)
    for _ in range(round(DURATION_S / 30.0)):
        window = bed.run(rates, 30.0)
    result = []
    for query in QUERIES:
        row = {around: keys.index((query, around)) for around in AROUND}
        source = int(rates[row["as indicated"]].argmax())  # the higher-rate source, as in the figure
        latency = {around: float(window.latency_ms[place, source]) for around, place in row.items()}
        share = {around: _emitted_share(window, place, source) for around, place in row.items()}
        less = share["one instance less"]
        figures: list[tuple[str, float, float | None, str]] = [
            ("source rate / target, as indicated", share["as indicated"], 1.0, "share"),
            ("held back with one instance less", float(less < 1.0 - 1e-6), 1.0, "1: yes"),
            ("source rate / target, one instance less", less, None, "share"),
            (
                "latency, one instance more / as indicated",
                latency["one instance more"] / latency["as indicated"],
                1.0,
                "ratio",
            ),
            ("latency, as indicated", latency["as indicated"], None, "ms"),
        ]
        result += [Cell("ds2", "Fig. 8", query, *figure) for figure in figures]
    return result


def _emitted_share(window: TestbedWindow, job_row: int, source: int) -> float:
    """Return what a source emitted of what arrived there."""
    return float(window.in_per_s[job_row, source] / window.target_per_s[job_row, source])
