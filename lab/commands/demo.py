"""``make demo``: a Flink cluster with a job under changing load, the controller on it, and the page, until Ctrl-C.

Everything runs on this machine and lies below one folder. The cluster is the demo's own, so the controller may act on
it; ``--mode dry-run`` only shows what it would do.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.request import Request

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number, require_writable, whole_number
from cli.embedded import LOOPBACK
from cli.java_build import JavaBuildError
from cli.ui import ProcessGroup, Service, UiError, require_free, wait_for
from include.atomic_write import write_text
from include.flink.faults import FlinkError
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE
from include.settings.environment import PAGE_TOKEN_VARIABLE
from include.utc import DAY_S
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import LoadOptions, submit_load

CLUSTER = "demo"
OUT = Path("out") / "demo"
TRIES = 3
_LOOK_EVERY_S = 10.0
# As a fleet has it in hours, in minutes: windows of 10 s, an evaluation each half minute. Slots are paid one by one,
# else all of the demo's only TaskManager would be, and no size would be cheaper than another.
SETTINGS = """# Written by `make demo` at its start.
[paths]
lake = "{out}/lake"
raw = "{out}/raw"
out = "{out}"

[mlflow]
tracking_uri = "sqlite:///{out}/mlflow.db"
artifact_root = "{out}/mlartifacts"

[clusters.demo]
rest_url = "{rest_url}"
window_s = 10
poll_every_s = 5
slots_max = {slots}

[clusters.demo.limits]
mode = "{mode}"

[limits]
cooldown_s = 60

[apply]
tick_s = 5

[planner.timing]
apply_every_s = 30

[health]
plan_old_h = 0
metrics_old_h = 0
models_old_h = 0
"""


def start_cluster(work_dir: Path, slots: int) -> LocalCluster:
    """Return a cluster that runs; one that does not come up is tried again.

    Raises:
        FlinkError: it did not come up in all tries.
    """
    for attempt in range(1, TRIES + 1):
        cluster = LocalCluster(work_dir, ClusterOptions.quick(slots=slots))
        try:
            cluster.start()
            return cluster
        except FlinkError as error:
            cluster.stop()
            if attempt == TRIES or isinstance(error, JavaBuildError):
                raise
            print(f"demo: Flink did not come up ({str(error).partition(chr(10))[0]}): trying again ...", flush=True)
    raise AssertionError("not reached")


def write_settings(out: Path, rest_url: str, slots: int, mode: str) -> dict[str, str]:
    """Write the settings; returns the environment under which controller and page use them."""
    file = out / "tidewise.toml"
    write_text(file, SETTINGS.format(out=out, rest_url=rest_url, slots=slots, mode=mode))
    others = {name: text for name, text in os.environ.items() if not name.startswith("TIDEWISE_")}
    (out / "lake").mkdir(parents=True, exist_ok=True)
    (out / "raw").mkdir(parents=True, exist_ok=True)
    return others | {SETTINGS_FILE_VARIABLE: str(file.resolve())}


def run(options: argparse.Namespace) -> None:
    """Start everything, say where it is and what to try, and stop it all on Ctrl-C."""
    out = require_writable(options.out, "--out").resolve()
    require_free(options.port, "--port")
    print("demo: starting Flink (20 s, on a busy machine some minutes) ...", flush=True)
    cluster = start_cluster(out / "flink", options.slots)
    group: ProcessGroup | None = None
    try:
        load = LoadOptions(compression=DAY_S / (options.day_minutes * 60))
        print("demo: starting the job and its load ...", flush=True)
        job_id = submit_load(cluster.client, out / "flink", load)
        environment = write_settings(out, cluster.rest_url, options.slots, options.mode)
        from page.visitors import COOKIE  # a server's packages: after what is said first

        token = secrets.token_urlsafe(24)
        group = ProcessGroup(environment | {PAGE_TOKEN_VARIABLE: token}, out / "logs")
        group.start(Service("controller", [sys.executable, "-m", "controller"]))
        group.start(
            Service("page", [sys.executable, "-m", "cli.console", "page", "--act", "--port", str(options.port)])
        )
        page = f"http://{LOOPBACK}:{options.port}"
        wait_for("the page", Request(f"{page}/", headers={"Cookie": f"{COOKIE}={token}"}), group)
        print(f"demo: page   {page}/?token={token}   (hold, pin, undo, approve)")
        print(f"demo: Flink  {cluster.rest_url}   (job {load.job_name} = {job_id})")
        print(f"demo: a day of its load takes {options.day_minutes:g} min; mode {options.mode}; logs in {out / 'logs'}")
        print("demo: no DAG runs, so there are no plans: the controller decides by what it measures")
        print(f"demo: in another terminal, after: export {SETTINGS_FILE_VARIABLE}={out / 'tidewise.toml'}")
        print(f"demo:   ./tidewise status, ./tidewise log, ./tidewise why {CLUSTER}/{load.job_name}")
        print("demo: Ctrl-C stops everything", flush=True)
        follow(cluster, group, job_id)
    finally:
        if group is not None:
            group.stop()
        cluster.stop()


def follow(cluster: LocalCluster, group: ProcessGroup, job_id: str) -> None:
    """Print the job's parallelism whenever it changes, until interrupted."""
    shown: dict[str, int] | None = None
    while True:
        group.check()
        try:
            running = cluster.client.running_parallelism(job_id)
        except FlinkError:
            running = {}
        if running != shown:
            text = ", ".join(f"{name} x{count}" for name, count in running.items()) or "(re)starting"
            print(f"demo: {time.strftime('%H:%M:%S')} {text}", flush=True)
            shown = running
        time.sleep(_LOOK_EVERY_S)


def main(argv: Sequence[str]) -> int:
    """Run until interrupted; returns the exit code."""
    parser = CommandParser(prog="tidewise demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=PROJECT / OUT, help=f"folder of all its files; default: {OUT}")
    parser.add_argument("--port", type=whole_number(1, 65535), default=8090, help="of the page; default: 8090")
    parser.add_argument("--slots", type=whole_number(1, 1000), default=8, help="of the cluster; default: 8")
    parser.add_argument("--mode", choices=["dry-run", "approve", "auto"], default="auto", help="default: auto")
    parser.add_argument(
        "--day-minutes", type=number(0, 1440, above=True), default=15.0, help="length of the load's day; default: 15"
    )
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process would ignore it
    try:
        run(options)
    except KeyboardInterrupt:
        print("demo: stopped")
    except UsageError as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (FlinkError, UiError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
