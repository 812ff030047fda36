"""OptScaler as a policy: forecasts come with the plans, decisions every half hour at an evaluation."""

from __future__ import annotations

from dataclasses import replace

from lab.policies.optscaler.control import first_workers, required_workers
from lab.policies.optscaler.optscaler_memory import OptScalerMemory
from lab.policies.optscaler.optscaler_options import OptScalerOptions
from lab.policies.optscaler.planned_load import ForecastLoad
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.immediate_change import hold, rescale_now
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule, Situation
from models.scheduling.need import upper_limits


class OptScaler:
    """The fewest workers that keep their utilisation below the target in all intervals ahead, with a probability.

    Deviation: nodes host several applications in the paper; here a worker is a slot of one job, and every operator runs
    on all of them.

    Args:
        options: the settings.
    """

    def __init__(self, options: OptScalerOptions | None = None) -> None:
        self._options = options or OptScalerOptions()

    def first_memory(self) -> OptScalerMemory:
        """Return the memory of a job that was never decided on."""
        return OptScalerMemory()

    def decide(self, situation: Situation, memory: OptScalerMemory) -> tuple[Schedule, OptScalerMemory]:
        """Return what it would do at the time of a plan, and the memory with the plan's forecast."""
        planned = ForecastLoad.of(situation.forecast, self._options.load_quantile)
        known = replace(memory.learn(situation.job, self._options), planned=planned)
        workers, reason = self._choose(situation.job, known)
        if workers is None:
            return hold(situation, reason), known
        return rescale_now(situation, dict.fromkeys(situation.graph.names, workers), reason), known

    def accept_plan(self, memory: OptScalerMemory, left: OptScalerMemory) -> OptScalerMemory:
        """Return the memory after a newer plan, whose forecast replaces the last one."""
        return left if memory.read_until_s is None else replace(memory, planned=left.planned)

    def drop_plan(self, memory: OptScalerMemory) -> OptScalerMemory:
        """Return the memory of a job without a plan that counts."""
        return replace(memory, planned=ForecastLoad())

    def evaluate(self, job: Snapshot, memory: OptScalerMemory) -> tuple[ReactiveDecision, OptScalerMemory]:
        """Return what a job should run at from now on."""
        known = memory.learn(job, self._options)
        if not job.up:
            return ReactiveDecision(None, "the job is not running"), known
        if known.decided_s is not None and job.now_s - known.decided_s < self._options.interval_s:
            return ReactiveDecision(None, f"OptScaler decides every {self._options.interval_s} s"), known
        workers, reason = self._choose(job, known)
        if workers is None:
            return ReactiveDecision(None, reason), known
        limits = upper_limits(job.graph, job.slots_max).tolist()
        wanted = {name: min(workers, limit) for name, limit in zip(job.graph.names, limits, strict=True)}
        return ReactiveDecision(wanted, reason), replace(known, decided_s=job.now_s)

    def follow(self, memory: OptScalerMemory, _now_s: int) -> tuple[ReactiveDecision, OptScalerMemory]:
        """Return no change, for a job of which nothing was seen lately."""
        return ReactiveDecision(None, "nothing was seen of it lately"), memory

    def _choose(self, job: Snapshot, memory: OptScalerMemory) -> tuple[int | None, str]:
        """Return the workers of the first interval, None to leave the job as it is, and why."""
        options = self._options
        if memory.estimator is None or memory.load_per_s is None:
            return None, "OptScaler knows nothing yet of the job's utilisation"
        peaks = memory.planned.list_peaks(job.now_s, options.interval_s, options.horizon + 1, memory.load_per_s)
        required = required_workers(memory.estimator, peaks, options.target_use, options.confidence)
        if required is None:
            return None, f"no number of workers keeps their utilisation below {options.target_use:.0%}"
        running = max(job.running.values())
        workers = first_workers(required, running, options.change_max, options.workers_min, job.slots_max)
        return workers, (
            f"{workers} workers keep their utilisation below {options.target_use:.0%} up to {max(peaks[:2]):,.0f} "
            f"records/s with a probability of {options.confidence:.0%}"
        )
