"""Section 5.6: what watching and deciding costs.

DS2 instruments the engine, which the paper charges to the job's latency (Fig. 10).  Here nothing in the job is changed:
Flink's own counters are read over REST.  What remains is processor time beside the job, as a share of the interval.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2.ds2_published import AS_PUBLISHED
from benchmarks.papers.ds2.nexmark import QUERIES, job, source_rates
from benchmarks.papers.seen import nothing_learnt, situation_after
from benchmarks.pipeline.live_windows import poll_lines, read_and_time
from include.flink.raw_format import write_lines
from lab.policies.ds2.ds2_policy import Ds2
from lab.simulation.testbed import Testbed

INTERVAL_S = 10.0  # the shortest in the paper, hence the largest overhead
JOBS = 20
DECISIONS = 20
_WIDTH = 3


def cells() -> list[Cell]:
    """Return the shares; they are measured anew by each run, on whatever else the machine does."""
    watching, deciding = _watching_s() / INTERVAL_S, _deciding_s() / INTERVAL_S
    return [
        Cell("ds2", "Fig. 10", "beside the job", f"processor time of {part}, per job / interval", share, None, "share")
        for part, share in (("reading its metrics", watching), ("a decision", deciding))
    ]


def _watching_s() -> float:
    """Return the processor time in which the replies of one job's poll become what a policy sees."""
    with TemporaryDirectory() as folder:
        for poll, lines in enumerate(poll_lines(JOBS)):
            write_lines(Path(folder) / f"poll-{poll:02}.jsonl.gz", lines)
        return read_and_time(Path(folder))["cpu_s"] / JOBS


def _deciding_s() -> float:
    """Return the processor time of one decision, mean over the six queries."""
    specs = [job(query, query) for query in QUERIES]
    rates = np.stack([source_rates(query, _WIDTH) for query in QUERIES])
    window = Testbed(specs, np.ones((len(specs), _WIDTH), np.int64), has_buffers=False).run(rates, INTERVAL_S)
    policy, seconds = Ds2(AS_PUBLISHED), 0.0
    for row, spec in enumerate(specs):
        situation = situation_after(
            spec, window, row, rates[row], at_s=round(INTERVAL_S), models=nothing_learnt(spec), slots_max=spec.slots_max
        )
        began = time.process_time()
        for _ in range(DECISIONS):
            policy.decide(situation, policy.first_memory())
        seconds += time.process_time() - began
    return seconds / (DECISIONS * len(specs))
