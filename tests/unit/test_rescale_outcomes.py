"""A judged rescale is a row that training can read: what was promised, and what was measured before and after."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, entry_for, plain_case
from deltalake import DeltaTable

from controller.log.control_log import Provenance
from controller.outcomes.rescale_outcomes import RescaleOutcome, append_outcomes
from include.tables import RESCALE_OUTCOMES
from include.tables.plan_row import PlanRow
from models.control.case import OutcomeCheck, Verb
from models.control.outcome import Measurements
from models.control.readiness import Failure
from models.control.state import JobHistory, ObservedJob

BEFORE = Measurements(NOW_S - 900, 1000.0, math.nan, 0.1, 5.0, 3)
AFTER = Measurements(NOW_S, 700.0, 1000.0, 0.8, 200.0, 4)
PROMISED = PlanRow(
    step_id="step-1",
    expected_recovery_s=120.0,
    expected_capacity_per_s=1500.0,
    expected_load_q50_per_s=900.0,
    expected_load_q90_per_s=1000.0,
)


def judged(is_worse: bool | None) -> RescaleOutcome:
    sent = entry_for(plain_case(NOW_S - 800))
    request = sent.action.request
    history = JobHistory("j", None, FOUR, last_good=TWO, to_judge=request, confirmed_at_s=NOW_S - 700)
    runs = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)
    case = plain_case(observed=runs, history=history, outcome=OutcomeCheck(is_worse, "records wait for 200 s"))
    entry = entry_for(case, provenance=Provenance({"a": "map", "b": "sink"}, NOW_S - 3600, "m-1"))
    return RescaleOutcome(entry, BEFORE, AFTER, PROMISED, "plan")


def test_a_judged_rescale_is_one_row(tmp_path) -> None:
    fine = replace(judged(False), promised=None, origin="reactive")
    append_outcomes(str(tmp_path), [judged(True), fine], "v")
    rows = DeltaTable(str(tmp_path / RESCALE_OUTCOMES.relative_path)).to_pyarrow_table().to_pylist()
    worse, fine_row = sorted(rows, key=lambda row: row["origin"])
    assert (worse["cluster"], worse["job"], worse["step_id"], worse["origin"]) == ("live", "orders", "step-1", "plan")
    assert (worse["is_worse"], worse["rolled_back"], worse["detail"]) == (True, True, "records wait for 200 s")
    assert dict(worse["parallelism_to"]) == {"map": 4, "sink": 4}
    assert (worse["slots_from"], worse["slots_to"], worse["restarts"]) == (2, 4, 1)
    assert (worse["throughput_before_per_s"], worse["throughput_after_per_s"]) == (1000.0, 700.0)
    assert (worse["arriving_before_per_s"], worse["arriving_after_per_s"]) == (None, 1000.0)
    assert (worse["promised_recovery_s"], worse["promised_capacity_per_s"]) == (120.0, 1500.0)
    assert (worse["promised_load_q50_per_s"], worse["promised_load_q90_per_s"]) == (900.0, 1000.0)
    assert [worse[name].timestamp() - NOW_S for name in ("requested_at", "confirmed_at", "judged_at")] == [
        -800,
        -700,
        0,
    ]
    assert (fine_row["is_worse"], fine_row["rolled_back"], fine_row["promised_recovery_s"]) == (False, False, None)


@pytest.mark.covers("flink_waits 5")
@pytest.mark.parametrize("was_confirmed", [False, True])
def test_a_rescale_that_made_the_job_fail_is_a_row_with_the_exception(tmp_path, was_confirmed: bool) -> None:
    request = entry_for(plain_case(NOW_S - 800)).action.request
    failures = tuple(
        Failure(NOW_S - at_s, "java.lang.IllegalStateException: no reader", "no reader") for at_s in (9, 5)
    )
    observed = ObservedJob("j", "RESTARTING", {}, FOUR, free_slots=8, failures=failures)
    known = JobHistory("j", request, TWO)
    if was_confirmed:
        known = JobHistory("j", None, FOUR, last_good=TWO, to_judge=request, confirmed_at_s=NOW_S - 700)
    entry = entry_for(plain_case(observed=observed, history=known))
    append_outcomes(str(tmp_path), [RescaleOutcome(entry, BEFORE, None, PROMISED, "plan")], "v")
    (row,) = DeltaTable(str(tmp_path / RESCALE_OUTCOMES.relative_path)).to_pyarrow_table().to_pylist()
    assert (row["step_id"], row["is_worse"], row["rolled_back"], row["restarts"]) == ("step-1", True, True, None)
    assert "java.lang.IllegalStateException: no reader" in row["detail"]
    assert (row["throughput_before_per_s"], row["throughput_after_per_s"]) == (1000.0, None)
    assert (row["confirmed_at"] is not None) == was_confirmed


def test_a_rescale_that_was_not_measured_before_has_no_figures_of_before(tmp_path) -> None:
    append_outcomes(str(tmp_path), [replace(judged(True), before=None)], "v")
    (row,) = DeltaTable(str(tmp_path / RESCALE_OUTCOMES.relative_path)).to_pyarrow_table().to_pylist()
    assert (row["throughput_before_per_s"], row["throughput_after_per_s"], row["restarts"]) == (None, 700.0, None)


def test_a_row_says_what_ran_before_and_whether_it_was_taken_back(tmp_path) -> None:
    known = judged(True)
    request = known.entry.case.history.to_judge
    assert request is not None
    ran = replace(request, before={"a": 3, "b": 3}, running_before={"a": 1, "b": 1})
    asked = replace(request, before={"a": 3, "b": 3}, running_before={})
    rows = []
    for one in (ran, asked):
        entry = replace(
            known.entry, case=replace(known.entry.case, history=replace(known.entry.case.history, to_judge=one))
        )
        rows.append(replace(known, entry=entry))
    only_told = replace(known.entry, action=replace(known.entry.action, is_dry_run=True))
    another = replace(known.entry, action=replace(known.entry.action, verb=Verb.RESCALE))
    assert known.entry.sends
    append_outcomes(str(tmp_path), [*rows, replace(known, entry=only_told), replace(known, entry=another)], "v")
    read = DeltaTable(str(tmp_path / RESCALE_OUTCOMES.relative_path)).to_pyarrow_table().to_pylist()
    assert [row["slots_from"] for row in read] == [1, 3, 2, 2]
    assert dict(read[0]["parallelism_from"]) == {"map": 1, "sink": 1}
    assert [row["rolled_back"] for row in read] == [True, True, False, False]


def test_an_entry_that_judges_nothing_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="judges no rescale"):
        append_outcomes(str(tmp_path), [judged(None)], "v")
    assert not (tmp_path / RESCALE_OUTCOMES.relative_path).exists()
