"""``make run`` as a user sees it: what it prints and what it writes.

That the stages write the same when they run again stands in ``tests/spark/test_stages_survive_kills.py``.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from delta_tables import list_writers
from page_commands import find_commands, read_page
from planted_secrets import Planted, connection_values, find_secrets, plant, process_list

from cli.embedded import below
from cli.run import place_data
from cli.run_table import MOST
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from include.tables import FORECASTS, JOB_DAYS, MODEL_VERSIONS, OBSERVATIONS, PLANS, POLICY_MEMORY, QUALITY, TABLES
from include.threads import running_beside
from include.utc import parse_utc

REPOSITORY = Path(__file__).resolve().parents[2]
LAST_LINE = re.compile(r"run: (\d+) jobs, (\d+) rows, (\d+) quarantined, (\d+) models, (\d+) steps, (\d+) s")
DAYS = 5  # of the simulated history; 21 by default
NOT_BY_SPARK = {QUALITY.name: "a row per cluster and ingestion", MODEL_VERSIONS.name: "a row per training"}
"""Tables of stages that delta-rs commits, and why: no more rows than runs."""
STAGES = {"data", "ingest", "train", "forecast", "plan", "control", "report"}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def run_command(
    module: str, *options: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    not_a_users = ("TIDEWISE", "AIRFLOW", "SPARK_CONF_DIR")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(not_a_users)}
    return subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=REPOSITORY,
        env=environment | {"COLUMNS": "200"} | dict(variables or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def run(out: Path, *options: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run_command("cli.console", "run", "--out", str(out), *options, variables=variables)


@dataclass(frozen=True)
class Run:
    """The main job, once for all tests of this file.

    Attributes:
        planted: secrets of a further cluster, which cannot be reached.
        variables: of the environment that name them.
        processes: every command line that was seen meanwhile.
        began_s, ended_s: when it ran.
    """

    out: Path
    printed: str
    counts: dict[str, Any]
    plans: list[dict[str, Any]]
    planted: Planted
    variables: dict[str, str]
    processes: str
    began_s: float
    ended_s: float


@dataclass
class ProcessWatch:
    """The command lines of all processes, collected every two seconds."""

    lines: set[str] = field(default_factory=set)

    @contextmanager
    def watching(self) -> Iterator[None]:
        ended = threading.Event()

        def collect() -> None:
            while not ended.wait(2.0):
                self.lines.update(process_list().splitlines())

        with running_beside(collect, ended):
            yield


def settings_with_secrets(folder: Path, planted: Planted) -> Path:
    """Write the project's settings with a cluster behind TLS and a login, where nothing listens."""
    connection = "\n".join(
        f"{name} = {json.dumps(value)}" for name, value in connection_values(planted).items() if name != "headers"
    )
    headers = connection_values(planted)["headers"]
    assert isinstance(headers, dict)
    lines = "\n".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in headers.items())
    path = folder / "tidewise.toml"
    path.write_text(
        f"""{(REPOSITORY / "tidewise.toml").read_text()}
[clusters.guarded]
rest_url = "https://127.0.0.1:1"

[clusters.guarded.connection]
{connection}

[clusters.guarded.connection.headers]
{lines}
"""
    )
    return path


@pytest.fixture(scope="module")
def main_run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    planted = plant(folder / "secrets")
    variables = planted.environment() | {SETTINGS_FILE_VARIABLE: str(settings_with_secrets(folder, planted))}
    out, watch, began_s = folder / "out", ProcessWatch(), time.time()
    with watch.watching():
        done = run(out, "--days", str(DAYS), variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    counts, plans = (json.loads((out / name).read_text()) for name in ("run.json", "plans.json"))
    printed = done.stdout + done.stderr
    return Run(out, printed, counts, plans, planted, variables, "\n".join(watch.lines), began_s, time.time())


def test_ends_with_the_counts_and_the_report(main_run):
    last = LAST_LINE.fullmatch(main_run.printed.strip().splitlines()[-1])
    assert last
    assert [int(result) for result in last.groups()[:5]] == [
        main_run.counts[name] for name in ("jobs", "rows", "quarantined", "models", "steps")
    ]
    assert str(main_run.out / "report.html") in main_run.printed
    assert set(main_run.counts["seconds"]) == STAGES
    assert (main_run.out / "report.html").stat().st_size > 10_000


def test_every_table_that_grows_is_committed_by_spark(main_run):
    """By the lake's own commitInfo; tables of the controller and of commands are written where no Spark runs."""
    writers = {table.name: list_writers(main_run.out / "lake" / table.relative_path) for table in TABLES}
    engines = {name: {engine.split("/")[0] for engine in known} for name, known in writers.items() if known}
    by_spark = {name for name, known in engines.items() if known == {"Apache-Spark"}}
    assert engines.keys() - by_spark == NOT_BY_SPARK.keys(), engines
    assert {table.name for table in (FORECASTS, JOB_DAYS, OBSERVATIONS, PLANS, POLICY_MEMORY)} <= by_spark


def test_plans_steps_ahead_for_at_least_twelve_jobs(main_run):
    ahead = [row for row in main_run.plans if row["status"] == "planned" and row["apply_at"] > row["as_of"]]
    assert len({(row["cluster"], row["job"]) for row in ahead}) >= 12
    assert main_run.counts["steps"] == sum(row["status"] == "planned" for row in main_run.plans)
    for row in ahead:
        assert row["reason"]
        assert row["parallelism_from"] != row["parallelism_to"]
        assert row["expected_capacity_per_s"] > 0


def test_the_recorded_clusters_and_the_simulated_one_are_planned(main_run):
    assert {row["cluster"] for row in main_run.plans} == {"nexmark", "recorded", "simulated"}
    assert {row["job"] for row in main_run.plans if row["cluster"] == "nexmark"} == {"q2", "q3", "q5", "q8"}


def test_the_printed_table_has_the_next_steps_and_how_many_there_are(main_run):
    planned = [row for row in main_run.plans if row["status"] == "planned"]
    nexts = {}
    for row in planned:
        nexts.setdefault(row["job"], row["apply_at"])
    first = sorted(nexts, key=nexts.__getitem__)[:MOST]
    assert set(first) <= set(re.findall(r"[\w.-]+", main_run.printed))
    assert re.search(rf"{len(planned)} steps? of {len(nexts)} jobs?", main_run.printed)


def test_what_one_reads_when_one_tries_it(main_run, capsys):
    """The commands of docs/try_it.md after `make run`, at the time of its data."""
    whole = find_commands(read_page("try_it").split("What you would save")[0])
    reading = [one for one in whole if "--at" in one.arguments or "--until" in one.arguments or one.verb == "models"]
    assert [one.verb for one in reading] == ["status", "plan", "log", "quarantine", "models"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in below(main_run.out).items():
            patch.setenv(name, value)  # the commands set them for their process
        codes = {one.verb: one.run({"out": str(main_run.out)}) for one in reading}
    shown = capsys.readouterr()
    assert codes == dict.fromkeys(codes, 0) | {"status": 1}, shown
    ahead = next(row["job"] for row in main_run.plans if row["status"] == "planned" and row["apply_at"] > row["as_of"])
    for text in ("simulated", "champion", ahead):
        assert text in shown.out


def test_data_that_is_there_is_kept(main_run):
    """A second run on the same directory finds the data of the first and writes none of it again."""
    raw = main_run.out / "raw"
    stamps = {path: path.stat().st_mtime_ns for path in raw.rglob("*.gz")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in below(main_run.out).items():
            patch.setenv(name, value)
        place_data(load_settings(), parse_utc(main_run.plans[0]["as_of"]), days=DAYS)
    assert {path: path.stat().st_mtime_ns for path in raw.rglob("*.gz")} == stamps


@pytest.mark.covers("apply_review 12")
def test_no_secret_is_written_by_a_whole_run_with_failures(main_run):
    """All stages, the controller and the doctor knew a cluster that needs secrets and cannot be reached."""
    texts = {"run": main_run.printed, "processes": main_run.processes}
    variables = main_run.variables | below(main_run.out)
    for name, module, options in (
        ("controller", "controller", ["--once"]),
        ("doctor", "cli.console", ["doctor", "--json", "--no-airflow", "--cluster", "guarded"]),
    ):
        done = run_command(module, *options, variables=variables)
        texts[name] = done.stdout + done.stderr
        assert "guarded" in texts[name]
    assert "spark_jobs" in texts["processes"]
    assert "nothing listens" in texts["doctor"]
    assert find_secrets(main_run.planted, [main_run.out], texts) == []


def test_dag_runs_show_their_real_duration_and_what_they_looked_at(main_run):
    with sqlite3.connect(main_run.out / "airflow" / "airflow.db") as tables:
        runs = tables.execute("select start_date, end_date, state, conf from dag_run order by id").fetchall()
    asked = [json.loads(conf) for *_, conf in runs]
    assert {one.get("as_of", one.get("end")) for one in asked} == {main_run.plans[0]["as_of"]}
    began_s = main_run.began_s
    for start, end, state, _ in runs:
        assert state == "success"
        started, ended = (datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in (start, end))
        assert began_s <= started < ended <= main_run.ended_s  # not the time that the run looks at


def test_a_wrong_moment_is_one_line(tmp_path):
    done = run(tmp_path, "--as-of", "yesterday")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_help_lists_the_options(tmp_path):
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    for option in ("--as-of", "--out", "--days", "--apply-mode"):
        assert option in done.stdout
