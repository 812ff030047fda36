from __future__ import annotations

import io

from rich.console import Console

from cli.run_table import WIDTH, changes, plan_table

STEP = {
    "status": "planned",
    "cluster": "simulated",
    "job": "clicks",
    "apply_at": "2026-11-20T20:10:25Z",
    "parallelism_from": {"source": 2, "parse": 4, "sink": 1},
    "parallelism_to": {"source": 2, "parse": 6, "sink": 2},
    "expected_load_q50_per_s": 1234.4,
    "expected_load_q90_per_s": 2345.6,
    "expected_capacity_per_s": None,
    "slots_from": 4,
    "slots": 6,
    "slot_hours_saved": -3.25,
    "reason": "load rises",
}


def printed(rows) -> str:
    console = Console(file=io.StringIO(), width=WIDTH)
    console.print(plan_table(rows))
    return console.file.getvalue()


def test_only_what_changes_is_named():
    assert changes({"a": 1, "b": 2}, {"a": 1, "b": 3}) == "b 2->3"
    assert changes({"a": 1}, {"a": 1}) == "unchanged"
    assert changes({}, {"a": 1}) == "a ?->1"


def test_a_step_has_all_its_figures():
    text = printed([STEP])
    for part in (
        "clicks",
        "on simulated",
        "2026-11-20 20:10",
        "parse 4->6, sink 1->2",
        "1,234 / 2,346",
        "4 -> 6",
        "-3.2",
        "load rises",
    ):
        assert part in text
    assert "source 2" not in text


def test_jobs_without_a_step_are_accounted_for():
    held = {"status": "hold", "job": "quiet", "cluster": "simulated"}
    refused = [{"status": "refused", "refusal": "stale_metrics", "job": name} for name in ("old", "gone")]
    text = printed([held, *refused])
    assert "1 jobs stay as they are: quiet; 2 refused: stale_metrics (gone, old)" in text
