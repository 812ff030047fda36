"""Three jobs of Tencent under two hours of their load: total reconfigurations, Fig. 7.

The recorded rates come without a licence and are not part of this project.  They are almost white (correlation from
minute to minute 0.08 to 0.2), so rates drawn independently from their deciles stand in for them.  Give the folder of
the recordings in ``TIDEWISE_CONTTUNE_REAL_JOBS`` to run on them instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_published import PAPER, PUBLISHED
from lab.policies.conttune.conttune_options import ContTuneOptions
from lab.policies.conttune.tuning_loop import TuningMemory, advance
from lab.policies.tuning.tuning_options import Acquisition
from lab.policies.tuning_thresholds import Thresholds
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed, observations
from models.arrays import Floats

RECORDED = "TIDEWISE_CONTTUNE_REAL_JOBS"
MINUTES, STEPS_PER_EVALUATION, STEP_S = 120, 6, 10.0
# Not published; calibrated on the 26 tunings of VideoStreaming in 120 minutes.
EVALUATE_EVERY_MIN = 4
SEEDS = 5
SLOTS = 640
# Nothing about the operators' capacities is published but the drawn parallelism and rate.
UTILISATION = 0.7  # assumed at the drawn rate
CONTENTION = 0.002  # assumed
NOISE = 0.05  # assumed, of a measured capacity
DECISION = 0.10  # decisionThr for the real jobs


@dataclass(frozen=True, slots=True)
class RealJob:
    """One job as the repository's pictures show it.

    Attributes:
        operators: (name, upstream, parallelism).
        deciles_per_s: of its recorded rates.
        sources: source -> its share of that rate.
        file: of the recording.
    """

    operators: tuple[tuple[str, tuple[str, ...], int], ...]
    deciles_per_s: tuple[float, ...]
    sources: dict[str, float]
    file: str


JOBS = {
    "VideoStreaming": RealJob(
        (("source", (), 24), ("operate-sink", ("source",), 488)),
        (2739.0, 2871.4, 3123.6, 3807.3, 4417.7, 4842.0, 5704.2, 7033.6, 10221.5, 11322.2, 12732.9),
        {"source": 1.0},
        "real_job_video_streaming.csv",
    ),
    "ETL": RealJob(
        (
            ("source", (), 32),
            ("o1", ("source",), 350),
            ("o2", ("o1",), 8),
            ("o3", ("o2",), 8),
            ("o4", ("o2",), 8),
            ("sink1", ("o3",), 8),
            ("sink2", ("o4",), 8),
            ("sink3", ("o2",), 8),
        ),
        (27.7, 31.1, 32.1, 33.4, 34.2, 35.3, 35.8, 36.8, 38.2, 40.1, 53.1),
        {"source": 1.0},
        "real_job_etl.csv",
    ),
    "Monitoring": RealJob(
        tuple(
            operator
            for chain, first, rest in (("a", 26, 72), ("b", 2, 6), ("c", 13, 57))
            for operator in (
                (f"source-{chain}", (), first),
                (f"operate-{chain}", (f"source-{chain}",), rest),
                (f"sink-{chain}", (f"operate-{chain}",), rest),
            )
        ),
        (1570.0, 1703.0, 1737.8, 1752.0, 1772.7, 1783.6, 1794.1, 1805.2, 1829.9, 1845.8, 1908.6),
        {"source-a": 1742 / 3187, "source-b": 6 / 3187, "source-c": 1439 / 3187},
        "real_job_monitoring.csv",
    ),
}
METHODS = {
    "DS2": ContTuneOptions(acquisition=Acquisition.LINEAR),
    "ContTune_a0": ContTuneOptions(alpha=0),
    "ContTune_a3": ContTuneOptions(),
}


def rates(job: RealJob, seed: int, folder: Path | None) -> Floats:
    """Return (120,) records/s of each minute: recorded, or drawn from the recording's deciles."""
    if folder is not None:
        text = (folder / job.file).read_text(encoding="utf-8")
        return np.array([float(rate) for rate in re.findall(r"^\d+,\s*([\d.]+)", text, re.MULTILINE)])[:MINUTES]
    draws = np.random.default_rng(seed).uniform(0.0, 1.0, MINUTES)
    return np.interp(draws, np.linspace(0.0, 1.0, len(job.deciles_per_s)), job.deciles_per_s)


def spec(name: str, job: RealJob) -> JobSpec:
    """Return the job, every operator used at :data:`UTILISATION` at its drawn parallelism and mean rate."""
    mean = float(np.mean(job.deciles_per_s))
    load: dict[str, float] = {}
    operators = []
    for operator, upstream, count in job.operators:
        load[operator] = sum(load[above] for above in upstream) if upstream else job.sources[operator] * mean
        each = load[operator] / UTILISATION * (1.0 + CONTENTION * (count - 1)) / count
        operators.append(OperatorSpec(operator, upstream, each, CONTENTION, max_parallelism=SLOTS))
    return JobSpec(name, tuple(operators), slots_max=SLOTS, downtime_noise=0.0, capacity_noise=0.0)


def control(name: str, options: ContTuneOptions, seed: int, folder: Path | None = None) -> tuple[int, int]:
    """Return (tunings, reconfigurations) of a job in two hours.

    The controller evaluates the job every fourth minute, and a tuning may take six steps at the rate of that minute.
    """
    job = JOBS[name]
    simulated = spec(name, job)
    graph = simulated.graph()
    running = {operator: count for operator, _, count in job.operators}
    limits = dict.fromkeys(graph.names, SLOTS)
    start = np.array([list(running.values())], np.int64)
    bed = Testbed([simulated], start, step_s=STEP_S, seed=seed, measurement_noise=NOISE, has_buffers=False)
    share = np.array([job.sources.get(operator, 0.0) for operator in graph.names])
    options = replace(options, thresholds=Thresholds(decision=DECISION))
    memory, tunings, changes = TuningMemory(), 0, 0
    for rate in np.repeat(rates(job, seed, folder)[::EVALUATE_EVERY_MIN], STEPS_PER_EVALUATION):
        window = bed.run((rate * share)[None, :], STEP_S)
        observed = observations([window], 0, len(graph.names))
        step, memory = advance(options, graph, observed, running, limits=limits, memory=memory)
        if step.parallelism is None:
            continue
        running = {**running, **step.parallelism}
        bed.rescale(0, np.array(list(running.values()), np.int64), downtime_s=0.0)
        tunings, changes = tunings + int(step.began), changes + 1
    return tunings, changes


def reconfigurations(progress: Callable[[str], None]) -> list[Cell]:
    """Return Fig. 7: tunings and reconfigurations of the three jobs."""
    given = os.environ.get(RECORDED)
    folder = Path(given) if given else None
    progress(f"ContTune: real jobs, rates {'recorded' if folder else 'drawn from their deciles'}")
    published = PUBLISHED["fig7_real_jobs_total_reconfigurations"]
    cells = []
    for name in JOBS:
        for method, options in METHODS.items():
            counts = np.array([control(name, options, seed, folder) for seed in range(SEEDS)], float)
            known = {"tunings": published[name]["tunings"], "reconfigurations": published[name][method]}
            for place, (column, figure) in enumerate(known.items()):
                values = counts[:, place]
                spread = float(values.std(ddof=1))
                row = f"{name}, {method}"
                cells.append(Cell(PAPER, "Fig. 7", row, column, float(values.mean()), figure, column, SEEDS, spread))
    return cells
