"""Short names: what tells operators apart stays, no two are alike, and a page has the whole in a tooltip."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from saved_page import refused_row, save, step_row, write_jobs
from sql_names import DATAGEN, INSERT, JOIN, LONG_SESSION, LONG_SOURCE, OPERATORS, STATEMENT_SET, WINDOW

from cli.doctor.cluster_jobs import ClusterJob, check_metrics
from cli.log import logged_operators, plain_text, shorten_line
from include.short_names import NAME_MAX, shorten_name, shorten_names, shorten_names_in
from models.control.log_lines import LogLine
from page.curves import Curve


@pytest.mark.parametrize(
    ("name", "most", "shown"),
    [
        (DATAGEN, 60, DATAGEN),
        (DATAGEN, 55, "Source: datagen[76] -> … -> LocalWindowAggregate[78]"),
        (JOIN, 60, JOIN),
        (WINDOW, 60, "GlobalWindowAggregate[25] -> … -> LocalWindowAggregate[29]"),
        (LONG_SOURCE, 60, "Source: TableSourceScan(…datagen…) -> … -> Calc(…)"),
        (LONG_SESSION, 60, "GroupWindowAggregate(…) -> … -> Sink: Sink(…q11_sink…)"),
        (INSERT, 40, "insert-into_…q8_sink"),
        (STATEMENT_SET, 40, "insert-into_…q8_sink,…q5_sink,…q11_sink"),
    ],
)
def test_a_short_name_keeps_the_head_of_the_chain_and_its_end(name: str, most: int, shown: str) -> None:
    assert shorten_name(name, most) == shown


@pytest.mark.parametrize("most", [12, 20, 33, 40, 60, 200])
def test_a_short_name_is_never_too_long(most: int) -> None:
    assert all(len(shorten_name(name, most)) <= most for name in (*OPERATORS, STATEMENT_SET, "x" * 5000))


def test_no_two_operators_have_one_name_and_a_set_has_the_same_ever_again() -> None:
    twins = [LONG_SOURCE, LONG_SOURCE.replace("- 4000", "- 8000"), "a\tb", "a b", *("x" * size for size in (99, 98))]
    short = shorten_names(twins)
    assert len(set(short.values())) == len(twins)
    assert short == shorten_names(reversed(twins))
    assert short["a b"] == "a b"
    assert all(len(shown) <= NAME_MAX for shown in short.values())


def test_a_sentence_has_short_names_and_an_ordinary_one_stays() -> None:
    text = f"{LONG_SOURCE} (at most 4) and parse need more"
    reported = shorten_names_in(text, shorten_names([LONG_SOURCE, "parse", ""]))
    assert reported == "Source: TableSourceScan(…datagen…) -> … -> Calc(…) (at most 4) and parse need more"
    assert shorten_names_in(text, {}) == text


def test_a_page_shows_short_names_and_the_whole_in_a_tooltip(tmp_path: Path) -> None:
    before = dict.fromkeys(OPERATORS, 2)
    made = {"parallelism_from": before, "parallelism_to": before | {LONG_SESSION: 3}, "job_id": "j"}
    write_jobs(tmp_path, [step_row(STATEMENT_SET, reason=f"{LONG_SESSION} is short", **made)])
    page = save(tmp_path, [Curve(name, [1, 2], [1e3, 2e3], [10.0] * 2, [1], [1e3]) for name in OPERATORS])
    bare = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    shown = re.sub(r"<code>.*?</code>", "", re.sub(r' title="[^"]*"', "", bare))
    assert "default_catalog" not in shown
    assert "SessionGroupWindow" not in shown
    assert page.count("SessionGroupWindow") >= 4  # in tooltips: of the fleet's row, the job's figures, plan and curve
    assert f'title="{STATEMENT_SET}"' in page


def test_a_refused_job_without_a_model_is_on_the_page_with_its_reason(tmp_path: Path) -> None:
    reason = f"the load of {LONG_SOURCE} cannot be seen"
    row = refused_row(INSERT, refusal="no_graph", reason=reason, parallelism_from={LONG_SOURCE: 1}, parallelism_to={})
    write_jobs(tmp_path, [row])
    page = save(tmp_path, [])
    assert "refused: the load of <span title=" in page
    assert "insert-into_…q8_sink" in page


def test_make_log_and_the_table_of_make_run_have_short_names() -> None:
    at = datetime(2026, 11, 20, 18, tzinfo=UTC)
    desired, why = f"4 slots ({LONG_SOURCE} 2->4)", f"{LONG_SOURCE} is short"
    line = LogLine(at, "2 slots", desired, "rescale: plan", why, "", "s", is_dry_run=False)
    short = shorten_names(logged_operators([{"parallelism_from": None, "parallelism_to": {LONG_SOURCE: 4}}]))
    reported = plain_text([shorten_line(line, short)])
    assert "Source: TableSourceScan(…datagen…) -> … -> Calc(…) 2->4" in reported
    assert "default_catalog" not in reported
    assert plain_text([shorten_line(line, {})]).count("default_catalog") == 2


def test_the_doctor_says_by_which_counter_a_source_is_read_and_shortens_its_name() -> None:
    needed = ["numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond", "Source__datagen.numRecordsOut"]
    details = {
        "vertices": [{"id": "a", "name": LONG_SOURCE}],
        "plan": {"nodes": [{"id": "a", "inputs": []}]},
    }
    made = ClusterJob("j", "q11", details, {}, None, {LONG_SOURCE: needed})
    all_there, backlog = check_metrics("cluster c", made)
    assert "numRecordsIn of its task, or Source__datagen.numRecordsOut where that stands still" in all_there.text
    assert "default_catalog" not in all_there.text + backlog.text
    assert "what it emits" not in backlog.text
    alone = replace(made, metrics={LONG_SOURCE: needed[:-1]})
    reported = check_metrics("cluster c", alone)[0].text
    assert "numRecordsIn of its task alone: where that stands still, its load is not known" in reported
