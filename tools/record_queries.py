"""Record Nexmark's queries on a real Flink cluster: ``python -m tools.record_queries --minutes 20``.

Four jobs with Flink's default chaining, each under a load that rises and falls and rescaled on the way up and down;
every REST reply is kept as received in the raw layout, beside the recording of ``tools.record``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number
from cli.out_lock import hold_folder
from include.flink.faults import FlinkError
from include.flink.poller import RestSource
from include.utc import format_utc
from lab.local_flink.build import build_nexmark
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import QUERIES, submit_query
from tools.record import Recorder, replace_recording, require_recording

RECORDED = ("q2", "q3", "q5", "q8")
WAVE = ((0.0, 0.6), (0.4, 2.4), (0.55, 2.4), (0.85, 0.7), (1.0, 0.7))
"""(share of the length, multiple of the query's unit load): more than one subtask processes, and less again."""
CHECKPOINT_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Change:
    """A rescale: at a share of the length, of the vertices of a query whose names begin so."""

    share: float
    query: str
    vertices: str
    parallelism: int

    @property
    def text(self) -> str:
        """The change in words."""
        return f"PUT resource-requirements of {self.query}: {self.vertices}... -> {self.parallelism}"


SCRIPT = (
    Change(0.32, "q2", "Source: events", 2),
    Change(0.36, "q3", "Join", 2),
    Change(0.40, "q5", "GlobalWindowAggregate", 2),
    Change(0.44, "q8", "GlobalWindowAggregate", 2),
    Change(0.72, "q2", "Source: events", 1),
    Change(0.76, "q3", "Join", 1),
    Change(0.80, "q5", "GlobalWindowAggregate", 1),
    Change(0.84, "q8", "GlobalWindowAggregate", 1),
)


def rescale(client: JobClient, job_id: str, prefix: str, parallelism: int) -> dict[str, int]:
    """Ask for another parallelism of the vertices whose names begin so and that can have it; returns all bounds."""
    bounds = client.upper_bounds(job_id)
    for vertex in client.job(job_id)["vertices"]:
        if vertex["name"].startswith(prefix) and vertex["maxParallelism"] >= parallelism:
            bounds[vertex["id"]] = parallelism
    client.put_resource_requirements(job_id, bounds)
    return bounds


def wait_until_running(client: JobClient, job_ids: list[str], within_s: float = 120.0) -> None:
    """Wait until every vertex of the jobs runs.

    Raises:
        FlinkError: one does not in time.
    """
    for job_id in job_ids:
        client.wait_for_parallelism(job_id, {}, timeout_s=within_s)


def record(args: argparse.Namespace, work_dir: Path, console: Console) -> Recorder:
    """Run the recording."""
    length_s = args.minutes * 60
    options = ClusterOptions.quick(slots=8, task_managers=2, checkpoint_every_s=CHECKPOINT_EVERY_S)
    console.print("starting Flink (about 20 s) ...")
    with LocalCluster(work_dir, options) as cluster:
        client = JobClient(cluster.rest_url, read_timeout_s=60.0)  # a query is planned while its submission waits
        jar, job_ids = client.upload_jar(build_nexmark()), dict[str, str]()
        for name in RECORDED:
            query = QUERIES[name]
            trace = tuple((round(share * length_s), query.unit_per_s * times) for share, times in WAVE)
            longer = (*trace, (round(length_s) + 3600, trace[-1][1]))
            job_ids[name] = submit_query(client, work_dir, query.options(longer), jar_id=jar)
        wait_until_running(client, list(job_ids.values()))
        recorder = Recorder(RestSource(client, args.cluster, time.time), args.cluster, args.out, time.time)
        recorder.note(f"jobs {', '.join(RECORDED)} RUNNING, every vertex at 1")
        try:
            run_script(recorder, client, job_ids, args, console)
        finally:
            recorder.flush()
    recorder.note("cluster stopped")
    return recorder


def run_script(
    recorder: Recorder, client: JobClient, job_ids: dict[str, str], args: argparse.Namespace, console: Console
) -> None:
    """Poll at a steady pace for the length of the recording and rescale when it is time."""
    length_s, waiting = args.minutes * 60, list(SCRIPT)
    started, next_poll_s = time.monotonic(), 0.0
    while (elapsed_s := time.monotonic() - started) < length_s:
        while waiting and elapsed_s >= waiting[0].share * length_s:
            change = waiting.pop(0)
            recorder.note(change.text)
            console.print(f"{elapsed_s:6.0f} of {length_s:.0f} s  {change.text}")
            rescale(client, job_ids[change.query], change.vertices, change.parallelism)
        if elapsed_s >= next_poll_s:
            recorder.poll()
            next_poll_s += args.poll_every_s
        time.sleep(0.1)


def write_readme(args: argparse.Namespace, recorder: Recorder) -> None:
    """Write how the recording was made and what happened when."""
    rows = [f"| {format_utc(datetime.fromtimestamp(round(at, 1), UTC))} | {what} |" for at, what in recorder.happened]
    wave = ", ".join(f"{times:g} at {share:.0%}" for share, times in WAVE)
    loads = [
        f"| {name} | {QUERIES[name].unit_per_s:g} | {QUERIES[name].proportions} | {QUERIES[name].work_us} "
        f"| `{QUERIES[name].costly[0]}` |"
        for name in RECORDED
    ]
    text = "\n".join(
        [
            "# Recorded SQL jobs",
            "",
            f"Made by `python -m tools.record_queries --minutes {args.minutes:g}`: four queries of Nexmark as SQL on a",
            "real Flink cluster with default chaining, one JobManager and two TaskManagers with 8 slots each on one",
            f"machine, adaptive scheduler, a checkpoint every {CHECKPOINT_EVERY_S:g} s. The jobs are those of",
            "`flink_job/nexmark`; each record of the costly operator waits. The sources count `numRecordsIn` as the",
            "readers of FLIP-27 do and report `pendingRecords`.",
            "",
            "| job | unit load, events/s | persons:auctions:bids | wait per record, us | costly operator |",
            "|---|---|---|---|---|",
            *loads,
            "",
            f"Load in multiples of the unit, by the share of the time: {wave}; linear in between.",
            "",
            f"Every REST reply is kept as received, in the layout of `include/flink/raw_format.py`: {recorder.polls}",
            f"polls, one about every {args.poll_every_s:g} s, {recorder.records} replies. Nothing was cleaned.",
            "",
            "| time (UTC) | what happened |",
            "|---|---|",
            *rows,
        ]
    )
    (args.out / "README.md").write_text(text + "\n")


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = CommandParser(prog="record_queries", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=number(0, 1440, above=True), default=20.0)
    parser.add_argument("--out", type=Path, default=Path("data/recording_sql"))
    parser.add_argument("--cluster", default="nexmark", help="name under which the replies are kept")
    parser.add_argument("--poll-every-s", type=number(0, 3600, above=True), default=10.0)
    args = parser.parse_args(argv)
    final = args.out
    try:
        require_recording(final)
        with hold_folder(final.parent, "python -m tools.record", f".{final.name}.lock"):
            return record_into(final, args)
    except UsageError as error:
        print(f"record_queries: {error}", file=sys.stderr)
        return EXIT_USAGE


def record_into(final: Path, args: argparse.Namespace) -> int:
    """Record beside a folder and put the whole recording in its place; returns the exit code."""
    args.out = final.with_name(f"{final.name}.partial")
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tidewise-record-", ignore_cleanup_errors=True) as work_dir:
            recorder = record(args, Path(work_dir), Console())
    except KeyboardInterrupt:
        print(f"ended early; what came before is in {args.out}")
        return 130
    except FlinkError as error:
        print(f"tidewise: recording failed: {error}; what came before is in {args.out}", file=sys.stderr)
        return 1
    write_readme(args, recorder)
    replace_recording(args.out, final)
    print(f"recorded {recorder.records} replies in {recorder.polls} polls; recording in {final}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
