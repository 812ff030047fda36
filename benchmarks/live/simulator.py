"""The simulator beside the real cluster: the same load, the same rescales at the same times, the same loss.

What it is told of a job comes from its calibration; downtimes and durations of checkpoints are those of the runs with
the first seed, which corrects it, and the runs with other seeds are what it is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from benchmarks.live.calibration import Calibration
from benchmarks.live.history import describe_job
from benchmarks.live.live_job import SLOTS, TASK_MANAGERS
from benchmarks.live.load_window import integrate
from benchmarks.live.measures import Measures, Prices, Reading, RunSpan, measure
from benchmarks.live.results import RunResult
from benchmarks.live.run import LOST_FOR_S
from lab.simulation.testbed import Testbed

CORRECTS = "corrects"
REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A real run and the simulated one.

    Attributes:
        job, policy, seed: of the run.
        use: whether it corrects the simulator or is reported.
        cost, simulated_cost: of both.
        recovery_s, simulated_recovery_s: after the loss of a TaskManager; None: not within the run, or none was lost.
    """

    job: str
    policy: str
    seed: int
    use: str
    cost: float
    simulated_cost: float
    recovery_s: float | None
    simulated_recovery_s: float | None


def find_downtime(results: Iterable[RunResult]) -> float | None:
    """Return seconds down per stop, the mean of runs; None without a stop."""
    runs = list(results)
    stops = sum(one.measures.rescales + (one.lost_at_s is not None) for one in runs)
    return sum(one.measures.down_s for one in runs) / stops if stops else None


@dataclass(frozen=True, slots=True)
class Correction:
    """What runs showed of a job and its calibration does not.

    Attributes:
        downtime_s: of a stop; None: as in the calibration.
        checkpoint_s: how long a checkpoint takes; None: as long as writing its state does.
    """

    downtime_s: float | None = None
    checkpoint_s: float | None = None


def find_correction(results: Iterable[RunResult]) -> Correction:
    """Return what runs of a job showed: the mean downtime, the median of their checkpoints' durations."""
    runs = list(results)
    durations = [one.checkpoint_s for one in runs if one.checkpoint_s is not None]
    return Correction(find_downtime(runs), median(durations) if durations else None)


def compare_runs(
    results: Iterable[RunResult], calibrations: Mapping[str, Calibration], prices: Prices
) -> list[Comparison]:
    """Return each run beside the simulated one; runs of the least seed of a job correct it."""
    runs = [one for one in results if one.job in calibrations and not one.trouble]
    rows = []
    for job in dict.fromkeys(one.job for one in runs):
        own = [one for one in runs if one.job == job]
        first = min(one.seed for one in own)
        correction = find_correction(one for one in own if one.seed == first)
        for one in own:
            simulated = simulate_run(one, calibrations[job], correction, prices)
            use = CORRECTS if one.seed == first else REPORTS
            rows.append(
                Comparison(
                    job,
                    one.policy,
                    one.seed,
                    use,
                    one.measures.cost,
                    simulated.cost,
                    one.measures.recovery_s,
                    simulated.recovery_s,
                )
            )
    return rows


@dataclass(slots=True)
class _Asked:
    """A rescale that waits for the next checkpoint, as Flink's does.

    Attributes:
        waits: whether it does; else it is due at once.
        slots: that are asked for; None while nothing is.
        completed: checkpoints by then.
    """

    waits: bool
    slots: int | None = None
    completed: int = 0

    def is_due(self, wanted: int, running: int, completed: int) -> bool:
        """Take what is wanted and what runs now; returns whether the rescale begins."""
        if wanted == running:
            self.slots = None
            return False
        if wanted != self.slots:
            self.slots, self.completed = wanted, completed
        return not self.waits or completed > self.completed


def simulate_run(run: RunResult, calibration: Calibration, correction: Correction, prices: Prices) -> Measures:
    """Return the measures of a run in the simulator, in steps of a second.

    Args:
        run: the real one, whose load and actions are repeated.
        calibration: of the job.
        correction: of what the calibration says.
        prices: of the planner.
    """
    described = describe_job(calibration, downtime_s=correction.downtime_s)
    spec = replace(described, barrier_delay_s=correction.checkpoint_s or 0.0)
    costly = next(place for place, one in enumerate(spec.operators) if one.name == calibration.costly)
    actions = list(run.actions)
    first = actions[0][1] if actions else 1
    testbed = Testbed([spec], np.full((1, len(spec.operators)), first), step_s=1.0, seed=run.seed)
    lost_at_s = None if run.lost_at_s is None else run.lost_at_s + run.span_s[0]
    has_lost, wanted, readings, asked = False, first, list[Reading](), _Asked(waits=spec.barrier_delay_s > 0)
    for second in range(round(run.span_s[1]) + 1):
        state = testbed.state
        is_up = state.down_until[0] <= state.time_s
        while len(actions) > 1 and actions[1][0] <= second:
            actions.pop(0)
            wanted = actions[0][1]
        target = state.parallelism[0].copy()
        target[costly] = min(wanted, count_slots(second, lost_at_s))
        if lost_at_s is not None and not has_lost and second >= lost_at_s:
            has_lost = True
            testbed.fail(0, correction.downtime_s, target)
        elif asked.is_due(int(target[costly]), int(state.parallelism[0, costly]), int(state.completed[0])) and is_up:
            testbed.rescale(0, target, correction.downtime_s)
        rate = integrate(run.load, second, second + 1)
        rates = np.zeros((1, len(spec.operators)))
        rates[0, 0] = rate
        window = testbed.run(rates, 1.0)
        backlog = float(testbed.state.backlog[0, 0])  # what is in buffers is not worked off
        age_s = float(window.latency_ms[0, 0]) / 1000
        slots = int(window.parallelism[0].max())
        readings.append(Reading(float(second), bool(window.up[0]), slots, (wanted, wanted), backlog, age_s, age_s))
    return measure(readings, RunSpan(run.load, run.span_s, lost_at_s, run.slots_max), prices)


def count_slots(second: float, lost_at_s: float | None) -> int:
    """Return the slots of the cluster, from the loss of a TaskManager until it is back without its own."""
    is_lost = lost_at_s is not None and lost_at_s <= second < lost_at_s + LOST_FOR_S
    return SLOTS - SLOTS // TASK_MANAGERS if is_lost else SLOTS
