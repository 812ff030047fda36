"""``make run`` as a user sees it: what it prints, what it writes, and that a second run plans the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LAST_LINE = re.compile(r"run: (\d+) jobs, (\d+) rows, (\d+) quarantined, (\d+) models, (\d+) steps, (\d+) s")
STAGES = {"data", "ingest", "train", "forecast", "plan", "apply", "report"}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def run(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEWISE", "AIRFLOW"))}
    return subprocess.run(
        [sys.executable, "-m", "cli.run", "--out", str(out), *options],
        cwd=REPOSITORY,
        env=environment | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """The main job, twice on the same input in the same place."""
    out = tmp_path_factory.mktemp("run") / "out"
    runs = []
    for _ in range(2):
        done = run(out)
        assert done.returncode == 0, done.stdout + done.stderr
        counts, plans = (json.loads((out / name).read_text()) for name in ("run.json", "plans.json"))
        runs.append((done.stdout, counts, plans))
    return out, runs


def test_ends_with_the_counts_and_the_report(two_runs):
    out, runs = two_runs
    for printed, counts, _ in runs:
        last = LAST_LINE.fullmatch(printed.strip().splitlines()[-1])
        assert last
        assert [int(found) for found in last.groups()[:5]] == [
            counts[name] for name in ("jobs", "rows", "quarantined", "models", "steps")
        ]
        assert str(out / "report.html") in printed
        assert set(counts["seconds"]) >= STAGES - {"apply"}
    assert (out / "report.html").stat().st_size > 10_000


def test_plans_steps_ahead_for_at_least_twelve_jobs(two_runs):
    _, runs = two_runs
    _, counts, plans = runs[0]
    ahead = [row for row in plans if row["status"] == "planned" and row["apply_at"] > row["as_of"]]
    assert len({(row["cluster"], row["job"]) for row in ahead}) >= 12
    assert counts["steps"] == sum(row["status"] == "planned" for row in plans)
    for row in ahead:
        assert row["reason"]
        assert row["parallelism_from"] != row["parallelism_to"]
        assert row["expected_capacity_per_s"] > 0


def test_both_the_recorded_and_the_simulated_cluster_are_planned(two_runs):
    _, runs = two_runs
    assert {row["cluster"] for row in runs[0][2]} == {"recorded", "simulated"}


def test_a_second_run_plans_the_same(two_runs):
    _, runs = two_runs
    assert runs[0][2] == runs[1][2]
    assert {**runs[0][1], "seconds": None} == {**runs[1][1], "seconds": None}


def test_every_planned_step_is_in_the_printed_table(two_runs):
    _, runs = two_runs
    printed, _, plans = runs[0]
    planned = [row for row in plans if row["status"] == "planned"]
    assert {row["job"] for row in planned} <= set(re.findall(r"[\w.-]+", printed))
    for row in planned:
        assert row["apply_at"][:10] in printed


def test_a_wrong_moment_is_one_line(tmp_path):
    done = run(tmp_path, "--as-of", "yesterday")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_help_lists_the_options(tmp_path):
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    for option in ("--as-of", "--out", "--days", "--apply-mode"):
        assert option in done.stdout
