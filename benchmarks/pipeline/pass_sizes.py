"""The hour by stage, of a fleet of any size, before and after: ``python -m benchmarks.pipeline.pass_sizes``.

Commits pass over copies of one lake, which the first of them has made, one after the other. Below ``--keep`` that lake
stays: a call that was stopped while it was made goes on with it, and later commits pass over it, too. Figures of a
fleet and a commit stand in ``results/pass_sizes.json`` until they are measured again; ``results/pass_sizes.md`` is
their table.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.pipeline.commit_copy import copy_tree
from benchmarks.pipeline.hourly import END, HOUR, HOURLY, PLANNING, environment, prepare, submit, write_fleet
from benchmarks.pipeline.spark_events import logged_events, read_events
from benchmarks.processes import Usage
from cli.arguments import CommandParser, whole_number
from include.atomic_write import write_text
from include.flink.raw_format import write_lines
from include.settings import PROJECT
from include.stage_names import Stage
from lab.commands.history import HistoryRequest, write_history

RESULTS = Path(__file__).with_name("results") / "pass_sizes.json"
HEADING = "| fleet | commit | stage | CPU s | seconds | GiB | Spark jobs |\n|---|---|---|---|---|---|---|\n"
Row = dict[str, Any]


def write_one_a_cluster(raw: Path, jobs: int, operators: int) -> None:
    """Write two hours of clusters of one job each, a file for each poll, as the controller's polls leave them."""
    for number in range(jobs):
        request = HistoryRequest(
            2, END, raw, f"app-{number:05}", number, scale_jobs=1, operators=operators, window_s=60
        )
        write_history(request, workers=1)
    for file in list(raw.rglob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            lines = sorted(((json.loads(line)["observed_at_ms"] // 60_000, line) for line in opened), key=itemgetter(0))
        file.unlink()
        for minute, of_poll in groupby(lines, itemgetter(0)):
            write_lines(file.with_name(f"{minute}.jsonl.gz"), (line.rstrip("\n") for _, line in of_poll))


def split_by_stage(usage: Usage, stages: Sequence[Stage], out: Path, jobs_at: Sequence[float]) -> list[Row]:
    """Return the figures of each stage of an application, of which each has ended when its counts were written."""
    times, rows, begin, cpu_before_s = [at for at, _, _ in usage.samples], [], 0, 0.0
    began_s = times[0]
    for stage in stages:
        is_last = stage == stages[-1]
        ended_s = times[-1] if is_last else (out / "stages" / f"{stage}.json").stat().st_mtime
        end = min(bisect_left(times, ended_s) + 1, len(times))
        cpu_s = usage.samples[end - 1][1]
        rows.append(
            {
                "stage": str(stage),
                "cpu_s": round(cpu_s - cpu_before_s, 1),
                "seconds": round(ended_s - began_s, 1),
                "gib": round(max(one[2] for one in usage.samples[begin:end]) / 2**30, 2),
                "spark_jobs": sum(began_s <= at < ended_s for at in jobs_at),
            }
        )
        begin, cpu_before_s, began_s = end, cpu_s, ended_s
    return rows


def measure_pass(work: Path, code: Path | None) -> list[Row]:
    """Pass over the second hour as a commit does: as one application, or as two where it has no DAG of the hour."""
    is_one = (code or PROJECT).joinpath("dags", "tidewise_hour.py").is_file()
    rows = []
    for number, stages in enumerate([HOURLY] if is_one else [(Stage.INGEST,), PLANNING]):
        with logged_events(events := work / f"events-{number}"):
            usage = submit(stages[0], work, END, (END - HOUR, END), *stages[1:], code=code)
        rows += split_by_stage(usage, stages, work / "out", read_events(events).jobs)
        shutil.rmtree(events)
    total = {name: sum(row[name] for row in rows) for name in ("cpu_s", "seconds", "spark_jobs")}
    return [*rows, {"stage": "the pass", "gib": max(row["gib"] for row in rows), **total}]


def retain(rows: Sequence[Row], fleet: str, commit: str) -> None:
    """Write the figures in the place of those of the same fleet and commit, and the table of all."""
    known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else []
    others = [row for row in known if (row["fleet"], row["commit"]) != (fleet, commit)]
    result = [*others, *({"fleet": fleet, "commit": commit, **row} for row in rows)]
    write_text(RESULTS, json.dumps(result, indent=1) + "\n")
    lines = (
        f"| {row['fleet']} | {row['commit']} | {row['stage']} | {row['cpu_s']:.1f} | {row['seconds']:.0f} | "
        f"{row['gib']:.1f} | {row['spark_jobs']} |\n"
        for row in result
    )
    write_text(RESULTS.with_suffix(".md"), HEADING + "".join(lines))


def measure_commits(jobs: int, commits: Sequence[str], *, is_one_a_cluster: bool, keep: Path | None = None) -> None:
    """Pass over copies of one lake under each commit, and write the figures."""
    write = write_one_a_cluster if is_one_a_cluster else write_fleet
    fleet = f"{jobs:,} jobs" + (", one a cluster" if is_one_a_cluster else "")
    with ExitStack() as held:
        folder = keep / fleet if keep else held.enter_context(tempfile.TemporaryDirectory(prefix="tidewise-pass-"))
        held.enter_context(environment(work := Path(folder).resolve()))
        for commit in commits:
            copy_tree(commit, code := work / "code")
            if not (work / "before").exists():
                prepare(work, jobs, 8, write, code=code)
                (work / "lake").rename(work / "before")
            shutil.rmtree(work / "lake", ignore_errors=True)
            shutil.copytree(work / "before", work / "lake")
            short = ["git", "rev-parse", "--short=8", commit]
            name = subprocess.run(short, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip()
            retain(measure_pass(work, code), fleet, name)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure fleets under each commit."""
    parser = CommandParser(prog="pass_sizes", description=__doc__)
    parser.add_argument("--jobs", type=whole_number(1, 100_000), nargs="+", default=[100], help="of each fleet")
    parser.add_argument("--one-a-cluster", action="store_true", help="each job in a cluster of its own, a file a poll")
    parser.add_argument("--commits", nargs="+", default=["HEAD"], help="the first one makes the lake")
    parser.add_argument("--keep", type=Path, help="folder in which the lake of each fleet stays")
    asked = parser.parse_args(argv)
    for jobs in asked.jobs:
        measure_commits(jobs, asked.commits, is_one_a_cluster=asked.one_a_cluster, keep=asked.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
