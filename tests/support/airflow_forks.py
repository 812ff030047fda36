"""A process that imports Airflow once and forks for each piece of code that it is given, as Airflow itself does.

Each line of its input is a request; each of its replies is a line ``exit CODE``.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

# Airflow and its operators are imported by every DAG processor once, before the first file.
import airflow.providers.apache.spark.operators.spark_submit
import airflow.providers.standard.operators.hitl
import airflow.providers.standard.operators.python
import airflow.sdk  # noqa: F401


def run(request: dict[str, Any]) -> int:
    """Run the code of a request in this process, which was forked for it; returns the exit code."""
    for descriptor, path in ((1, request["output"]), (2, request["errors"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.argv = ["-c", *request["arguments"]]
    os.environ.update(request["variables"])
    try:
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(run(json.loads(line)))
        print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
