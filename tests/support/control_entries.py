"""Entries of the controller's log for tests: any case that Hypothesis can think of, and a plain one."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from controller.log.control_log import LogEntry, Provenance
from models.control.approval import StepApproval
from models.control.case import Case, OutcomeCheck
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.readiness import Checkpoints, Failure, Guards, MemoryUsage, Readiness
from models.control.reconcile import reconcile
from models.control.state import (
    BlockedTarget,
    Intention,
    JobHistory,
    LateRequest,
    Mode,
    ObservedJob,
    Origin,
    Request,
    UsedApproval,
)
from models.control.undo import Undo

NOW_S = 1_795_000_000.0
TWO, FOUR = ({"a": n, "b": n} for n in (2, 4))

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_times = st.floats(NOW_S - 1e6, NOW_S + 1e6, allow_nan=False)
_vertices = st.sampled_from([("a", "b"), ("a",), ("a", "b", "Foo$$Lambda$14/0x00$x", '"<b>" 😀')])
_amounts = st.one_of(st.just(math.inf), st.floats(0, 1e6))


def _parallelisms(vertices: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({vertex: st.integers(1, 9) for vertex in vertices})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case; often one of a job whose requirements are known, so that all rules are reached."""
    vertices = draw(_vertices)
    counts = _parallelisms(vertices)
    requested = draw(st.one_of(st.none(), counts))
    job_id = draw(st.sampled_from(["j", "j", "j", "k", None]))
    running = draw(st.one_of(st.just({}), st.just(requested or {}), counts))
    failures = st.builds(Failure, at_s=_times, cause=_texts, kind=_texts, lacks_slots=st.booleans())
    some_failures = st.one_of(st.none(), st.lists(failures, max_size=3).map(tuple))
    checkpoints = st.builds(
        Checkpoints,
        interval_s=st.one_of(st.none(), st.floats(0, 1e6)),
        completed_at_s=st.one_of(st.none(), _times),
        is_failing=st.booleans(),
        savepoints=st.sampled_from([0, 0, 1, None]),
        state_bytes=st.one_of(st.none(), st.integers(0, 2**60)),
    )
    readiness = st.builds(
        Readiness,
        checkpoints=st.one_of(st.none(), checkpoints),
        memory=st.one_of(st.none(), st.builds(MemoryUsage, st.floats(0, 2), st.one_of(st.none(), st.floats(0, 2)))),
        failures=some_failures,
        now_s=st.one_of(st.none(), _times),
        restarts=st.booleans(),
        wait_s=st.floats(0, 1e6),
        wait_detail=_texts,
        waits_for_checkpoint=st.booleans(),
        asked_ago_s=st.one_of(st.none(), st.floats(0, 1e4)),
        other_autoscaler=st.sampled_from([None, None, "another"]),
        unknown=_texts,
    )
    observed = ObservedJob(
        job_id,
        draw(st.sampled_from(["RUNNING", "RESTARTING", "FAILED"])),
        running,
        requested,
        draw(st.one_of(st.just({}), counts)),
        draw(st.sampled_from([{}, {vertices[0]: "own"}])),
        draw(st.one_of(st.none(), st.integers(0, 40))),
        draw(st.booleans()),
        draw(st.sampled_from([None, None, None, "another"])),
        autoscaler_unknown=draw(st.sampled_from(["", "", "", "not told"])),
        readiness=draw(st.one_of(st.none(), readiness)),
        failures=draw(some_failures),
        lower_bounds=draw(st.one_of(st.none(), st.just(dict.fromkeys(vertices, 1)), counts)),
    )
    requests = st.builds(
        Request,
        step_id=_texts,
        job_id=st.just("j"),
        target=counts,
        before=st.just(requested or {}) | counts,
        running_before=counts,
        sent_at_s=_times,
        deadline_s=_times,
        settle_s=st.floats(0, 1e4),
        is_rollback=st.booleans(),
        failures_before=st.sampled_from([None, (), ("x",)]),
        failed_until_s=st.one_of(st.none(), _times),
        wait_detail=_texts,
        forced_at_s=st.one_of(st.none(), _times),
        arrived_at_s=st.none() | _times,
        slots_came_at_s=st.none() | _times | st.just(math.inf),
    )
    history = JobHistory(
        job_id="j",
        in_flight=draw(st.one_of(st.none(), st.none(), requests)),
        known_requested=draw(st.one_of(st.none(), st.just(requested), counts)),
        late_requests=tuple(draw(st.lists(st.builds(LateRequest, counts, _times), max_size=2))),
        request_times_s=tuple(draw(st.lists(_times, max_size=3))),
        last_change_at_s=draw(st.one_of(st.none(), _times)),
        last_good=draw(st.one_of(st.none(), counts)),
        to_judge=draw(st.one_of(st.none(), requests)),
        confirmed_at_s=draw(st.one_of(st.none(), _times)),
        blocked=tuple(draw(st.lists(st.builds(BlockedTarget, counts, _times | st.just(math.inf), _texts), max_size=2))),
        held_until_s=draw(st.sampled_from([0.0, 0.0, NOW_S + 1e5])),
        held_because=draw(_texts),
        unfilled=draw(st.one_of(st.none(), st.none(), requests)),
        known_lower=draw(st.one_of(st.none(), st.none(), counts)),
        used_approvals=draw(st.one_of(st.none(), st.just((UsedApproval("1", NOW_S),)))),
    )
    answers = st.builds(
        StepApproval, _texts, counts, counts, st.booleans(), _times, _times, _texts, st.sampled_from(["", "1", "2"])
    )
    limits = Limits(
        mode=draw(st.sampled_from(list(Mode))),
        slots_min=draw(st.integers(1, 3)),
        slots_max=draw(st.integers(3, 64)),
        step_up_max_slots=draw(_amounts),
        step_down_max_slots=draw(_amounts),
        step_up_max_share=draw(_amounts),
        step_down_max_share=draw(_amounts),
        rescales_per_hour=draw(_amounts),
        rescales_per_day=draw(_amounts),
        cooldown_s=draw(st.floats(0, 1e5)),
        in_blackout=draw(st.booleans()),
        allows_falls=draw(st.booleans()),
        pin=draw(st.one_of(st.none(), st.none(), counts)),
        pin_all=draw(st.one_of(st.none(), st.none(), st.integers(1, 9))),
        is_held=draw(st.booleans()),
        settings_changed=draw(st.sampled_from([False, False, False, True])),
        cluster_slots_max=draw(_amounts),
        approvals=tuple(draw(st.lists(answers, max_size=2))),
        guards=draw(st.builds(Guards, st.one_of(st.none(), st.floats(1, 1e6)), st.booleans())),
        lifted_blocks=tuple(draw(st.lists(_texts, max_size=2))),
        undo=draw(st.one_of(st.none(), st.builds(Undo, _texts, _texts, counts, counts, _texts, _texts, _times))),
        approval_band=draw(st.floats(0, 1)),
        operator_min=draw(st.just({}) | counts),
        operator_max=draw(st.just({}) | counts),
        left_alone=draw(st.sampled_from([(), (), (vertices[0],)])),
        mode_reason=draw(_texts),
        hold_reason=draw(_texts),
    )
    intentions = st.builds(
        Intention,
        parallelism=counts,
        origin=st.sampled_from(list(Origin)),
        step_id=_texts,
        reason=_texts,
        valid_until_s=_times | st.just(math.inf),
        settle_s=st.floats(0, 1e4),
        objection=st.sampled_from(["", "stale_plan"]),
        objection_detail=_texts,
    )
    outcome = draw(st.builds(OutcomeCheck, st.sampled_from([None, True, False]), _texts))
    return Case(draw(_times), draw(st.one_of(st.none(), intentions)), observed, history, limits, outcome)


def entry_for(case: Case, job: str = "live/orders", answer: str = "", provenance: Provenance | None = None) -> LogEntry:
    """Return the entry of the decision on a case."""
    action = reconcile(case)
    given = {} if provenance is None else {"provenance": provenance}
    answered_at_s = case.now_s + 1.5 if answer else None
    return LogEntry(job, case, action, advance_history(case, action), answer, answered_at_s, **given)


def plain_case(now_s: float = NOW_S, step_id: str = "step-1", mode: Mode = Mode.AUTO, **changes: object) -> Case:
    """Return the case of a job that runs at two and is wanted at four."""
    values: dict[str, object] = {
        "desired": Intention(FOUR, Origin.PLAN, step_id, "load rises", now_s + 600),
        "observed": ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8),
        "history": JobHistory(job_id="j", known_requested=TWO),
        "limits": Limits(mode=mode),
    }
    return Case(now_s=now_s, **{**values, **changes})  # type: ignore[arg-type]
