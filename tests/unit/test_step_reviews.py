"""Rules that a team has installed: what they are shown, what they may say, and that each failure of theirs vetoes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from control_entries import NOW_S, TWO, plain_case
from deltalake import DeltaTable
from single_job import control_job
from willing_flink import WillingFlink

from controller.decisions import step_reviews
from controller.decisions.job_control import JobControl, JobTask
from controller.decisions.step_reviews import PAUSE_S, NamedReview, StepReviews, load_reviews
from controller.log.control_log import Provenance
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.log_codec import action_of, case_of
from include.settings import PROJECT
from include.tables import CONTROL_LOG
from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, Mode, ObservedJob, Origin
from models.control.step_review import Review, Situation, Step, let_pass, lower, veto

NAMES = {"a": "Source: orders", "b": "enrich"}
JOB, BROKEN = "live/orders", "broken = team_rules:review"
CASE = plain_case()


def reviewed(*reviews: Callable[[Step, Situation], Any], case: Case = CASE) -> Case:
    named = [NamedReview(f"rule {number}", review) for number, review in enumerate(reviews, 1)]
    return StepReviews(tuple(named))(JOB, case, NAMES)


def wanted_of(case: Case) -> Intention:
    assert case.desired is not None
    return case.desired


def test_a_review_is_shown_the_step_and_the_situation_by_the_names_of_operators() -> None:
    observed: list[tuple[Step, Situation]] = []

    def look(step: Step, situation: Situation) -> Review:
        observed.append((step, situation))
        return let_pass()

    assert reviewed(look) == CASE
    ((step, situation),) = observed
    assert step == Step(
        cluster="live",
        job="orders",
        step_id="step-1",
        origin="plan",
        reason="load rises",
        before={"Source: orders": 2, "enrich": 2},
        target={"Source: orders": 4, "enrich": 4},
        slots_before=2,
        slots_target=4,
    )
    assert situation == Situation(
        now_s=NOW_S,
        state="RUNNING",
        running={"Source: orders": 2, "enrich": 2},
        free_slots=8,
        cluster_slots_used=None,
        is_elastic=False,
        last_change_at_s=None,
        requests_last_day=0,
        slots_max=64,
    )


def test_a_step_is_lowered_as_far_as_the_strictest_review_says() -> None:
    case = reviewed(
        lambda *_: lower({"enrich": 3}, "at most 3 before noon"),
        lambda *_: lower({"Source: orders": 2}, "few partitions"),
    )
    assert wanted_of(case).parallelism == {"a": 2, "b": 3}
    action = reconcile(case)
    assert (action.verb, action.reason) == (Verb.RESCALE, "plan")
    assert action.detail == (
        "load rises; lowered by review rule 1: at most 3 before noon; lowered by review rule 2: few partitions"
    )
    assert action.request is not None
    assert action.request.target == {"a": 2, "b": 3}


def test_a_later_review_is_shown_what_an_earlier_one_left() -> None:
    targets = []

    def look(step: Step, _: Situation) -> Review:
        targets.append(dict(step.target))
        return let_pass()

    reviewed(lambda *_: lower({"enrich": 3}, ""), look)
    assert targets == [{"Source: orders": 4, "enrich": 3}]


def test_a_veto_is_a_refusal_with_the_name_of_the_review_and_its_reason() -> None:
    asked: list[str] = []
    case = reviewed(lambda *_: veto("no rises during\n the sale"), lambda *_: asked.append("second"))
    action = reconcile(case)
    assert (action.verb, action.reason, action.request) == (Verb.REFUSE, "vetoed", None)
    assert action.detail == "review rule 1: no rises during the sale"
    assert asked == []


def test_a_step_of_which_nothing_is_left_is_vetoed() -> None:
    action = reconcile(reviewed(lambda *_: lower({"enrich": 2, "Source: orders": 2}, "enough")))
    assert (action.reason, action.detail) == ("vetoed", "review rule 1: enough; nothing of the step is left")


def raise_error(*_: object) -> Review:
    raise ZeroDivisionError("1 / 0")


def end_process(*_: object) -> Review:
    sys.exit(0)


def change_what_it_is_given(step: Step, _: Situation) -> Review:
    step.target["enrich"] = 99  # type: ignore[index]
    return lower({"enrich": 99}, "more")


class Odd:
    """A mapping that is none."""

    def __iter__(self) -> None:
        raise RuntimeError("odd")


@pytest.mark.covers("harm review-fails", "harm review-raises")
@pytest.mark.parametrize(
    ("review", "why"),
    [
        (lambda *_: lower({"enrich": 5}, ""), "enrich: 5 is not between 2, which is left to it, and the step's 4"),
        (lambda *_: lower({"enrich": 1}, ""), "enrich: 1 is not between 2"),
        (lambda *_: lower({"enrich": 0}, ""), "enrich: 0 is not between 2"),
        (lambda *_: lower({"enrich": True}, ""), "enrich: True is no whole number"),
        (lambda *_: lower({"enrich": 3.0}, ""), "enrich: 3.0 is no whole number"),
        (lambda *_: lower({"enrich": float("nan")}, ""), "enrich: nan is no whole number"),
        (lambda *_: lower({"b": 3}, ""), "the step has no operator 'b'"),
        (lambda *_: Review(is_allowed=True, target=None, reason=""), "cannot be read"),
        (lambda *_: Review(is_allowed=True, target=Odd(), reason=""), "cannot be read"),
        (lambda *_: Review(is_allowed=None, target={}, reason=""), "returned Review, which is no Review as"),
        (lambda *_: Review(is_allowed=True, target={}, reason=None), "returned Review, which is no Review as"),
        (lambda *_: None, "returned NoneType"),
        (lambda *_: True, "returned bool"),
        (lambda *_: {"enrich": 3}, "returned dict"),
        (raise_error, "raised ZeroDivisionError: 1 / 0"),
        (end_process, "raised SystemExit: 0"),
        (change_what_it_is_given, "enrich: 99 is not between 2"),
        (let_pass, "raised TypeError"),
    ],
)
def test_whatever_else_a_review_does_is_a_veto_by_its_name(review: Any, why: str) -> None:
    case = reviewed(review)
    action = reconcile(case)
    assert (action.verb, action.reason, action.request) == (Verb.REFUSE, "review_failed", None)
    assert action.detail.startswith("review rule 1: ")
    assert why in action.detail
    assert wanted_of(case).parallelism == wanted_of(CASE).parallelism


def test_a_fall_may_be_vetoed_and_not_be_made_larger() -> None:
    fall = plain_case(desired=Intention({"a": 1, "b": 1}, Origin.REACTIVE, "r", "little load", NOW_S + 600))
    assert reconcile(reviewed(lambda *_: let_pass(), case=fall)).verb is Verb.RESCALE
    assert reconcile(reviewed(lambda *_: veto("month's end"), case=fall)).reason == "vetoed"
    retained = reviewed(lambda *_: lower({"enrich": 2}, "keep two"), case=fall)
    assert reconcile(retained).reason == "review_failed"  # two is more than the step's one


def test_no_review_is_asked_of_what_changes_nothing_or_a_person_demands() -> None:
    asked: list[str] = []
    wanted = wanted_of(CASE)
    cases = [
        replace(CASE, desired=None),
        replace(CASE, desired=replace(wanted, parallelism=TWO)),
        replace(CASE, desired=replace(wanted, objection="stale_plan")),
        replace(CASE, desired=replace(wanted, origin=Origin.PIN)),
        replace(CASE, desired=replace(wanted, origin=Origin.RESTORE)),
        replace(CASE, observed=replace(CASE.observed, requested=None)),
    ]
    for case in cases:
        assert reviewed(lambda *_: asked.append("asked"), case=case) == case
    assert asked == []


def test_a_person_s_pin_outweighs_a_veto() -> None:
    pinned = replace(CASE, limits=Limits(mode=Mode.AUTO, pin_all=3))
    action = reconcile(reviewed(lambda *_: veto("no"), case=pinned))
    assert (action.verb, action.reason) == (Verb.RESCALE, "pin")


def test_limits_bound_what_a_review_has_let_pass() -> None:
    bounded = replace(CASE, limits=Limits(mode=Mode.AUTO, slots_max=3))
    action = reconcile(reviewed(lambda *_: let_pass(), case=bounded))
    assert action.request is not None
    assert action.request.target == {"a": 3, "b": 3}


@pytest.mark.covers("harm review-fails")
def test_a_review_that_takes_too_long_vetoes_and_is_left_alone_for_a_while() -> None:
    now_s, calls, may_end, others = [0.0], [], threading.Event(), set(threading.enumerate())

    def wait(*_: object) -> Review:
        calls.append(1)
        may_end.wait(60)
        return let_pass()

    def end() -> None:
        """Have the call that waits come to its end."""
        may_end.set()
        for thread in set(threading.enumerate()) - others:
            thread.join(60)
        may_end.clear()

    slow = NamedReview("slow", wait, timeout_s=0.05, monotonic=lambda: now_s[0])
    reviews = StepReviews((slow,))
    for _ in range(50):  # a fleet: no job waits for it again
        action = reconcile(reviews(JOB, CASE, NAMES))
        assert (action.reason, action.detail[:32]) == ("review_failed", "review slow: took longer than 0.")
    assert len(calls) == 1
    now_s[0] = PAUSE_S + 1
    assert reconcile(reviews(JOB, CASE, NAMES)).reason == "review_failed"
    assert len(calls) == 1  # the first call has not come to an end
    end()
    reviews(JOB, CASE, NAMES)
    assert len(calls) == 2
    end()  # it has ended, and is still left alone
    reviews(JOB, CASE, NAMES)
    assert len(calls) == 2


def test_namesakes_go_by_their_ids() -> None:
    observed = []

    def look(step: Step, _: Situation) -> Review:
        observed.append(dict(step.target))
        return let_pass()

    StepReviews((NamedReview("look", look),))(JOB, CASE, {"a": "map", "b": "map"})
    StepReviews((NamedReview("look", look),))(JOB, CASE, {"a": "b"})
    assert observed == [{"a": 4, "b": 4}, {"a": 4, "b": 4}]


class Flink(WillingFlink):
    """A cluster that does what it is asked for at once."""

    def __init__(self) -> None:
        self.parallelism, self.sent = dict(TWO), []

    def observe(self, job: str) -> ObservedJob:
        return ObservedJob("j", "RUNNING", dict(self.parallelism), dict(self.parallelism), free_slots=8)

    def request(self, job: str, job_id: str, parallelism: dict[str, int]) -> None:
        self.sent.append(dict(parallelism))
        self.parallelism = dict(parallelism)


class HeldLease:
    number = first_number = 1

    def check(self) -> None:
        return


def install(site: Path, source: str, entries: str) -> None:
    """Install a distribution as pip leaves one: a module, and its dist-info."""
    info = site / "team_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "team_rules.py").write_text(source)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tidewise.step_review]\n{entries}")
    (info / "RECORD").write_text("")


def worked_example() -> tuple[str, str]:
    """Return the module and the entry points of the example in docs/limits.md."""
    text = (PROJECT / "docs" / "limits.md").read_text()
    source = text.split("```python\n", 1)[1].split("```", 1)[0]
    entries = text.split('[project.entry-points."tidewise.step_review"]\n', 1)[1].split("```", 1)[0]
    return source, entries.replace('"', "")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "team_rules", raising=False)
    return tmp_path / "site"


def control(lake: Path, flink: Flink, now_s: float) -> list[dict[str, Any]]:
    """Decide once on a step, with what is installed; returns the rows of the log."""
    log = DeltaControlLog(open_control_log(str(lake)), "live", HeldLease(), lambda: now_s)
    controller = JobControl(flink, log, lambda: None, lambda: now_s, review=load_reviews())
    auto = Limits(mode=Mode.AUTO)
    control_job(controller, JOB, None, lambda: auto)
    wanted = Intention({"a": 8, "b": 8}, Origin.PLAN, "step-1", "load rises", now_s + 600)
    controller.control_jobs([JobTask(JOB, wanted, lambda: auto, provenance=Provenance(operators=NAMES))])
    rows = DeltaTable(str(lake / CONTROL_LOG.relative_path)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["entry"])


def test_the_worked_example_of_the_docs_is_found_asked_and_written_down(site: Path, tmp_path: Path) -> None:
    install(site, *worked_example())
    assert [one.name for one in load_reviews().reviews] == ["trading_hours"]
    flink, noon_s = Flink(), NOW_S - NOW_S % 86_400 + 12 * 3600
    rows = control(tmp_path / "noon", flink, noon_s)
    assert flink.sent == [{"a": 5, "b": 5}]
    assert (
        rows[-1]["detail"] == "load rises; lowered by review trading_hours: at most 3 more at once while people trade"
    )
    for row in rows:
        assert reconcile(case_of(row)) == action_of(row)  # without the rule, from the log alone
    flink = Flink()
    (row,) = [one for one in control(tmp_path / "night", flink, noon_s + 11 * 3600) if one["verb"] == "refuse"]
    assert flink.sent == []
    assert (row["reason"], row["detail"]) == ("vetoed", "review trading_hours: the books are closed at night")


@pytest.mark.covers("harm review-fails")
@pytest.mark.parametrize(
    ("source", "entries", "why"),
    [
        ("import a_module_that_nobody_has", BROKEN, "cannot be loaded: raised ModuleNotFoundError"),
        ("raise SystemExit(3)", BROKEN, "cannot be loaded: raised SystemExit: 3"),
        ("x = 1", BROKEN, "cannot be loaded: raised AttributeError"),
        ("review = 'yes'", BROKEN, "team_rules:review is no function"),
        ("review = 1", "broken", ""),
    ],
)
def test_a_rule_that_cannot_be_loaded_vetoes_every_step(
    site: Path, tmp_path: Path, source: str, entries: str, why: str
) -> None:
    install(site, source, entries)
    flink = Flink()
    row = control(tmp_path / "lake", flink, NOW_S)[-1]
    assert (row["reason"], flink.sent) == ("review_failed", [])
    assert row["detail"].startswith("review broken: " if why else "review tidewise.step_review: ")
    assert (why or "cannot be listed") in row["detail"]


def test_a_rule_whose_import_does_not_end_vetoes_every_step(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "import time\ntime.sleep(2.0)", "sleepy = team_rules:review")
    monkeypatch.setattr(step_reviews, "LOAD_TIMEOUT_S", 0.1)
    flink = Flink()
    row = control(tmp_path / "lake", flink, NOW_S)[-1]
    assert (row["reason"], flink.sent) == ("review_failed", [])
    assert row["detail"] == "review sleepy: cannot be loaded: took longer than 0.1 s"


def test_a_rule_that_changes_its_mind_before_the_request_leaves_withdraws_it(site: Path, tmp_path: Path) -> None:
    source = """
from models.control.step_review import let_pass, veto
calls = []
def review(step, situation):
    calls.append(1)
    return let_pass() if len(calls) == 1 else veto("not any more")
"""
    install(site, source, "fickle = team_rules:review")
    flink = Flink()
    rows = control(tmp_path / "lake", flink, NOW_S)
    assert flink.sent == []
    assert rows[-1]["answer"] == "withdrawn before sending: vetoed: review fickle: not any more"
