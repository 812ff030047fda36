"""``python -m benchmarks.replay`` as a user starts it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay import cost_summary
from benchmarks.replay.__main__ import TRACES, list_traces, main
from benchmarks.replay.cost_rows import read_costs

COLUMNS = {
    "trace",
    "job",
    "policy",
    "seed",
    "segment",
    "days",
    "rescales_per_day",
    "late_minutes_per_day",
    "lag_record_seconds",
    "slot_hours",
    "cost",
    "bound",
    "cost_vs_bound",
    "cost_vs_clairvoyant",
    "rises",
    "rises_ahead_share",
    "rises_ahead_minutes",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "wave.csv"
    start = datetime(2024, 3, 4, tzinfo=UTC)
    rates = 100 + 40 * np.sin(np.arange(96) / 20)
    lines = [f"{start + timedelta(minutes=5 * n):%Y-%m-%d %H:%M:%S},{rate}" for n, rate in enumerate(rates)]
    path.write_text("\n".join(["when,how much", *lines]), encoding="utf-8")
    return path


def test_rows_table_and_picture(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "out.json", tmp_path / "out.png"
    arguments = ["--policy", "ds2", "static_max", "--seeds", "2", "--json", str(out), "--plot", str(plot), "-j", "1"]
    assert main(["--trace", str(trace), "--job", "eight", "--days", "0.25", *arguments]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert len(rows) == 3 * 2 * 3  # with the clairvoyant; seeds; segments
    assert all(set(row) == COLUMNS for row in rows)
    assert plot.read_bytes().startswith(b"\x89PNG")
    costs = tmp_path / "out.csv"
    assert len(read_costs([costs])) == len(rows)
    printed = capsys.readouterr().out
    parts = ("0.2 x slots", "0.4 if late", "older than 60 s", "every 3600 s", "every 300 s", "when", "last third")
    for part in ("estimated: 0.00 CPU hours", *parts):
        assert part in " ".join(printed.split())


def test_the_bound_is_a_row_and_a_reader_can_leave_a_trace_out(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "copy.csv"
    other.write_bytes(trace.read_bytes())
    out, costs = tmp_path / "rows.json", tmp_path / "rows.csv"
    arguments = [
        "--policy",
        "ds2",
        "bound",
        "--seeds",
        "1",
        "--first-seed",
        "100",
        "-j",
        "1",
        "--days",
        "0.25",
        "--scenario",
        "at_once",
    ]
    assert main(["--trace", str(trace), str(other), *arguments, "--json", str(out)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    costs_over = re.search(r"The bound's own policy costs ([\d.]+) of it", printed)
    assert costs_over is not None, printed
    assert 0.99 < float(costs_over[1]) < 1.1
    rows = read_costs([costs])
    assert {row["seed"] for row in rows} == {100}
    assert all(float(str(row["cost_vs_bound"])) >= 1.0 for row in rows)
    assert {row["best_rival"] for row in rows} == {"ds2"}
    assert cost_summary.main([str(costs), "--segment", "all", "--by-trace"]) == 0
    assert "| policy | wave+at_once | copy+at_once | mean |" in capsys.readouterr().out
    assert cost_summary.main([str(costs), "--segment", "all", "--without", "wave+at_once"]) == 0
    assert "wordcount, all: copy+at_once; seeds: 1." in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cost_summary.main([str(costs), "--without", "nothing"])
    assert "no file has the traces" in capsys.readouterr().err


def test_what_cannot_be_run_is_said(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "no policy is called": ["--policy", "best"],
        "no job is called": ["--job", "none"],
        "a tick must hold": ["--tick", "400"],
        "expected a whole number of 1 or more, not '0'": ["--seeds", "0"],
    }
    for why, arguments in wrong.items():
        with pytest.raises(SystemExit):
            main(["--trace", str(trace), *arguments])
        assert why in capsys.readouterr().err


def test_the_shipped_traces_are_the_default() -> None:
    assert {path.name.split(".")[0] for path in list_traces()} >= {"dsp_taxi_5min", "nab_nyc_taxi_30min"}
    assert TRACES.is_dir()
