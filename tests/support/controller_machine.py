"""Two controllers against a model of a cluster that does everything one may do, killed between any two effects."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from answer_ledger import AnswerLedger
from flink_model import SLOTS, FlinkModel, KilledError, MemoryLog
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from single_job import control_job

from controller.actuators.actuator import RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.decisions.job_control import JobControl
from controller.leases.lease import LeaseLostError
from controller.log.control_log import LogEntry
from controller.log.log_codec import row_of
from fleet.decisions import decision_of
from fleet.facts import JobStatus
from fleet.health import Fault, judge_jobs
from include.arrow_rows import arrow_rows
from include.settings import Health
from include.tables import CONTROL_LOG
from include.utc import DAY_S, HOUR_S
from models.control.bounds import bound_target
from models.control.case import OutcomeCheck, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, Mode, Origin
from models.policies.memory import dump, load

JOB = "c/orders"
HEALTH = Health()
TICK_S = 60.0
BASE = Limits(
    mode=Mode.AUTO,
    slots_max=SLOTS,
    slots_min=1,
    step_up_max_slots=4,
    rescales_per_hour=4,
    rescales_per_day=12,
    cooldown_s=120.0,
    foreign_change_hold_s=HOUR_S,
    block_s=2 * HOUR_S,
    approval_band=0.25,
)
WANTED = ({"a": 7, "b": 3}, {"a": 4, "c": 3, "d": 2})
EVENTS = ["hold", "off", "dry", "blackout", "person", "lease", "other", "deny"]
CLUSTER_EVENTS = ["fails", "recovers", "silent", "other", "redeployed", "slots", "kind", "problem", "finished"]
MANNERS = ["refuse", "lose", "late", "ignore", "half", "accept_silently"]
# What the request meets, ticks until a person acts, what they do, and how many hours later.
PERSONS = [
    *((manner, 1, "takes back", 0.0) for manner in ("accept", "accept_silently", "ignore", "half", "accept_silently")),
    *(("ignore", 2, "takes back", 0.0), ("accept", 3, "takes back", 0.05)),
    *(("lose", 4, "repeats", hours) for hours in (0.05, 0.4, 120.0)),
    *(("ignore", 6, "repeats", hours) for hours in (0.05, 0.4, 120.0)),
    ("late", 8, "repeats", 0.2),
    *((manner, ticks, "takes the next back", 0.04) for manner in ("lose", "late") for ticks in (5, 7)),
    *((manner, 2, "sets a lower bound", 0.0) for manner in ("accept", "ignore")),
    *((manner, 1, "deploys", 0.0) for manner in ("lose", "ignore", "accept")),
]
COUNTS = st.lists(st.integers(1, 10), min_size=3, max_size=3)
# 2,000 transitions unless set otherwise; 2,000 examples make it 100,000.
EXAMPLES = int(os.environ.get("TIDEWISE_STATEFUL_EXAMPLES", "20"))
STEPS = int(os.environ.get("TIDEWISE_STATEFUL_STEPS", "50"))
LONGEST_TICKS = int(1.5 * DAY_S / 600)
QUIET_TICKS = 36 if EXAMPLES <= 40 else LONGEST_TICKS
"""Ticks of ten minutes for which what is wanted has to run before an example ends: six hours in `make test`."""
PHASES = tuple(phase for phase in Phase if phase is not Phase.shrink or "TIDEWISE_STATEFUL_SHRINK" in os.environ)


class ControllerMachine(RuleBasedStateMachine):
    """The controller over Flink's REST API; a subclass names another model of what is between the two."""

    model: type[FlinkModel] = FlinkModel

    def __init__(self) -> None:
        super().__init__()
        self.flink = self.model()
        self.actuator = self.flink.open_actuator()
        self.log = MemoryLog()
        self.limits = BASE
        self.answers = AnswerLedger()
        self.desired: Intention | None = None
        self.outcome = OutcomeCheck()
        self.jobs = 1
        self.steps = 0
        self.judged = 0  # entries that an invariant has looked at
        self.behind_s = 0.0  # of the controllers' clocks
        self.late_s: float | None = 0.0  # how long records wait, by the polls
        self.late_at_s: float | None = None  # since when a controller sees that they wait too long
        self.taken_back: list[tuple[float, dict[str, int]]] = []
        self.broke: list[dict[str, int]] = []  # under which the job failed, not lifted by a person

    @initialize()
    def first_tick(self) -> None:
        self.tick()

    # what a controller does

    def clock(self) -> float:
        return self.flink.now_s - self.behind_s

    def read_limits(self) -> Limits:
        return replace(self.limits, approvals=self.answers.given)

    def tick(
        self, effects: int = 10**9, interrupt: tuple[int, Callable[[], None]] | None = None, number: int | None = None
    ) -> None:
        """Let a controller decide once; without a number it is the one that has the lease."""
        machine, flink, log, actuator = self, self.flink, self.log, self.actuator
        number, ledger = log.lease if number is None else number, flink.ledger
        sent_before = len(flink.sent)
        violations: list[AssertionError] = []
        log.begin(effects, interrupt)

        class Dying:
            """The actuator, whose effects have an edge before and after them."""

            def observe(self, job):
                log.spend()
                return actuator.observe(job)

            def inspect(self, job, job_id):
                log.spend()
                return actuator.inspect(job, job_id)

            def read_failures(self, job, job_id):
                log.spend()
                return actuator.read_failures(job, job_id)

            def trigger_checkpoint(self, job, job_id):
                log.spend()
                actuator.trigger_checkpoint(job, job_id)

            def request(self, job, job_id, parallelism):
                log.spend(may_change=False)
                noted = list(machine.taken_back), list(machine.broke), set(machine.answers.used)
                try:
                    machine.check_request(log.entries[-1], parallelism, number)
                except AssertionError as error:  # a controller takes no error of an actuator for its own
                    violations.append(error)
                sent = ledger.leave(flink.now_s)
                try:
                    actuator.request(job, job_id, parallelism)
                    ledger.answer(sent, is_refused=False)
                except RequestConflictError:
                    sent.has_left = False
                    machine.taken_back, machine.broke, machine.answers.used = noted  # nothing was changed
                    raise
                except RequestRefusedError:
                    ledger.answer(sent, is_refused=True)
                    raise
                except RequestUnknownError:
                    if not flink.is_silent and not flink.problem:  # a look right after would tell
                        ledger.show(flink.told, flink.tell_job().running)
                    raise
                finally:
                    log.spend(may_change=False)

        class Fenced:
            """The log as one controller writes it."""

            def append_all(self, entries):
                log.append_all(entries, number)
                for entry in entries:
                    machine.note_recorded(entry)

            def read_last(self, job):
                return log.read_last(job)

            def read_history(self, job):
                return log.read_history(job)

            def read_open(self):
                return log.read_open()

        def check_lease() -> None:
            if log.lease != number:
                raise LeaseLostError

        controller = JobControl(Dying(), Fenced(), check_lease, self.clock)
        with contextlib.suppress(KilledError, RequestUnknownError, LeaseLostError):
            control_job(controller, JOB, self.desired, self.read_limits, self.outcome, self.late_s)
            ledger.keep()
            self.check_late_job()
        ledger.forget()
        log.begin(10**9, None)
        for violation in violations:
            raise violation
        assert len(flink.sent) - sent_before <= 1

    def check_late_job(self) -> None:
        """Whatever keeps a controller from helping a late job, it is helped within a time, or a person is told why."""
        flink, limits = self.flink, self.limits
        if flink.is_silent or self.late_s is None or self.late_s <= limits.late_after_s:
            self.late_at_s = None
            return
        self.late_at_s = flink.now_s if self.late_at_s is None else self.late_at_s
        if flink.now_s - self.late_at_s <= HEALTH.job_late_s:
            return
        is_helped = any(flink.now_s - at_s <= HEALTH.job_late_s for at_s, _ in flink.sent)
        told = _tell_person(self.log.read_last(JOB), self.clock())
        assert is_helped or any(str(self.log.entries[-1].action.reason) in one for one in told), "nobody is told"

    def note_recorded(self, entry: LogEntry) -> None:
        """Note what the log says that a controller may send, or has not sent."""
        if entry.sends and not entry.answer and entry.action.request is not None:
            self.flink.ledger.record(self.flink.now_s, entry.action.request.target)
        elif entry.answer.startswith("withdrawn"):
            self.flink.ledger.withdraw()

    # what must hold at the moment of a request

    def check_request(self, entry: LogEntry, target: dict[str, int], number: int) -> None:
        flink, limits, request = self.flink, self.limits, entry.action.request
        now_s, before = flink.now_s, entry.case.history
        assert request is not None
        assert dict(request.target) == dict(target), "every request is in the log"
        assert entry.answer == ""
        assert number == self.log.lease, "one writer"
        assert limits.mode in {Mode.AUTO, Mode.APPROVE}
        assert not limits.in_blackout
        assert not limits.is_held
        assert flink.other_autoscaler is None
        assert not flink.problem
        assert set(target) == set(flink.asked), "Flink wants a bound for every vertex"
        assert all(target[vertex] >= lower for vertex, lower in flink.lower.items()), "below a person's lower bound"
        assert not list(flink.ledger.foreign(now_s, limits.foreign_change_hold_s)), "a foreign change is undone"
        is_early = request.is_rollback and entry.action.reason in {"job_fails", "savepoint_in_progress"}
        in_flight = [dict(one.target) for one in flink.ledger.in_flight(now_s)]
        assert in_flight in ([], [dict(request.before)] if is_early else []), "two requests in flight"
        if before.in_flight is not None:  # only to take it back, after its time has passed
            assert request.is_rollback
            assert self.clock() >= before.in_flight.deadline_s or is_early
        if request.is_rollback:
            assert flink.ledger.is_own(), "what is taken back is the last own request"
            assert flink.asked == dict(request.before)
            if entry.action.reason == "savepoint_in_progress":
                assert flink.checkpoints == "savepoint", "there is no savepoint to spare"
                return
            if entry.action.reason == "job_fails":  # blocked until a person lifts it
                assert max(request.before.values()) >= flink.breaks_at or flink.failures, "the job did not fail"
                self.broke.append(dict(request.before))
            else:
                self.taken_back.append((now_s, dict(request.before)))
            return
        assert target not in self.broke, "what broke the job is tried again before a person has said so"
        self._check_readiness(dict(target), entry.action.reason)
        self._check_slots(dict(target))
        sent_s = [at_s for at_s, _ in flink.sent]
        assert sum(now_s - at_s < HOUR_S for at_s in sent_s) < limits.rescales_per_hour
        assert sum(now_s - at_s < DAY_S for at_s in sent_s) < limits.rescales_per_day
        assert not any(one == target and now_s - at_s < limits.block_s for at_s, one in self.taken_back)
        running = {**flink.asked, **flink.tell_job().running}
        for vertex, pinned in limits.pin_of(target).items():
            if vertex in target:
                low, high = sorted((pinned, running[vertex]))
                assert target[vertex] <= high
                assert target[vertex] >= low or "d" in target  # two groups may not both have what is pinned
        if limits.mode is Mode.APPROVE and entry.action.reason != "pin":
            self.answers.check(request.step_id, flink.tell_job(), target, self.clock())

    def _check_readiness(self, target: dict[str, int], reason: str) -> None:
        """Nothing that restarts the job is sent while that would harm it; a saving least of all."""
        flink, observed = self.flink, self.flink.tell_job()
        added = observed.slots_of(target) - observed.slots
        assert flink.checkpoints not in {"savepoint", "off", "untold"}
        assert flink.checkpoints != "failing" or observed.is_restarting or (added > 0 and reason == "reactive")
        assert flink.heap_share <= self.limits.guards.heap_share_max or added >= 0

    def _check_slots(self, target: dict[str, int]) -> None:
        observed, limits = self.flink.tell_job(), self.limits
        now, after = observed.slots, observed.slots_of(target)
        assert all(count <= observed.max_parallelism.get(vertex, count) for vertex, count in target.items())
        assert after <= limits.slots_max or after < now
        assert after >= min(limits.slots_min, now + limits.step_up_max_slots) or "d" in target
        assert after - now <= limits.step_up_max_slots
        assert now - after <= limits.step_down_max_slots or after == 1
        if after > now:
            assert observed.is_elastic or (self.flink.tells_free and after - now <= (observed.free_slots or 0))
            assert after - now + (observed.cluster_slots_used or 0) <= limits.cluster_slots_max
        if after < now:
            assert limits.allows_falls
            assert (
                observed.is_elastic
                or observed.free_slots
                or (observed.free_slots == 0 and observed.is_elastic is False)
            )

    # what happens

    @rule(
        counts=COUNTS,
        origin=st.sampled_from([Origin.PLAN, Origin.REACTIVE]),
        objection=st.sampled_from(["", "", "", "", "stale_plan"]),
        manner=st.sampled_from(["accept"] * 5 + MANNERS),
        hours=st.sampled_from([0.0, 0.05, 0.05, 0.2, 1.1]),
        effects=st.sampled_from([10**9] * 4 + list(range(13))),
        count=st.integers(0, 4),
    )
    def a_job_needs_something_else(
        self, counts: list[int], origin: Origin, objection: str, manner: str, hours: float, effects: int, count: int
    ) -> None:
        self.flink.advance(hours * HOUR_S)
        self._want(counts, origin, objection)
        self.flink.manner = manner
        self.tick(effects)
        self._go_on(count)

    @rule(
        counts=COUNTS, edge=st.integers(0, 5), event=st.sampled_from(EVENTS), effects=st.sampled_from([10**9] * 3 + [6])
    )
    def the_world_changes_while_a_controller_decides(
        self, counts: list[int], edge: int, event: str, effects: int
    ) -> None:
        self.flink.advance(130.0)
        self._want(counts, Origin.PLAN, "")
        self.tick(effects, interrupt=(edge, lambda: self._change(event)))
        self._go_on(2)

    def _want(self, counts: list[int], origin: Origin, objection: str) -> None:
        self.steps += 1
        wanted = dict(zip(self.flink.vertices, counts, strict=False))
        valid_until_s = self.clock() + 2 * HOUR_S
        self.desired = Intention(wanted, origin, f"step-{self.steps}", "tested", valid_until_s, objection=objection)

    def _go_on(self, count: int) -> None:
        for _ in range(count):
            self.flink.advance(TICK_S)
            self.tick()

    def redeploy(self, graph: int, parallelism: int | Mapping[str, int]) -> None:
        """Let somebody deploy the job anew; what was not tried again for a time may be tried with another job."""
        self.jobs += 1
        self.taken_back.clear()
        self.flink.redeploy(self.jobs, graph, parallelism)

    def _change(self, event: str) -> None:
        limits = {"hold": {"is_held": True}, "off": {"mode": Mode.OFF}, "dry": {"mode": Mode.DRY_RUN}}
        limits["blackout"] = {"in_blackout": True}
        if event in limits:
            self.limits = replace(self.limits, **limits[event])
        elif event == "person":
            self.flink.rescale_by_person([5, 5, 5])
        elif event == "lease":
            self.log.lease += 1
        elif event == "other":
            self.flink.other_autoscaler = "somebody's autoscaler"
        elif self.desired is not None:
            self._answer(is_approved=False)

    @rule(counts=st.lists(st.integers(1, 4), min_size=3, max_size=3))
    def several_ticks(self, counts: list[int]) -> None:
        self._go_on(sum(counts))

    @rule(hours=st.sampled_from([1.1, 5.0]), counts=COUNTS, manner=st.sampled_from(["accept", *MANNERS]))
    def all_is_well_for_hours(self, hours: float, counts: list[int], manner: str) -> None:
        self._heal()
        self._go_on(1)  # what somebody else has changed is seen
        self.flink.advance(hours * HOUR_S)
        self._want(counts, Origin.REACTIVE, "")
        self.flink.manner = manner
        self._go_on(2)

    @rule(number=st.sampled_from([-1, 0]))
    def the_lease_moves(self, number: int) -> None:
        sent = len(self.flink.sent)
        self.log.lease += 1
        self.tick(number=self.log.lease - 1)
        assert len(self.flink.sent) == sent
        self._go_on(number + 1)

    @rule(late_s=st.sampled_from([0.0, 40.0, 70.0, 700.0, None]), count=st.integers(0, 20))
    def records_wait(self, late_s: float | None, count: int) -> None:
        self.late_s = late_s
        self._go_on(count)

    @rule(seconds=st.sampled_from([30.0, 2 * HOUR_S]))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.behind_s, self.late_at_s = self.behind_s + seconds, None
        self.flink.ledger.set_clock_back(self.flink.now_s)
        self._go_on(1)

    @rule(counts=COUNTS)
    def a_person_rescales(self, counts: list[int]) -> None:
        self.flink.rescale_by_person(counts)
        self._go_on(1)

    @rule(
        counts=COUNTS,
        case=st.sampled_from(PERSONS),
        place=st.integers(0, 4),
        is_healed=st.sampled_from([True, True, False]),
    )
    def a_person_acts_on_what_a_controller_asks_for(
        self, counts: list[int], case: tuple[str, int, str, float], place: int, is_healed: bool
    ) -> None:
        """They ask again for what was in force before, or for what was tried some time, in flight or much later."""
        if is_healed:
            self._heal()
            self._go_on(1)
            self.flink.advance(2.1 * HOUR_S)
        manner, ticks, act, hours = case
        self.flink.advance(130.0)
        self._want(counts, Origin.REACTIVE, "")
        self.flink.manner = manner
        self._go_on(ticks)
        if ticks > 1:
            self.desired = None
        self.flink.advance(hours * HOUR_S)
        if act == "takes back":
            self.flink.take_back_by_person()
        elif act == "takes the next back":
            self._want([max(one - 2, 1) for one in counts], Origin.REACTIVE, "")
            self.flink.manner = "accept"
            self._go_on(1)
            self.flink.take_back_by_person()
        elif act == "repeats":
            self.flink.repeat_by_person(place % 2)
        elif act == "sets a lower bound":
            self.flink.set_lower_by_person(place)
        else:
            tried = [one for _, one in self.flink.sent if set(one) == set(self.flink.vertices)]
            self.redeploy(self.flink.graph, tried[-1] if tried else 2)
        self._go_on(1)
        self._want([max(one - 1, 1) for one in counts], Origin.REACTIVE, "")
        self._go_on(3)
        if place > 2:  # when it is not held any more
            self.flink.advance(1.1 * HOUR_S)
            self._want([1, 1, 1], Origin.REACTIVE, "")
            self._go_on(2)

    @rule(
        event=st.sampled_from(
            ["fails", "recovers", "silent", "other", "redeployed", "slots", "kind", "problem", "finished"]
        ),
        graph=st.integers(0, 1),
        count=st.integers(1, SLOTS),
        others=st.integers(0, 3),
        is_elastic=st.sampled_from([None, False, True]),
    )
    def the_cluster_changes(self, event: str, graph: int, count: int, others: int, is_elastic: bool | None) -> None:
        flink = self.flink
        if event == "fails":
            flink.fail()
        elif event == "recovers":
            flink.recover()
        elif event == "silent":
            flink.is_silent = count > 4
        elif event == "other":
            flink.other_autoscaler = "somebody's autoscaler" if count > 4 else None
        elif event == "redeployed":
            self.redeploy(graph, min(count, 3))
        elif event == "problem":
            flink.problem = ["", "ambiguous_name", "unreadable_reply", "missing_requirement"][others]
        elif event == "finished":
            flink.finished = frozenset({"a"} if count > 4 else ())
        elif event == "slots":
            flink.slots, flink.others = max(count, 2), others
        else:
            flink.is_elastic, flink.tells_free = is_elastic, others > 0
        self._go_on(1)

    @rule(
        checkpoints=st.sampled_from(["fine", "fine", "savepoint", "off", "failing", "untold"]),
        heap_share=st.sampled_from([0.5, 0.5, 0.95]),
        count=st.integers(1, 6),
    )
    def the_checkpoints_change_for_a_while(self, checkpoints: str, heap_share: float, count: int) -> None:
        self.flink.checkpoints, self.flink.heap_share = checkpoints, heap_share
        self._go_on(count)
        self.flink.checkpoints, self.flink.heap_share = "fine", 0.5

    @rule(breaks_at=st.sampled_from([3, 5, 10**6]), counts=COUNTS)
    def the_job_cannot_run_at_any_parallelism(self, breaks_at: int, counts: list[int]) -> None:
        self.flink.breaks_at = breaks_at
        self._want(counts, Origin.REACTIVE, "")
        self._go_on(3)
        self.flink.breaks_at = 10**6

    @rule(
        mode=st.sampled_from([*Mode, Mode.AUTO, Mode.AUTO, Mode.APPROVE]),
        in_blackout=st.sampled_from([False, False, True]),
        is_held=st.sampled_from([False, False, True]),
    )
    def a_person_sets_permission(self, mode: Mode, in_blackout: bool, is_held: bool) -> None:
        self.limits = replace(self.limits, mode=mode, in_blackout=in_blackout, is_held=is_held)
        self._go_on(1)

    @rule(
        slots_max=st.sampled_from([4, SLOTS]),
        slots_min=st.integers(1, 3),
        down=st.sampled_from([1, 3, math.inf]),
        allows_falls=st.booleans(),
        pin=st.sampled_from([None, None, {"a": 3}, {"a": 2, "b": 4}]),
        pin_all=st.sampled_from([None, None, None, 3]),
        budget=st.sampled_from([5.0, math.inf]),
    )
    def a_person_sets_limits(
        self,
        slots_max: int,
        slots_min: int,
        down: float,
        allows_falls: bool,
        pin: dict[str, int] | None,
        pin_all: int | None,
        budget: float,
    ) -> None:
        self.limits = replace(
            self.limits,
            slots_max=slots_max,
            slots_min=slots_min,
            step_down_max_slots=down,
            allows_falls=allows_falls,
            pin=pin if pin is None or set(pin) <= set(self.flink.vertices) else None,
            pin_all=pin_all,
            cluster_slots_max=budget,
        )
        self._go_on(1)

    @precondition(lambda self: self.desired is not None)
    @rule(is_approved=st.sampled_from([True, True, False]), ahead_s=st.sampled_from([0.0, 0.0, 900.0, -900.0]))
    def a_person_answers(self, is_approved: bool, ahead_s: float) -> None:
        self._answer(is_approved=is_approved, ahead_s=ahead_s)
        self._go_on(3)

    @precondition(lambda self: self.desired is not None)
    @rule(counts=COUNTS, answers=st.lists(st.booleans(), min_size=1, max_size=3), is_lifted=st.booleans())
    def persons_answer_each_step(self, counts: list[int], answers: list[bool], is_lifted: bool) -> None:
        """Steps that differ by little are answered, sent and wanted again."""
        self._heal()
        self._go_on(1)
        self.flink.advance(1.1 * HOUR_S)
        self.limits = replace(BASE, mode=Mode.APPROVE)
        for is_approved in answers:
            self._want(counts, Origin.REACTIVE, "")
            self._answer(is_approved=is_approved)
            self._want([max(one - 1, 1) for one in counts], Origin.REACTIVE, "")
            self._go_on(2)
            if is_lifted:
                self.answers.lift()
            self.flink.rescale_by_person([2, 2, 2])
            self._go_on(1)
            self.flink.advance(1.1 * HOUR_S)
            self._go_on(2)

    def _answer(self, *, is_approved: bool, ahead_s: float = 0.0) -> None:
        """Say yes or no to the step as it would be shown now."""
        assert self.desired is not None
        wanted = {**self.desired.parallelism, **self.limits.pin_of(self.desired.parallelism)}
        target = bound_target(wanted, self.flink.tell_job(), self.limits)
        at_s = self.clock() + ahead_s
        self.answers.give(self.desired.step_id, dict(self.flink.asked), target, is_approved, at_s, at_s + 3 * HOUR_S)

    @rule(is_worse=st.sampled_from([None, True, False]))
    def the_outcome_is_judged(self, is_worse: bool | None) -> None:
        self.outcome = OutcomeCheck(is_worse, "measured")
        self._go_on(1)

    def _heal(self) -> None:
        flink = self.flink
        flink.slots, flink.is_silent, flink.manner, flink.others = SLOTS, False, "accept", 0
        flink.is_elastic, flink.tells_free, flink.other_autoscaler = False, True, None
        flink.problem, flink.finished = "", frozenset()
        flink.checkpoints, flink.heap_share, flink.breaks_at = "fine", 0.5, 10**6
        flink.set_lower_by_person(1)
        flink.recover()
        self.limits, self.outcome, self.broke = BASE, OutcomeCheck(), []
        blocked = self.log.read_history(JOB).blocked  # a person lifts what waits for one
        self.limits = replace(BASE, lifted_blocks=tuple(one.block_id for one in blocked if one.block_id))

    # what must hold

    @invariant()
    def every_decision_can_be_made_again(self) -> None:
        made, self.judged = self.log.entries[self.judged :], len(self.log.entries)
        for entry in made[-2:]:
            assert dump(reconcile(load(type(entry.case), dump(entry.case)))) == dump(entry.action)

    @invariant()
    def a_rescale_is_taken_back_once(self) -> None:
        sent: set[str] = set()
        for entry in self.log.entries:
            request, is_withdrawn = entry.action.request, entry.answer.startswith("withdrawn")
            if request is None or not entry.sends or (entry.answer and not is_withdrawn):
                continue
            if entry.action.verb is Verb.RESCALE:
                (sent.discard if is_withdrawn else sent.add)(request.step_id)
            elif entry.action.reason == "worse_than_before":
                (sent.add if is_withdrawn else sent.remove)(request.step_id.removesuffix("-rollback"))

    def teardown(self) -> None:
        """Whatever has happened: when all is well again, what is wanted is reached in bounded time."""
        self._heal()
        flink = self.flink
        reached = 0
        for _ in range(LONGEST_TICKS):
            wanted = WANTED[flink.graph]
            self.desired = Intention(wanted, Origin.PLAN, "last", "wanted", self.clock() + HOUR_S)
            self.tick()
            flink.advance(600.0)
            is_reached = dict(flink.tell_job().running) == wanted and self.log.read_history(JOB).in_flight is None
            reached = reached + 1 if is_reached else 0
            if reached == QUIET_TICKS:
                break
        observed = flink.observe(JOB)
        history = self.log.read_history(JOB)
        assert history.in_flight is None
        assert dict(observed.running) == bound_target(wanted, observed, BASE) == wanted


def _tell_person(last: LogEntry | None, now_s: float) -> list[str]:
    """Return what a person is told of a job that is late, as `tidewise status` and messages have it."""
    if last is None:
        return []
    (row,) = arrow_rows(CONTROL_LOG, [row_of(last, 1, 1, "")]).to_pylist()
    cluster, _, job = JOB.partition("/")
    facts = JobStatus(cluster, job, "auto", "", None, decision_of(row), None, "", "", None)
    return [one.detail for one in judge_jobs([facts], [], HEALTH, now_s) if one.name == Fault.JOB_LATE]


def settings_of(examples: int) -> settings:
    """Return how many transitions are tried."""
    return settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        phases=PHASES,
        derandomize=examples <= 40,
        suppress_health_check=list(HealthCheck),
    )
