"""The controller against a model of Flink that does everything a cluster may do, killed between any two effects."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.control_job import Controller, LeaseLostError, RequestRefusedError, RequestUnknownError
from models.control.history import approve_step
from models.control.limits import DAY_S, HOUR_S, Limits, bound_target
from models.control.reconcile import OutcomeCheck, reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin
from models.policies.memory import dump, load

JOB = "c/orders"
VERTICES = ("a", "b")
TICK_S = 60.0
SLOTS_MAX = 8
BASE = Limits(
    mode=Mode.AUTO,
    slots_max=SLOTS_MAX,
    slots_min=1,
    step_up_max_slots=4,
    rescales_per_hour=4,
    rescales_per_day=12,
    cooldown_s=120.0,
    foreign_change_hold_s=HOUR_S,
    block_s=2 * HOUR_S,
)
# 2,000 transitions unless set otherwise; 2,000 examples make it 100,000.
EXAMPLES = int(os.environ.get("TIDEWISE_STATEFUL_EXAMPLES", "40"))
STEPS = int(os.environ.get("TIDEWISE_STATEFUL_STEPS", "50"))
PHASES = tuple(phase for phase in Phase if phase is not Phase.shrink or "TIDEWISE_STATEFUL_SHRINK" in os.environ)


class Killed(BaseException):
    """The controller was killed between two effects."""


@dataclass
class FlinkModel:
    """A job under the adaptive scheduler.

    Attributes:
        manner: what the next request meets.
        late: requests on their way: (arrives at, job id, parallelism).
        arrived: own requests that arrived or were taken note of: (time, parallelism).
        by_person: whether a person has set what is requested now.
        problem: why nothing may be sent to the job, as the actuator names it.
        finished: vertices that have come to their end; Flink keeps a bound for them, and they no longer run.
    """

    now_s: float = 1_000_000.0
    job_id: str = "job-1"
    requested: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERTICES, 2))
    running: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERTICES, 2))
    state: str = "RUNNING"
    slots: int = SLOTS_MAX
    manner: str = "accept"
    is_silent: bool = False
    late: list[tuple[float, str, dict[str, int]]] = field(default_factory=list)
    sent: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    by_person: bool = False
    problem: str = ""
    finished: frozenset[str] = frozenset()

    def observe(self, job: str) -> ObservedJob:
        if self.is_silent:
            raise RequestUnknownError("no reply")
        if self.problem:
            return ObservedJob(None, "", {}, None, problem=self.problem)
        free = self.slots - max(self.running.values(), default=0)
        at_work = {vertex: count for vertex, count in self.running.items() if vertex not in self.finished}
        running = at_work if self.state == "RUNNING" else {}
        return ObservedJob(self.job_id, self.state, running, dict(self.requested), free_slots=free)

    def request(self, job: str, job_id: str, parallelism: dict[str, int]) -> None:
        self.sent.append((self.now_s, dict(parallelism)))
        manner, self.manner = self.manner, "accept"
        if job_id != self.job_id:
            raise RequestRefusedError("no such job")
        if manner == "refuse":
            raise RequestRefusedError("not today")
        if manner == "lose":
            raise RequestUnknownError("connection reset")
        if manner == "late":
            self.late.append((self.now_s + 400.0, job_id, dict(parallelism)))
            raise RequestUnknownError("timed out")
        self._ask(parallelism, fills=manner != "ignore")
        if manner == "accept_silently":
            raise RequestUnknownError("timed out")

    def _ask(self, parallelism: dict[str, int], *, fills: bool) -> None:
        self.requested = dict(parallelism)
        self.by_person = False
        if fills and self.state == "RUNNING":
            self.running = {vertex: min(count, self.slots) for vertex, count in parallelism.items()}

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        for at_s, job_id, parallelism in [one for one in self.late if one[0] <= self.now_s]:
            self.late.remove((at_s, job_id, parallelism))
            if job_id == self.job_id:
                self._ask(parallelism, fills=True)

    def rescale_by_person(self, parallelism: dict[str, int]) -> None:
        self._ask(parallelism, fills=True)
        self.by_person = True

    def fail(self) -> None:
        self.state = "RESTARTING"

    def recover(self) -> None:
        self.state = "RUNNING"
        self.running = {vertex: min(count, self.slots) for vertex, count in self.requested.items()}

    def redeploy(self, number: int) -> None:
        self.job_id = f"job-{number}"
        self.requested = dict.fromkeys(VERTICES, 2)
        self.by_person = False
        self.finished = frozenset()
        self.recover()


@dataclass
class MemoryLog:
    """The log as a list of texts, as a table keeps them."""

    entries: list = field(default_factory=list)
    histories: dict = field(default_factory=dict)
    effects_left: int = 10**9

    def append(self, entry) -> None:
        self.spend()
        self.entries.append(entry)
        self.histories[entry.job] = dump(entry.history)
        self.spend()

    def read_history(self, job: str) -> JobHistory:
        text = self.histories.get(job)
        return JobHistory() if text is None else load(JobHistory, text)

    def spend(self) -> None:
        """Count an effect's edge; the controller dies at the last one that it may reach."""
        self.effects_left -= 1
        if self.effects_left < 0:
            raise Killed


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.flink = FlinkModel()
        self.log = MemoryLog()
        self.limits = BASE
        self.desired: Intention | None = None
        self.outcome = OutcomeCheck()
        self.has_lease = True
        self.jobs = 1
        self.steps = 0
        self.foreign_at_s = float("-inf")  # when a person's change could first be seen

    @initialize()
    def first_tick(self) -> None:
        self.tick(10**9)

    # what a controller does

    def _check_lease(self) -> None:
        if not self.has_lease:
            raise LeaseLostError

    def tick(self, effects: int) -> None:
        flink, log = self.flink, self.log
        log.effects_left = effects
        sent_before = len(flink.sent)
        history_before = log.read_history(JOB)
        self._note_foreign_change(history_before)

        class Dying:
            """The actuator, whose request has an edge before and after it."""

            def observe(self, job):
                return flink.observe(job)

            def request(self, job, job_id, parallelism):
                log.spend()
                try:
                    flink.request(job, job_id, parallelism)
                finally:
                    log.spend()

        controller = Controller(Dying(), log, self._check_lease, lambda: flink.now_s)
        with contextlib.suppress(Killed, RequestUnknownError, LeaseLostError):
            controller.control_job(JOB, self.desired, lambda: self.limits, self.outcome)
        self._check_sent(history_before, sent_before)

    def _note_foreign_change(self, history: JobHistory) -> None:
        """A change is foreign if a person made it and it is none that the controller has asked for itself."""
        flink = self.flink
        if history.job_id != flink.job_id:
            self.foreign_at_s = float("-inf")
            return
        in_flight = [history.in_flight.target, history.in_flight.before] if history.in_flight else []
        own = [*in_flight, *history.late_targets, history.known_requested]
        can_be_seen = not flink.is_silent and not flink.problem
        if flink.by_person and can_be_seen and not any(dict(one) == flink.requested for one in own):
            flink.by_person, self.foreign_at_s = False, flink.now_s

    def _check_sent(self, before: JobHistory, sent_before: int) -> None:
        new = self.flink.sent[sent_before:]
        assert len(new) <= 1
        for at_s, target in new:
            entry = self.log.entries[-1] if self.log.entries[-1].answer == "" else self.log.entries[-2]
            request = entry.action.request
            assert dict(request.target) == target, "every request is in the log"
            assert self.has_lease
            assert self.limits.mode is Mode.AUTO or self.limits.mode is Mode.APPROVE
            assert not self.limits.in_blackout
            assert not self.limits.is_held
            assert not self.flink.problem
            assert set(target) == set(VERTICES), "Flink wants a bound for every vertex"
            if before.in_flight is not None:  # only to take it back, after its time has passed
                assert request.is_rollback
                assert at_s >= before.in_flight.deadline_s
            observed = entry.case.observed
            assert max(target.values()) <= self.limits.slots_max or request.is_rollback
            if not request.is_rollback:
                assert max(target.values()) >= self.limits.slots_min
                slots = max((observed.running or observed.requested).values())
                assert max(target.values()) - slots <= self.limits.step_up_max_slots
                own = [
                    e.case.now_s
                    for e in self.log.entries
                    if e.action.request
                    and not e.action.is_dry_run
                    and e.action.verb in {"rescale", "roll_back"}
                    and e.answer == ""
                    and e is not entry
                ]
                assert sum(at_s - t < HOUR_S for t in own) < self.limits.rescales_per_hour
                assert sum(at_s - t < DAY_S for t in own) < self.limits.rescales_per_day
                assert at_s - self.foreign_at_s >= self.limits.foreign_change_hold_s, "a foreign change is undone"

    # what happens

    @rule(effects=st.integers(0, 8))
    def tick_killed_somewhere(self, effects: int) -> None:
        self.tick(effects)
        self.flink.advance(TICK_S)

    @rule(count=st.integers(1, 5))
    def ticks(self, count: int) -> None:
        for _ in range(count):
            self.tick(10**9)
            self.flink.advance(TICK_S)

    @rule(hours=st.sampled_from([0.2, 1.1, 5.0]))
    def time_passes_without_controller(self, hours: float) -> None:
        self.flink.advance(hours * HOUR_S)

    @rule(counts=st.tuples(st.integers(1, 10), st.integers(1, 10)), origin=st.sampled_from(list(Origin)[:2]))
    def a_new_intention(self, counts: tuple[int, int], origin: Origin) -> None:
        self.steps += 1
        valid_until_s = self.flink.now_s + 2 * HOUR_S
        parallelism = dict(zip(VERTICES, counts, strict=True))
        self.desired = Intention(parallelism, origin, f"step-{self.steps}", "tested", valid_until_s)

    @rule()
    def no_intention(self) -> None:
        self.desired = None

    @rule(manner=st.sampled_from(["refuse", "lose", "late", "ignore", "accept_silently"]))
    def the_next_request_meets(self, manner: str) -> None:
        self.flink.manner = manner

    @rule(counts=st.tuples(st.integers(1, 8), st.integers(1, 8)))
    def a_person_rescales(self, counts: tuple[int, int]) -> None:
        self.flink.rescale_by_person(dict(zip(VERTICES, counts, strict=True)))
        self.tick(10**9)

    @rule()
    def the_job_fails(self) -> None:
        self.flink.fail()

    @rule()
    def the_job_recovers(self) -> None:
        self.flink.recover()

    @rule()
    def the_job_is_redeployed(self) -> None:
        self.jobs += 1
        self.flink.redeploy(self.jobs)

    @rule(slots=st.integers(1, SLOTS_MAX))
    def slots_come_and_go(self, slots: int) -> None:
        self.flink.slots = max(slots, 1)

    @rule(is_silent=st.booleans())
    def the_cluster_replies_or_not(self, is_silent: bool) -> None:
        self.flink.is_silent = is_silent

    @rule(problem=st.sampled_from(["ambiguous_name", "unreadable_reply", "missing_requirement", ""]))
    def the_job_cannot_be_told(self, problem: str) -> None:
        self.flink.problem = problem

    @rule(finished=st.sampled_from([frozenset({"a"}), frozenset()]))
    def a_bounded_source_ends(self, finished: frozenset[str]) -> None:
        self.flink.finished = finished

    @rule(has_lease=st.booleans())
    def the_lease_moves(self, has_lease: bool) -> None:
        self.has_lease = has_lease

    @rule(mode=st.sampled_from(list(Mode)), in_blackout=st.booleans(), is_held=st.booleans())
    def a_person_sets_limits(self, mode: Mode, in_blackout: bool, is_held: bool) -> None:
        self.limits = replace(self.limits, mode=mode, in_blackout=in_blackout, is_held=is_held)

    @rule()
    def a_person_lifts_all_limits(self) -> None:
        self.limits = BASE

    @precondition(lambda self: self.desired is not None)
    @rule()
    def a_person_approves(self) -> None:
        history = approve_step(self.log.read_history(JOB), self.desired.step_id)
        self.log.histories[JOB] = dump(history)

    @rule(is_worse=st.sampled_from([None, True, False]))
    def the_outcome_is_judged(self, is_worse: bool | None) -> None:
        self.outcome = OutcomeCheck(is_worse, "measured")

    # what must hold

    @invariant()
    def every_decision_can_be_made_again(self) -> None:
        for entry in self.log.entries[-2:]:
            assert dump(reconcile(load(type(entry.case), dump(entry.case)))) == dump(entry.action)

    def teardown(self) -> None:
        """Whatever has happened: when all is well again, what is wanted is reached in bounded time."""
        flink = self.flink
        flink.recover()
        flink.slots, flink.is_silent, flink.manner = SLOTS_MAX, False, "accept"
        flink.problem, flink.finished = "", frozenset()
        flink.recover()
        self.limits, self.has_lease, self.outcome = BASE, True, OutcomeCheck()
        wanted = {"a": 7, "b": 3}
        for _ in range(int(1.5 * DAY_S / 600)):
            self.desired = Intention(wanted, Origin.PLAN, "last", "wanted", flink.now_s + HOUR_S)
            self.tick(10**9)
            flink.advance(600.0)
        observed = flink.observe(JOB)
        history = self.log.read_history(JOB)
        assert history.in_flight is None
        assert dict(observed.running) == bound_target(wanted, observed, BASE) == wanted


TestController = ControllerMachine.TestCase
TestController.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    phases=PHASES,
    derandomize=EXAMPLES <= 40,
    suppress_health_check=list(HealthCheck),
)
pytestmark = pytest.mark.timeout(3600)
