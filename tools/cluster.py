"""Run a real Flink cluster with the load job until Ctrl-C: ``python -m tools.cluster [--work-dir out/flink]``.

Prints the REST address to put under ``[clusters.<name>] rest_url``; Flink's own web pages are served there too.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number, require_writable, whole_number
from include.flink.faults import FlinkError
from include.utc import DAY_S
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import LoadOptions, submit_load

POLL_EVERY_S = 10.0


def run(work_dir: Path, slots: int, options: LoadOptions) -> None:
    """Start cluster and job, then print the parallelism whenever it changes, until interrupted."""
    print("starting Flink (about 20 s) ...", flush=True)
    with LocalCluster(work_dir, ClusterOptions(slots=slots)) as cluster:
        job_id = submit_load(cluster.client, work_dir, options)
        print(f"rest_url = {cluster.rest_url}\njob {options.job_name} = {job_id}\nCtrl-C stops everything", flush=True)
        shown: dict[str, int] | None = None
        while True:
            running = cluster.client.running_parallelism(job_id)
            if running != shown:
                print(", ".join(f"{name} x{p}" for name, p in running.items()) or "(re)starting", flush=True)
                shown = running
            time.sleep(POLL_EVERY_S)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = CommandParser(prog="cluster", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work-dir", type=Path, default=Path("out/flink"), help="configuration, logs, checkpoints")
    parser.add_argument("--slots", type=whole_number(1, 1000), default=8)
    parser.add_argument(
        "--day-minutes", type=number(0, 1440, above=True), default=15.0, help="wall-clock length of the trace's day"
    )
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop is a Ctrl-C
    try:
        require_writable(args.work_dir, "--work-dir")
        run(args.work_dir, args.slots, LoadOptions(compression=DAY_S / (args.day_minutes * 60)))
    except KeyboardInterrupt:
        print("stopped")
    except UsageError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlinkError as error:
        print(f"tidewise: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
