"""Record a real Flink cluster: ``python -m tools.record --minutes 15 --out data/recording``.

Runs a local cluster with the load job through one compressed day, rescales it, kills its TaskManager once, and keeps
every REST reply as received in the raw layout. A whole recording replaces the one at --out; one that was ended early
(Ctrl-C, an error) leaves that alone and stays beside it as <out>.partial.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number, whole_number
from cli.out_lock import hold_folder
from include.flink.faults import FlinkError, FlinkUnreachableError
from include.flink.poller import RestSource
from include.flink.raw_format import RawRecord, hour_directory, write_lines
from include.utc import DAY_S, format_utc
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import LoadOptions, submit_load
from tools.record_script import DAY_SCRIPT, Action, Event, recovery_script

BATCH_S = 60.0  # a file per minute: a stop at any time loses little


@dataclass(slots=True)
class Recorder:
    """Polls one cluster and writes a file per minute below the raw root; the only mutable state of a recording."""

    source: RestSource
    name: str
    out: Path
    clock: Callable[[], float]
    pending: list[RawRecord] = field(default_factory=list)
    happened: list[tuple[float, str]] = field(default_factory=list)
    records: int = 0
    polls: int = 0

    def note(self, what: str) -> None:
        """Remember what happened now."""
        self.happened.append((self.clock(), what))

    def poll(self) -> None:
        """Take one poll; a JobManager that does not reply is noted and the recording goes on."""
        self.polls += 1
        try:
            poll = self.source.poll()
            self.pending += poll.records
            for fault in poll.faults:
                self.note(f"poll {self.polls} without a reply: {fault}")
        except FlinkUnreachableError as error:
            self.note(f"poll {self.polls} without a reply: {error}")
        if self.pending and self.clock() - self.pending[0].observed_at_ms / 1000 >= BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Write what is pending into the directory of the present hour."""
        if not self.pending:
            return
        now = datetime.fromtimestamp(self.clock(), UTC)
        path = hour_directory(self.out, self.name, now) / f"recorded-{now:%Y%m%dT%H%M%S}.jsonl.gz"
        self.records += write_lines(path, (record.to_line() for record in self.pending))
        self.pending.clear()


def carry_out(event: Event, cluster: LocalCluster, job_id: str, submit: Callable[[], str]) -> str:
    """Do what the script says; returns the id of the job that runs then, at once but for an upgrade."""
    if event.rescale is not None:
        cluster.client.set_parallelism(job_id, event.rescale)
    elif event.action is Action.KILL:
        cluster.kill_taskmanager()
    elif event.action is Action.START:
        cluster.start_taskmanager(wait=False)
    else:
        cluster.client.cancel(job_id)
        return submit()
    return job_id


def record(args: argparse.Namespace, work_dir: Path, console: Console) -> int:
    """Run the recording; returns the exit code."""
    options = LoadOptions(compression=DAY_S / (args.minutes * 60))
    console.print("starting Flink (about 20 s) ...")
    with LocalCluster(work_dir, ClusterOptions.quick()) as cluster:
        job_id = submit_load(cluster.client, work_dir, options)
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=60)
        recorder = Recorder(RestSource(cluster.client, args.cluster, time.time), args.cluster, args.out, time.time)
        recorder.note(f"job `{options.job_name}` RUNNING, every vertex at 1")
        console.print(f"recording {cluster.rest_url} for {args.minutes:g} minutes")
        code = 0
        try:
            submit = partial(submit_load, cluster.client, work_dir, options)
            run_script(recorder, cluster, job_id, args, console, submit=submit)
        except KeyboardInterrupt:
            recorder.note("ended early by Ctrl-C")
            code = 130
        finally:
            recorder.flush()
    recorder.note("cluster stopped")
    write_readme(args, options, recorder)
    console.print(f"recorded {recorder.records} replies in {recorder.polls} polls")
    return code


def run_script(
    recorder: Recorder,
    cluster: LocalCluster,
    job_id: str,
    args: argparse.Namespace,
    console: Console,
    *,
    submit: Callable[[], str],
) -> None:
    """Poll at a steady pace for the length of the recording and carry out each event when its time has come."""
    length_s = args.minutes * 60
    waiting = list(recovery_script(args.recoveries) if args.recoveries else DAY_SCRIPT)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    started = time.monotonic()
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("recording", total=length_s)
        next_poll_s = 0.0
        while (elapsed_s := time.monotonic() - started) < length_s:
            while waiting and elapsed_s >= waiting[0].share * length_s:
                event = waiting.pop(0)
                recorder.note(event.text)
                progress.console.print(f"{elapsed_s:6.0f} s  {event.text}")
                job_id = carry_out(event, cluster, job_id, submit)
            if elapsed_s >= next_poll_s:
                recorder.poll()
                next_poll_s += args.poll_every_s
            progress.update(bar, completed=elapsed_s)
            time.sleep(0.1)


def write_readme(args: argparse.Namespace, options: LoadOptions, recorder: Recorder) -> None:
    """Write how the recording was made and what happened when."""
    rows = [f"| {format_utc(datetime.fromtimestamp(round(at, 1), UTC))} | {what} |" for at, what in recorder.happened]
    extra = f" --recoveries {args.recoveries}" if args.recoveries else ""
    text = f"""# A recorded Flink cluster

Made by `python -m tools.record --minutes {args.minutes:g}{extra}` (`python -m tools.record`): a real Flink cluster, one
JobManager and one TaskManager with 8 slots on one machine, adaptive scheduler, a checkpoint every 3 s. The load job
of `flink_job/`: `Source: orders` -> `enrich` -> `aggregate` -> `sink: Writer`.

- load: {options.low_per_s:g} to {options.high_per_s:g} records/s over one day, compressed {options.compression:g} times
- `enrich` burns {options.cost_us} us of processor time and waits {options.wait_us} us per record
- `aggregate` emits one record per {options.emit_every} of a key ({options.customers} keys)
- the machine did other work at times

Every REST reply is kept as received, laid out as `include/flink/raw_format.py` says: {recorder.polls} polls, one
about every {args.poll_every_s:g} s, {recorder.records} replies. Nothing was cleaned: counters restart,
busy time reads 1000 just after a restart, the values of dead tasks stay until new ones come.

| time (UTC) | what happened |
|---|---|
"""
    (args.out / "README.md").write_text(text + "\n".join(rows) + "\n")


def replace_recording(partial: Path, out: Path) -> None:
    """Put a whole recording in the place of the one before."""
    if out.exists():
        shutil.rmtree(out)
    partial.rename(out)


def require_recording(out: Path) -> None:
    """Check that a folder may be replaced: it is not there, empty, or holds a recording.

    Raises:
        UsageError: it holds something else, or is a file.
    """
    if out.is_file() or (out.is_dir() and not (out / "README.md").is_file() and any(out.iterdir())):
        raise UsageError(f"argument --out: '{out}' is not a recording and would be replaced; pass another folder")


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = CommandParser(prog="record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=number(0, 1440, above=True), default=15.0)
    parser.add_argument("--out", type=Path, default=Path("data/recording"))
    parser.add_argument("--cluster", default="recorded", help="name under which the replies are kept")
    parser.add_argument("--poll-every-s", type=number(0, 3600, above=True), default=5.0)
    parser.add_argument(
        "--recoveries",
        type=whole_number(0, 500),
        default=0,
        help="instead of the day's script, this many rescales, losses of the TaskManager and upgrades in turn",
    )
    args = parser.parse_args(argv)
    final = args.out
    try:
        require_recording(final)
        with hold_folder(final.parent, "python -m tools.record", f".{final.name}.lock"):
            return record_into(final, args)
    except UsageError as error:
        print(f"record: {error}", file=sys.stderr)
        return EXIT_USAGE


def record_into(final: Path, args: argparse.Namespace) -> int:
    """Record beside a folder and put the whole recording in its place; returns the exit code."""
    args.out = final.with_name(f"{final.name}.partial")
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tidewise-record-", ignore_cleanup_errors=True) as work_dir:
            code = record(args, Path(work_dir), Console())
    except KeyboardInterrupt:
        return 130
    except FlinkError as error:
        print(f"tidewise: recording failed: {error}; what came before is in {args.out}", file=sys.stderr)
        return 1
    if code == 0:
        replace_recording(args.out, final)
    print(f"recording in {final if code == 0 else args.out}")
    return code


if __name__ == "__main__":
    sys.exit(main())
