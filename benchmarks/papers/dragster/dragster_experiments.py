"""Slots of ten minutes on the simulator: several tuners of one application side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from benchmarks.papers.dragster.dragster_jobs import MAX_TASKS, Application
from lab.policies.dhalion import dhalion_options as dhalion
from lab.policies.dhalion.dhalion_inputs import readings
from lab.policies.dhalion.rules import resolve
from lab.policies.dragster.dragster_inputs import observe_slot
from lab.policies.dragster.dragster_memory import DragsterMemory
from lab.policies.dragster.dragster_options import DragsterOptions
from lab.policies.dragster.dragster_slot import advance
from lab.policies.dragster.network import OperatorNetwork
from lab.policies.dragster.throughput_learning import learn_network, measure_flows, remember_flows
from lab.simulation.testbed import Testbed, observations
from models.arrays import Bools, Floats, Ints
from models.policies.observations import Observations

SLOT_S, STOP_S = 600, 30.0  # Section 3.1: a decision every 10 min, stop and resume of about 30 s
SLOTS_PER_H = 3600 / SLOT_S
_WINDOW_S = 30  # one step of the simulator; a stop fills exactly one
# A slot's capacity (Eq. 8) is measured with the 3% that the algorithm assumes, here over all slot's windows.
CAPACITY_NOISE = 0.03


class Tuner(Protocol):
    """A tuner, which decides once per slot; it keeps its own memory."""

    def next(self, observations: Observations, running: dict[str, int]) -> dict[str, int]:
        """Return operator -> tasks of the next slot, of those to change at least."""
        ...


@dataclass
class DragsterTuner:
    """Dragster with the exact throughput functions, as the paper runs it, or with learnt ones.

    Attributes:
        net: the exact network.
        options: the settings.
        learns: whether the functions of ``net`` are left aside and learnt from the first slot on (Theorem 2).
        memory: of the job.
    """

    net: OperatorNetwork
    options: DragsterOptions
    learns: bool = False
    memory: DragsterMemory = field(default_factory=DragsterMemory)

    def next(self, observations: Observations, running: dict[str, int]) -> dict[str, int]:
        """Advance by one slot."""
        net, graph = self.net, self.net.graph
        if self.learns:
            flows = remember_flows(self.memory.flows, measure_flows(graph, observations), self.options.flows_max)
            self.memory = replace(self.memory, flows=flows)
            net = learn_network(graph, flows, self.options.throughput, {}, {})
        slot = observe_slot(net, observations, running, np.full(len(graph.names), MAX_TASKS))
        wanted, self.memory = advance(self.options, net, slot, self.memory)
        return wanted


@dataclass
class DhalionTuner:
    """Dhalion as Section 6.1 describes it: one task more where records queue, one less where tasks are idle."""

    net: OperatorNetwork
    options: dhalion.DhalionOptions

    def next(self, observations: Observations, running: dict[str, int]) -> dict[str, int]:
        """Scale one operator or none."""
        limits = np.full(len(self.net.graph.names), MAX_TASKS)
        action = resolve(self.options, readings(self.net.graph, observations, running, limits))
        return {action.operator: action.instances} if action else {}


DHALION = dhalion.DhalionOptions(symptom=dhalion.Symptom.PENDING, change=dhalion.ScalingAmount.ONE)
DHALION_BACKPRESSURE = replace(DHALION, symptom=dhalion.Symptom.BACKPRESSURE)


@dataclass(frozen=True, slots=True)
class Record:
    """The record of an experiment; R runs, T slots, M operators without the sources.

    Attributes:
        tasks: (R, T, M).
        rate_per_s: (R, T) mean throughput at the source in the slot, stops included.
        steady_per_s: (R, T) throughput at the end of the slot.
        offered_per_s: (T,) of one source.
        capacity_per_s: (R, T, M) true capacity.
    """

    tasks: Ints
    rate_per_s: Floats
    steady_per_s: Floats
    offered_per_s: Floats
    capacity_per_s: Floats

    @property
    def pods(self) -> Ints:
        """(R, T) tasks of all operators: a pod holds one."""
        return np.asarray(self.tasks.sum(axis=2), np.int64)


def play(
    app: Application,
    offered_per_s: Floats,
    tuners: Sequence[Tuner],
    *,
    seed: int = 0,
    noise: float = CAPACITY_NOISE,
    keeps_backlog: bool = True,
) -> Record:
    """Run tuners side by side, each on its own copy of the application.

    Args:
        app: the application.
        offered_per_s: (T,) records/s of each source, per slot.
        tuners: one per run.
        seed: of the measurement noise.
        noise: relative standard deviation of a slot's capacity as measured.
        keeps_backlog: whether records that a slow job does not take wait at the source for the next window, as in
            Kafka; else they are lost, as when a generator is held up.
    """
    names, sources = app.net.graph.names, app.net.graph.sources
    specs = [replace(app.spec, name=f"{app.name} {index}") for index in range(len(tuners))]
    is_source = np.array([name in sources for name in names])
    now = np.ones((len(tuners), len(names)), np.int64)
    now[:, ~is_source] = app.start
    windows_n = SLOT_S // _WINDOW_S
    bed = Testbed(
        specs,
        now,
        step_s=_WINDOW_S,
        seed=seed,
        measurement_noise=noise * float(np.sqrt(windows_n - 1)),
        has_buffers=False,
    )
    tasks, means, ends, capacity = [], [], [], []
    for offered in offered_per_s:
        rates = np.where(is_source, offered, 0.0) * np.ones((len(tuners), 1))
        windows = []
        for _ in range(windows_n):
            window = bed.run(rates, _WINDOW_S)
            if not keeps_backlog:
                window = replace(window, backlog=0.0 * window.backlog)
                bed.state.backlog[:] = 0.0
            windows.append(window)
        first = names.index(sources[0])
        emitted = np.array([window.in_per_s[:, first] for window in windows])
        tasks.append(now[:, ~is_source].copy())
        means.append(emitted.mean(axis=0))
        ends.append(emitted[-1])
        capacity.append(bed.fleet.capacity(now)[:, ~is_source])
        for job, tuner in enumerate(tuners):
            running = dict(zip(names, map(int, now[job]), strict=True))
            wanted = running | tuner.next(observations(windows, job, len(names)), running)
            target = np.array([wanted[name] for name in names], np.int64)
            if (target != now[job]).any():
                now[job] = target
                bed.rescale(job, target, STOP_S)
    stacked = [np.stack(each, axis=1) for each in (tasks, means, ends, capacity)]
    return Record(stacked[0], stacked[1], stacked[2], np.asarray(offered_per_s, float), stacked[3])


def make_dragsters(app: Application, options: DragsterOptions, runs: int, *, learns: bool = False) -> list[Tuner]:
    """Return as many tuners, each with a memory of its own."""
    return [DragsterTuner(app.net, options, learns) for _ in range(runs)]


def make_dhalions(app: Application, options: dhalion.DhalionOptions = DHALION) -> list[Tuner]:
    """Return one tuner: Dhalion's symptoms are counters without noise, so one run shows all."""
    return [DhalionTuner(app.net, options)]


Progress = Callable[[str], None]


def throughput_map(app: Application) -> Floats:
    """Return (10, 10) the rate that each configuration of two operators takes from the source, records/s."""
    grid = [(first, second) for first in range(1, MAX_TASKS + 1) for second in range(1, MAX_TASKS + 1)]
    specs = [replace(app.spec, name=str(index)) for index in range(len(grid))]
    bed = Testbed(specs, np.array([(1, *pair) for pair in grid]), step_s=_WINDOW_S, has_buffers=False)
    window = bed.run(np.tile([app.source_per_s, 0.0, 0.0], (len(grid), 1)), _WINDOW_S)
    return np.asarray(window.in_per_s[:, 0].reshape(MAX_TASKS, MAX_TASKS), float)


def is_near(rate_per_s: Floats, best_per_s: float) -> Bools:
    """Return whether a throughput is within 10% of the best, the paper's near-optimal."""
    return np.asarray(rate_per_s >= 0.9 * best_per_s)


def slots_to_converge(good: Bools) -> int:
    """Return the first slot (from 1) from which all of (T,) slots are good; T + 1 when the last is not."""
    bad = np.flatnonzero(~good)
    return int(bad[-1]) + 2 if len(bad) else 1
