"""A run: one fault after the other, each until its job is settled, and at the end what has to hold over all of it."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chaos.invariants import Record, Violation, find_violations
from benchmarks.chaos.losses import find_losses
from benchmarks.chaos.outcome import NOT_TOUCHED, Outcome
from benchmarks.chaos.run_settings import LONG, Conditions
from benchmarks.chaos.scene import Fault, Scene
from benchmarks.chaos.world import World, open_world
from benchmarks.waiting import NotReachedError
from include.flink.faults import FlinkError

_ATTEMPTS = 3  # at a fault that came too late for its step


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault and how it ended.

    Attributes:
        number: from 1.
        job: that it met.
        seconds: until it was settled.
        attempts: how often it was injected.
        is_hit: whether it came before its step had ended; else it does not count.
        began_s: epoch seconds.
    """

    number: int
    fault: Fault
    job: str
    outcome: Outcome
    seconds: float
    attempts: int
    is_hit: bool
    began_s: float
    note: str = ""

    @property
    def is_expected(self) -> bool:
        """Whether it ended as was written down before the run."""
        return self.fault.expects(self.outcome)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found.

    Attributes:
        asked: how many faults were asked for.
        injected: those that met a step which had not ended; the last one, too, when it did not end as it may.
        puts: requests that came to the proxy.
        reactive: those that the reactive part wanted.
    """

    seed: int
    asked: int
    injected: Sequence[Injected]
    violations: Sequence[Violation]
    losses: Sequence[str]
    puts: int
    reactive: int
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether every fault ended as it may, and nothing happened that must not."""
        are_all = len(self.injected) == self.asked and all(one.is_expected for one in self.injected)
        return are_all and not self.violations and not self.losses


def run(
    out: Path, faults: Sequence[Fault], seed: int, say: Callable[[str], None], conditions: Conditions = LONG
) -> Result:
    """Inject faults on a cluster of its own.

    Args:
        out: an empty folder; everything is written below it.
        faults: in their order.
        seed: of everything random in them.
        say: prints a line.
        conditions: checkpoints and slots.
    """
    began = time.monotonic()
    injected: list[Injected] = []
    say("starting Flink with three jobs, and a controller")
    with open_world(out, conditions) as world:
        remaining, turn = deque(faults), 0
        while remaining and turn < 2 * len(faults):
            turn += 1
            fault, number = remaining.popleft(), len(injected) + 1
            one = inject(world, fault, number, random.Random(f"{seed} {turn}"))
            say(f"{number} of {len(faults)}  {describe(one)}")
            if not one.is_hit and one.outcome.is_good:
                remaining.append(fault)
                say("it met no open step, so it does not count and comes again later")
                continue
            injected.append(one)
            if not one.outcome.is_good:
                say("the run ends here: the cluster is in a state that nobody planned")
                break
        losses = find_losses(world) if injected and injected[-1].outcome.is_good else []
        record = take_record(world)
    reactive = sum(row.sends and row.origin == "reactive" for row in record.rows)
    violations = find_violations(record)
    return Result(seed, len(faults), injected, violations, losses, len(record.puts), reactive, time.monotonic() - began)


def inject(world: World, fault: Fault, number: int, rng: random.Random) -> Injected:
    """Inject one fault until it meets a step that has not ended, and wait for its end."""
    for attempt in range(1, _ATTEMPTS + 1):
        began, began_s, job = time.monotonic(), time.time(), "?"
        try:
            world.restore()
            job = world.choose_job(rng)
            scene = Scene(world, rng, job, world.choose_parallelism(job, rng))
            with scene.after:
                with fault.inject(scene):
                    scene.step = world.plan(job, scene.parallelism)
                outcome = scene.settle()
                seconds = time.monotonic() - began
            note = "; ".join(scene.notes)
        except (NotReachedError, FlinkError) as error:
            outcome, seconds, note = Outcome("unsettled", str(error)), time.monotonic() - began, ""
            return Injected(number, fault, job, outcome, seconds, attempt, False, began_s, note)
        scene.is_hit = scene.is_hit and outcome != NOT_TOUCHED
        if scene.is_hit or not outcome.is_good:
            break
    return Injected(number, fault, job, outcome, seconds, attempt, scene.is_hit, began_s, note)


def describe(one: Injected) -> str:
    """Return a line about a fault."""
    retried = f", attempt {one.attempts}" if one.attempts > 1 else ""
    note = f" ({one.note})" if one.note else ""
    other = "" if one.is_expected else f", expected {' or '.join(one.fault.expected)}"
    return f"{one.fault.name}, {one.job}: {one.outcome}{other} in {one.seconds:.0f} s{retried}{note}"


def take_record(world: World) -> Record:
    """Return what the run left so far."""
    names = {job_id: options.job_name for job_id, options in world.jobs.all_ids.items()}
    return Record(
        list(world.proxy.puts),
        world.log.read(),
        names,
        world.jobs.changes,
        world.silences,
        world.wrongs,
        world.conditions.confirm_s,
    )
