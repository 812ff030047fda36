"""The whole pipeline as a team runs it: what is on which machine, and what is lost on the way, changes no row.

PostgreSQL, Redis, two Celery workers with homes and checkouts of their own, a standalone Spark cluster with two
executors, a store that speaks S3, an MLflow server, the controller as a service. `make test-long PART=cluster`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from airflow_runs import Tries
from celery_workers import CeleryWorker
from cluster_settings import LAKE, RAW, ROOT, rules
from flink_server import FakeJob, FlinkServer, serving
from killed_controller import CLUSTER, JOB, KilledController
from part_clock import PartClock
from small_world import AS_OF, World, write_small_history
from standalone_spark import find_executors
from team_cluster import RUN_S, Cluster, running_cluster
from waiting import wait_until
from worker_machine import make_machine

from cli.run import choose_tick
from include.extras import lacks_extra
from include.place import place
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, Paths, Settings, load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import format_utc

MISSING = [extra for extra in ("celery", "postgres", "s3") if lacks_extra(extra)]
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3500),
    pytest.mark.skipif(
        bool(MISSING), reason=f"extras that are not installed: {', '.join(MISSING)}; make test-long PART=cluster"
    ),
]
HOURS = 6
START = AS_OF - timedelta(hours=HOURS)
INGEST = StageRequest(Stage.INGEST, AS_OF, START, AS_OF)
LATER = (Stage.TRAIN, Stage.FORECAST, Stage.PLAN, Stage.REPORT)
DAGS = ("tidewise_ingest", "tidewise_train", "tidewise_plan", "tidewise_control")


def run_on_one_machine(folder: Path, raw: Path, url: str) -> World:
    """Run the pipeline as one program after the other, on folders, with a dry run of the controller at the end."""
    folder.mkdir()
    (folder / "tidewise.toml").write_text(rules(url))
    world = World(folder / "out", raw, variables={SETTINGS_FILE_VARIABLE: str(folder / "tidewise.toml")})
    world.out.mkdir()
    world.complete(INGEST, folder / "log", *LATER)
    command = [sys.executable, "-m", "controller", "--as-of", format_utc(first_step(world.out))]
    done = subprocess.run(command, cwd=PROJECT, env=world.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return world


def first_step(out: Path) -> datetime:
    """Return the time of the tick that `make run` would make."""
    return choose_tick(Settings(paths=Paths(out=str(out))), AS_OF)


def bring_raw_files(source: Path) -> None:
    """Put the same raw files into the bucket."""
    for file in sorted(source.rglob("*")):
        if file.is_file():
            (place(RAW) / str(file.relative_to(source))).write_bytes(file.read_bytes())


def lose_worker(cluster: Cluster, workers: list[CeleryWorker]) -> CeleryWorker:
    """Lose the worker that ingests, once its driver has written to the lake; returns the other one."""
    is_half_done = wait_until((place(LAKE) / "bronze").is_dir, RUN_S, 0.5)
    assert is_half_done, cluster.describe(workers)
    (lost,) = [one for one in workers if one.drives_spark()]
    lost.lose()
    assert cluster.runs.read_state("tidewise_ingest") == "running"
    return next(one for one in workers if one is not lost)


def lose_executor(cluster: Cluster, worker: CeleryWorker) -> None:
    """Lose one of the executors of a training that has begun."""
    begun = wait_until(lambda: "stage train starts" in worker.machine.read_logs("tidewise_train"), RUN_S, 0.5)
    assert begun, cluster.describe([worker])
    assert wait_until(lambda: len(find_executors()) == 2, 300), find_executors()  # the driver begins without them
    find_executors()[0].kill()


def read_rows(world_rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return rows without those of the controller's own cluster, and without when a copy of a file was made."""
    result = {}
    for table, rows in world_rows.items():
        own = [row for row in map(json.loads, rows) if row.get("cluster") != CLUSTER]
        result[table] = sorted(json.dumps(row | {"modified_at": None}, sort_keys=True) for row in own)
    return {table: rows for table, rows in result.items() if rows}


def test_lost_machines_change_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.startswith(("AIRFLOW", "TIDEWISE"))]:
        monkeypatch.delenv(name)
    clock = PartClock()
    write_small_history(tmp_path / "raw", HOURS)
    with serving(FlinkServer(FakeJob(name=JOB))) as server:
        alone = run_on_one_machine(tmp_path / "alone", tmp_path / "raw", server.url)
        clock.note("the same on one machine, on folders")
        with running_cluster(tmp_path, server.url, format_utc(AS_OF), monkeypatch) as cluster:
            clock.note("all servers answer")
            monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(cluster.airflow.main.settings_file))
            load_settings()
            bring_raw_files(tmp_path / "raw")
            controlled = KilledController(server, make_machine(tmp_path / "controller", cluster.settings), LAKE)
            with controlled.running():
                controlled.plan(3)
                controlled.kill_when_it_sends()
                print(controlled.command("cli.console", "hold", f"{CLUSTER}/{JOB}", "--reason", "a person looks"))
                clock.note("controller killed while it sends")
                run_pipeline(cluster, clock, format_utc(first_step(alone.out)))
                check_controller(controlled)
                clock.note("the next controller has confirmed, held and sent")
            expected, actual = read_rows(alone.rows()), read_rows(World(place(ROOT), place(RAW)).rows())  # type: ignore[arg-type]
            assert actual.keys() == expected.keys()
            for table, rows in expected.items():
                assert actual[table] == rows, table
            plans = (place(ROOT) / "plans.json").read_bytes()
            assert plans == (alone.out / "plans.json").read_bytes()
            assert json.loads(plans)
            print(f"{sum(map(len, actual.values()))} rows of {len(actual)} tables and plans.json are the same")
    print(clock.table())


def run_pipeline(cluster: Cluster, clock: PartClock, tick: str) -> None:
    """Run the DAGs; the first loses its worker, the second an executor, and no two of the first three share a disk."""
    first, second = cluster.worker("worker-1"), cluster.worker("worker-2")
    workers = [first, second]
    with ExitStack() as stack:
        for one in workers:
            stack.callback(one.end)
            one.start()
        cluster.runs.switch_on(*DAGS)
        cluster.runs.trigger("tidewise_ingest", {"start": format_utc(START), "end": format_utc(AS_OF)})
        other = lose_worker(cluster, workers)
        clock.note("a worker was lost in ingest")
        cluster.end_well("tidewise_ingest", [other])
        assert cluster.runs.read_tries("tidewise_ingest")["ingest"] == Tries("success", 2)
        clock.note("ingest, by the other worker")

        other.end()
        third = cluster.worker("worker-3")
        stack.callback(third.end)
        third.start()
        cluster.runs.trigger("tidewise_train", {"as_of": format_utc(AS_OF)})
        lose_executor(cluster, third)
        cluster.end_well("tidewise_train", [third])
        assert cluster.runs.read_tries("tidewise_train")["train"] == Tries("success", 1)
        clock.note("train, which lost an executor")

        third.end()
        other.start()
        cluster.runs.trigger("tidewise_plan", {"as_of": format_utc(AS_OF)})
        cluster.end_well("tidewise_plan", [other])
        clock.note("forecast, plan and report")
        cluster.runs.trigger("tidewise_control", {"as_of": tick})
        cluster.end_well("tidewise_control", [other])
        clock.note("a tick in the past")


def check_controller(controlled: KilledController) -> None:
    """What the killed controller had sent is confirmed, not sent again; the hold holds, and ends."""
    (sent,) = controlled.read_log(verb="rescale")
    (confirmed,) = controlled.wait_for(1, verb="confirm")
    assert confirmed["lease_number"] > sent["lease_number"]
    assert controlled.requests == 1
    controlled.plan(4)
    assert controlled.wait_for(1, reason="on_hold")
    assert controlled.requests == 1
    assert f"{CLUSTER}/{JOB}" in controlled.command("cli.console", "hold", "--list")
    controlled.command("cli.console", "release", f"{CLUSTER}/{JOB}")
    controlled.wait_for(2, verb="confirm")
    assert controlled.requests == 2
