"""Section 5.5 on Timely: one number of workers for the whole job, found from any start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2.drive import Driver
from benchmarks.papers.ds2.ds2_published import AS_PUBLISHED, PUBLISHED
from lab.policies.ds2.ds2_policy import Ds2
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed

INTERVAL_S = 30.0
# The paper shows what DS2 indicates, so one worker less counts too.
OPTIONS = replace(AS_PUBLISHED, shared_workers=True, warm_up_intervals=1, minor_down=0)
_INTERVALS = 12
SLOTS = 16
STARTS = range(1, 9)
EPOCH_S = 1.0
# No costs are published for Timely.  Calibrated: "p = 4 is enough and 3 is not" leaves 3 to 4 workers' worth of work,
# of which this is the middle.  So the figure shows that every start ends at the same workers, not what a query costs.
WORK = 3.5
# Shares of the work of a query's main operator and of its output; any split gives the same sum.
SHARES = {"main": 0.9, "output": 0.1}
# Q5's late epochs are bursts of its window, which this model of steady rates does not have.
LATE_EPOCHS: dict[str, float | None] = {"Q3": None, "Q5": 0.18, "Q11": None}
EPOCHS = 60


def job(query: str, name: str) -> JobSpec:
    """Return a query whose operators together keep ``WORK`` workers busy at its rates of Table 3."""
    rates = PUBLISHED["timely_rates_per_s"][query]
    total = sum(rates.values())
    sources = [OperatorSpec(source, (), 100 * rate, 0.0) for source, rate in rates.items()]
    main = OperatorSpec("main", tuple(rates), total / (WORK * SHARES["main"]), 0.0)
    output = OperatorSpec("output", ("main",), total / (WORK * SHARES["output"]), 0.0, selectivity=0.0)
    return JobSpec(name, (*sources, main, output), slots_max=SLOTS)


def final_workers(query: str) -> list[int]:
    """Return the workers at which DS2 ends from each start."""
    specs = [job(query, f"{query}-{start}") for start in STARTS]
    rates = list(PUBLISHED["timely_rates_per_s"][query].values())
    width = len(specs[0].operators)
    driver = Driver(
        specs,
        np.repeat(np.array(STARTS)[:, None], width, axis=1),
        Ds2(OPTIONS),
        window_s=INTERVAL_S,
        redeploy_s=(INTERVAL_S,),
        step_s=INTERVAL_S,
    )
    at_sources = np.tile(np.pad(np.array(rates, float), (0, width - len(rates))), (len(specs), 1))
    for _ in range(_INTERVALS):
        driver.interval(at_sources)
    return [driver.parallelism(row)[0] for row in range(len(specs))]


def late_share(query: str, workers: int) -> float:
    """Return the share of one-second epochs of a minute that a number of workers cannot process within a second.

    A worker runs every operator in turn, so that the job is one operator of the rate that all of them leave it.
    """
    total = sum(PUBLISHED["timely_rates_per_s"][query].values())
    fused = JobSpec(
        query,
        (
            OperatorSpec("input", (), 100 * total, 0.0),
            OperatorSpec("worker", ("input",), total / WORK, 0.0, selectivity=0.0),
        ),
        slots_max=SLOTS,
    )
    testbed = Testbed([fused], np.array([[workers, workers]]), has_buffers=False)
    rates = np.array([[total, 0.0]])
    epochs = [testbed.run(rates, EPOCH_S) for _ in range(EPOCHS)]
    return float(np.mean([window.backlog[0, 0] > 0.0 for window in epochs]))


def cells() -> list[Cell]:
    """Return the figures: workers, starts that end there, late epochs with them and with one less."""
    result = []
    for query, published in PUBLISHED["timely_workers"].items():
        ends = final_workers(query)
        workers = max(ends)
        late, late_below = late_share(query, workers), late_share(query, workers - 1)
        result += [
            Cell("ds2", "5.5", f"Timely {query}", "workers (work calibrated)", workers, published, "workers"),
            Cell("ds2", "5.5", f"Timely {query}", "starts of 1-8 that end there", ends.count(workers), None, "starts"),
            Cell("ds2", "5.5", f"Timely {query}", "late epochs", late, LATE_EPOCHS[query], "1"),
            Cell("ds2", "5.5", f"Timely {query}", "late epochs with one worker less", late_below, None, "1"),
        ]
    return result
