"""``make nexmark``: Nexmark's queries as SQL on a real Flink cluster, what Tidewise makes of them beside the truth.

First the truth: more load than the jobs can process. Then each query under load steps, as four jobs at the same time:
one that Tidewise's controller rescales, and one each for DS2, ContTune and the rules of Flink's autoscaler.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.nexmark.autoscaler_process import AUTOSCALER_SETTINGS, start_autoscaler
from benchmarks.nexmark.controller_settings import write_settings
from benchmarks.nexmark.cpu import CpuMeter
from benchmarks.nexmark.dynamics.command import main as measure_dynamics
from benchmarks.nexmark.experiment import MOST, RIVALS, JobTrial, Truth
from benchmarks.nexmark.results import format_results, read_results
from benchmarks.nexmark.tables import judge, print_tables
from benchmarks.nexmark.trial import Trial
from benchmarks.nexmark.truth import find_truth
from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number
from cli.out_lock import hold_folder
from include.atomic_write import write_json, write_text
from include.flink.faults import FlinkError
from include.settings import PROJECT
from include.threads import running_beside
from lab.local_flink.build import build_nexmark
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import QUERIES
from lab.local_flink.processes import end_process, start_process
from tools.marked_page import put_between_marks

DOCUMENT = PROJECT / "docs" / "nexmark" / "tables.md"
MARKS = ("<!-- nexmark: begin -->", "<!-- nexmark: end -->")
DEFAULT_QUERIES = ("q2", "q3", "q5", "q8")
_TRUTH_SHARE = 0.25
_SAY_EVERY_S = 30.0
_STARTS_S = 180.0
_REPLIES_S = 60.0  # a query is planned while its submission waits
_CHECKPOINT_EVERY_S = 60.0


class Progress:
    """Lines with the time since the start; every half minute one that says how far it is."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began_s, self._ended, self.cpu = seconds, time.monotonic(), threading.Event(), CpuMeter()

    def say(self, text: str) -> None:
        """Print a line."""
        print(f"{time.monotonic() - self._began_s:6.0f} s  {text}", flush=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Print how far it is until the end of the block."""
        with running_beside(self._tell, self._ended):
            yield

    def _tell(self) -> None:
        while not self._ended.wait(_SAY_EVERY_S):
            done = min(1.0, (time.monotonic() - self._began_s) / self._seconds)
            bar = "#" * round(20 * done)
            self.say(f"[{bar:<20}] {done:4.0%}  all processors {self.cpu.take():.0%} busy")


def measure(
    out: Path,
    queries: list[str],
    minutes: float,
    progress: Progress,
    *,
    autoscaler_jar: Path | None,
    known: Mapping[str, Truth],
) -> tuple[dict[str, Truth], dict[str, dict[str, JobTrial]]]:
    """Run everything; returns query -> truth, and query -> policy -> what happened.

    ``known`` truths are not measured again, and the time for them is left out.

    What is known is written to ``<out>/ended.json`` whenever a query has ended: a run that is ended early keeps it, and
    ``--results`` takes it.
    """
    seconds, chosen = minutes * 60, [QUERIES[name] for name in queries]
    slots = MOST * (len(RIVALS) + 1) // 2
    options = ClusterOptions.quick(
        slots=slots, task_managers=2, checkpoint_every_s=_CHECKPOINT_EVERY_S, settings=AUTOSCALER_SETTINGS
    )
    trials, advice = dict[str, dict[str, JobTrial]](), out / "autoscaler.log"
    advice.unlink(missing_ok=True)
    with LocalCluster(out / "flink", options, ready_timeout_s=_STARTS_S) as cluster:
        client = JobClient(cluster.rest_url, read_timeout_s=_REPLIES_S)
        jar = client.upload_jar(build_nexmark())
        truths = {name: known[name] for name in queries if name in known}
        unknown = [query for query in chosen if query.name not in truths]
        for first in range(0, len(unknown), len(RIVALS) + 1):  # as many at once as there are slots
            some = unknown[first : first + len(RIVALS) + 1]
            share = _TRUTH_SHARE * seconds * len(some) / len(chosen)
            truths |= find_truth(client, cluster.work_dir, jar, some, seconds=share, say=progress.say)
        environment = write_settings(out, cluster.rest_url, queries)
        controller = start_process([sys.executable, "-m", "controller"], out / "controller.log", environment)
        autoscaler = None if autoscaler_jar is None else start_autoscaler(autoscaler_jar, cluster.rest_url, advice)
        try:
            for query in chosen:
                trial = Trial(client, query, truths[query.name], (1 - _TRUTH_SHARE) * seconds / len(chosen))
                trials[query.name] = trial.run(cluster.work_dir, jar, out / "lake", advice, progress.say)
                write_json(out / "ended.json", format_results(truths, trials))
        finally:
            end_process(controller, grace_s=20)
            if autoscaler is not None:
                end_process(autoscaler)
    return truths, trials


def main(argv: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Entry point."""
    given = sys.argv[1:] if argv is None else argv
    if "--dynamics" in given:
        return measure_dynamics([argument for argument in given if argument != "--dynamics"])
    parser = CommandParser(prog="nexmark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--dynamics", action="store_true", help="rises, falls, a lost TaskManager, ...: --dynamics --help"
    )
    parser.add_argument("--queries", nargs="+", choices=sorted(QUERIES), default=list(DEFAULT_QUERIES))
    parser.add_argument("--minutes", type=number(5, 600), default=50.0, help="of measuring, all queries together")
    parser.add_argument(
        "--autoscaler-jar", type=Path, help="flink-autoscaler-standalone; its process then gives advice on all jobs"
    )
    parser.add_argument(
        "--results", type=Path, help="nexmark.json of a run on this machine: its truths, and queries not measured again"
    )
    parser.add_argument("--cpu-max", type=number(0, 1), default=0.70, help="share of all processors; above: discarded")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="the page whose tables are written")
    args = parser.parse_args(given)
    progress = Progress(args.minutes * 60)
    folder = (args.out / "nexmark").resolve()
    try:
        known_truths, known_trials = read_results(args.results) if args.results is not None else ({}, {})
        with hold_folder(args.out, "make nexmark", ".nexmark.lock"), progress.running():
            _remove_lake(folder)
            jar = args.autoscaler_jar
            measured = measure(folder, args.queries, args.minutes, progress, autoscaler_jar=jar, known=known_truths)
    except UsageError as error:
        print(f"nexmark: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlinkError as error:
        print(f"tidewise: nexmark failed: {error}", file=sys.stderr)
        return 1
    truths, trials = known_truths | measured[0], known_trials | measured[1]
    busy = progress.cpu.in_all()
    wrong = judge(truths, trials)
    result = {
        "minutes": args.minutes,
        "cpu_share": busy,
        **format_results(truths, trials),
        "falls_short": wrong,
    }
    write_json(args.out / "nexmark.json", result)
    say(f"all processors were {busy:.0%} busy on average")
    if busy > args.cpu_max:
        say(f"discarded: above {args.cpu_max:.0%} the jobs compete for processors, which is no measurement")
        return 1
    tables = print_tables(truths, trials)
    say(tables)
    for one in wrong:
        say(f"falls short: {one}")
    command = f'`make nexmark ARGS="--queries {" ".join(args.queries)} --minutes {args.minutes:g}"`'
    before = ", ".join(sorted(set(trials) - set(args.queries)))
    if args.results is not None:
        command += f" with the truths{f', and {before},' if before else ''} of an earlier run on the same machine"
    head = f"{command}; all processors of the machine were {busy:.0%} busy on average."
    short = ["### What falls short", "", *(f"- {one}" for one in wrong or ["nothing"])]
    part = "\n\n".join([head, tables, "\n".join(short)])
    write_text(args.document, put_between_marks(args.document.read_text(encoding="utf-8"), MARKS, part))
    say(f"written: {args.out / 'nexmark.json'} and {args.document}")
    return 0


def _remove_lake(folder: Path) -> None:
    shutil.rmtree(folder / "lake", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
