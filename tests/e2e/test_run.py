"""``make run`` as a user sees it: what it prints and what it writes.

That the stages write the same when they run again stands in ``tests/spark/test_stages_survive_kills.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.embedded import below
from cli.run import place_data
from include.settings import load_settings
from include.utc import parse_utc

REPOSITORY = Path(__file__).resolve().parents[2]
LAST_LINE = re.compile(r"run: (\d+) jobs, (\d+) rows, (\d+) quarantined, (\d+) models, (\d+) steps, (\d+) s")
STAGES = {"data", "ingest", "train", "forecast", "plan", "control", "report"}

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


@dataclass(frozen=True)
class Run:
    """The main job, once for all tests of this file."""

    out: Path
    printed: str
    counts: dict[str, Any]
    plans: list[dict[str, Any]]


@pytest.fixture(scope="module")
def main_run(tmp_path_factory) -> Run:
    out = tmp_path_factory.mktemp("run") / "out"
    done = run(out)
    assert done.returncode == 0, done.stdout + done.stderr
    counts, plans = (json.loads((out / name).read_text()) for name in ("run.json", "plans.json"))
    return Run(out, done.stdout, counts, plans)


def test_ends_with_the_counts_and_the_report(main_run):
    last = LAST_LINE.fullmatch(main_run.printed.strip().splitlines()[-1])
    assert last
    assert [int(found) for found in last.groups()[:5]] == [
        main_run.counts[name] for name in ("jobs", "rows", "quarantined", "models", "steps")
    ]
    assert str(main_run.out / "report.html") in main_run.printed
    assert set(main_run.counts["seconds"]) == STAGES
    assert (main_run.out / "report.html").stat().st_size > 10_000


def test_plans_steps_ahead_for_at_least_twelve_jobs(main_run):
    ahead = [row for row in main_run.plans if row["status"] == "planned" and row["apply_at"] > row["as_of"]]
    assert len({(row["cluster"], row["job"]) for row in ahead}) >= 12
    assert main_run.counts["steps"] == sum(row["status"] == "planned" for row in main_run.plans)
    for row in ahead:
        assert row["reason"]
        assert row["parallelism_from"] != row["parallelism_to"]
        assert row["expected_capacity_per_s"] > 0


def test_both_the_recorded_and_the_simulated_cluster_are_planned(main_run):
    assert {row["cluster"] for row in main_run.plans} == {"recorded", "simulated"}


def test_every_planned_step_is_in_the_printed_table(main_run):
    planned = [row for row in main_run.plans if row["status"] == "planned"]
    assert {row["job"] for row in planned} <= set(re.findall(r"[\w.-]+", main_run.printed))
    for row in planned:
        assert row["apply_at"][:10] in main_run.printed


def test_data_that_is_there_is_kept(main_run):
    """A second run on the same directory finds the data of the first and writes none of it again."""
    raw = main_run.out / "raw"
    stamps = {path: path.stat().st_mtime_ns for path in raw.rglob("*.gz")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in below(main_run.out).items():
            patch.setenv(name, value)
        place_data(load_settings(), parse_utc(main_run.plans[0]["as_of"]), days=21)
    assert {path: path.stat().st_mtime_ns for path in raw.rglob("*.gz")} == stamps


def test_a_wrong_moment_is_one_line(tmp_path):
    done = run(tmp_path, "--as-of", "yesterday")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_help_lists_the_options(tmp_path):
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    for option in ("--as-of", "--out", "--days", "--apply-mode"):
        assert option in done.stdout
