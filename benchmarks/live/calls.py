"""How a call of the live commands ends: its exit code, and one line where it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.live.load_window import WindowError
from benchmarks.replay.replay_traces import TraceError
from cli.arguments import EXIT_USAGE, UsageError
from include.flink.faults import FlinkError
from lab.commands.spark_application import ApplicationError


def run_call(name: str, goes_on: str, call: Callable[[], int]) -> int:
    """Return the exit code of a call.

    Args:
        name: of the command.
        goes_on: with what the next call goes on.
        call: what is done.
    """
    try:
        return call()
    except (UsageError, WindowError, TraceError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (FlinkError, ApplicationError, subprocess.CalledProcessError) as error:
        print(f"tidewise: {name} failed: {error}; the next call goes on {goes_on}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: stopped; the next call goes on {goes_on}", file=sys.stderr)
        return 130
