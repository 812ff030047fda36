"""All runs of an experiment at once: every system and repetition is a job of one simulated fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.papers.phoebe import phoebe_setup
from benchmarks.papers.phoebe.phoebe_setup import END_TO_END, Experiment
from benchmarks.papers.phoebe.situations import Forecasts, Situations
from lab.policies.baselines.baseline_options import ReactiveOptions
from lab.policies.baselines.reactive import Reactive
from lab.policies.phoebe.phoebe_options import PhoebeOptions
from lab.policies.phoebe.phoebe_policy import Phoebe, PhoebeMemory
from lab.policies.phoebe.twres import Twres
from lab.profiling.rows import Profile
from lab.simulation.end_to_end import with_latency
from lab.simulation.randomness import job_generator
from lab.simulation.testbed import Testbed, TestbedWindow
from models.arrays import Floats, Ints
from models.policies.protocol import Policy, Situation

_RETAINED_WINDOWS = 120 // phoebe_setup.WINDOW_S
_PROGRESS_S = 3600
# Between the failures' seconds, so that no evaluation falls on one.
_POLL_OFFSET_S = 30


@dataclass(frozen=True, slots=True)
class System:
    """One line of Table II.

    Attributes:
        name: in the table.
        first_workers: None for the experiment's.
        make: the policy for a profile; None for a configuration that is never evaluated.
        poll_s: between two evaluations of the job.
        first_look_s: seconds before the first of them.
        reactive: rescales as Flink's reactive mode does, by a restart from the last checkpoint.
    """

    name: str
    first_workers: int | None = None
    make: Callable[[Profile], Policy[Any]] | None = None
    poll_s: int = 60
    first_look_s: int = 600
    reactive: bool = False


def _reactive(name: str, target: float) -> System:
    def make(_: Profile) -> Policy[Any]:
        return Reactive(ReactiveOptions(target=target))

    return System(name, make=make, poll_s=15, first_look_s=60, reactive=True)


def _phoebe(name: str, options: PhoebeOptions) -> System:
    def make(profile: Profile) -> Policy[Any]:
        return Phoebe(profile, options)

    return System(name, make=make)


# "Phoebe" is the prototype, whose rule made the published runs; beside it the paper's Algorithm 1, and a target that
# leaves more than 55 s after the downtime.
PROTOTYPE, ALGORITHM_1, LOOSER = "Phoebe", "Phoebe, Algorithm 1", "Phoebe, Algorithm 1, target 240 s"
SYSTEMS = (
    System("Static24", 24),
    System("Static12", 12),
    System("Static4", 4),
    _phoebe(PROTOTYPE, PhoebeOptions(rule="logged")),
    _phoebe(ALGORITHM_1, PhoebeOptions(rule="algorithm 1")),
    _phoebe(LOOSER, PhoebeOptions(rule="algorithm 1", recovery_target_s=240.0)),
    # The text evaluates every ten minutes; the prototype looks every minute and waits ten after a change.
    replace(_phoebe("Phoebe600", PhoebeOptions(rule="logged")), poll_s=600),
    System("TWRES", make=Twres),
    _reactive("Reactive", phoebe_setup.REACTIVE_TARGET),
    _reactive("Reactive80", phoebe_setup.REACTIVE_DEFAULT_TARGET),
)


@dataclass(frozen=True, slots=True)
class Runs:
    """The record, J = systems x repetitions, K windows of 5 s.

    Attributes:
        system, repetition: (J,) of each job.
        end_s: (K,) end of each window.
        latency_ms, workers: (K, J).
        reconfigurations: (J,) changes of the number of workers.
        expected_recovery_s: (J, 8) what Phoebe's model expected of each failure when it happened; NaN for others.
        evaluated_recovery_s: (J, 8) what it had expected at its last evaluation, up to ten minutes before.
    """

    system: tuple[str, ...]
    repetition: Ints
    end_s: Floats
    latency_ms: Floats
    workers: Ints
    reconfigurations: Ints
    expected_recovery_s: Floats
    evaluated_recovery_s: Floats

    def of(self, system: str) -> Ints:
        """Return the jobs of one system, in order of repetition."""
        return np.array([row for row, name in enumerate(self.system) if name == system], np.int64)


class Bench:
    """A fleet and the controllers over it.

    Args:
        experiment: which of the two.
        profiles: (repetitions,) what Phoebe and TWRES know.
        systems: to run.
    """

    def __init__(
        self, experiment: Experiment, profiles: Sequence[Profile], systems: Sequence[System] = SYSTEMS
    ) -> None:
        self._name = experiment.name
        self._jobs = [(system, number) for system in systems for number in range(len(profiles))]
        specs = [phoebe_setup.job(f"{system.name}-{number}", _curve(experiment)) for system, number in self._jobs]
        first = [[system.first_workers or experiment.first_workers] for system, _ in self._jobs]
        self._testbed = Testbed(specs, np.array(first, np.int64), seed=0, has_buffers=False)
        self._latency_draws = job_generator(0, experiment.name, "latency")
        self._reactive_draws = job_generator(0, experiment.name, "reactive")
        self._arrivals = np.stack([experiment.repetition(number) for number in range(len(profiles))])  # (R, T)
        self._forecasts = [Forecasts(experiment.training_per_s, arrivals) for arrivals in self._arrivals]
        self._situations = Situations(specs[0])
        self._policies = [system.make(profiles[number]) if system.make else None for system, number in self._jobs]
        self._memories: list[Any] = [policy.first_memory() if policy else None for policy in self._policies]
        self._windows: list[TestbedWindow] = []
        self._changes = np.zeros(len(self._jobs), np.int64)

    def run(self, progress: Callable[[str], None], duration_s: int = phoebe_setup.DURATION_S) -> Runs:
        """Run from the beginning, six hours at most."""
        count, jobs = duration_s // phoebe_setup.WINDOW_S, len(self._jobs)
        failures = phoebe_setup.failure_times_s()
        latency, workers = np.zeros((count, jobs)), np.zeros((count, jobs), np.int64)
        expected, evaluated = np.full((2, jobs, len(failures)), np.nan)
        numbers = np.array([number for _, number in self._jobs], np.int64)
        for index in range(count):
            at = index * phoebe_setup.WINDOW_S
            if at % _PROGRESS_S == 0:
                progress(f"phoebe: {self._name}, hour {at // 3600 + 1} of {-(-duration_s // 3600)}")
            self._decide(at)
            for failure in np.flatnonzero(failures == at):
                expected[:, failure] = [self._expect_recovery(at, row) for row in range(jobs)]
                evaluated[:, failure] = [_last_expected_recovery_s(memory) for memory in self._memories]
                self._fail()
            rates = self._arrivals[numbers, at : at + phoebe_setup.WINDOW_S].T[..., None]
            window = self._testbed.run(rates)
            latency[index] = END_TO_END.latency_ms(window, self._latency_draws)
            workers[index] = window.parallelism[:, 0]
            self._windows = [*self._windows, with_latency(window, latency[index])][-_RETAINED_WINDOWS:]
        return Runs(
            system=tuple(system.name for system, _ in self._jobs),
            repetition=numbers,
            end_s=np.asarray((np.arange(count) + 1.0) * phoebe_setup.WINDOW_S, float),
            latency_ms=latency,
            workers=workers,
            reconfigurations=self._changes,
            expected_recovery_s=expected,
            evaluated_recovery_s=evaluated,
        )

    def _decide(self, at: int) -> None:
        """Run every controller that is due, and begin the rescale that it requests."""
        for row, (system, _) in enumerate(self._jobs):
            policy = self._policies[row]
            turn = (at - _POLL_OFFSET_S) % system.poll_s == 0 and at >= system.first_look_s
            if policy is None or not turn:
                continue
            situation = self._situation(at, row)
            current = situation.parallelism["pipeline"]
            schedule, self._memories[row] = policy.decide(situation, self._memories[row])
            target = schedule.decisions[0].step.parallelism_to
            if int(target[0]) != current:
                self._changes[row] += 1
                self._rescale(row, system, target, current)

    def _situation(self, at: int, row: int) -> Situation:
        ahead = self._forecasts[self._jobs[row][1]].ahead(at)
        return self._situations.at(at, row, int(self._testbed.state.parallelism[row, 0]), self._windows, ahead)

    def _expect_recovery(self, at: int, row: int) -> float:
        policy = self._policies[row]
        if not isinstance(policy, Phoebe):
            return np.nan
        return policy.expected_recovery_s(self._situation(at, row), self._memories[row])

    def _rescale(self, row: int, system: System, target: Ints, current: int) -> None:
        if not system.reactive:
            self._testbed.rescale(row, target)
            return
        # Reactive mode takes no savepoint; a task manager that went is only missed after its timeout.
        lost = int(target[0]) < current
        stop_s = phoebe_setup.REACTIVE_RESTART_S + (phoebe_setup.TASK_MANAGER_TIMEOUT_S if lost else 0.0)
        self._testbed.fail(row, stop_s * self._noise(), target)

    def _fail(self) -> None:
        """Fail every job: a delayed network for most, a killed task manager for the reactive mode."""
        for row, (system, _) in enumerate(self._jobs):
            killed = phoebe_setup.TASK_MANAGER_TIMEOUT_S + phoebe_setup.REACTIVE_RESTART_S
            self._testbed.fail(row, killed * self._noise() if system.reactive else None)

    def _noise(self) -> float:
        relative = phoebe_setup.FAILURE_DOWNTIME_SD_S / phoebe_setup.FAILURE_DOWNTIME_S
        return 1.0 + relative * float(self._reactive_draws.standard_normal())


def _curve(experiment: Experiment) -> Floats:
    return np.array(experiment.job.operators[0].measured_per_s)


def _last_expected_recovery_s(memory: object) -> float:
    known = memory.expected_recovery_s if isinstance(memory, PhoebeMemory) else None
    return np.nan if known is None else known
