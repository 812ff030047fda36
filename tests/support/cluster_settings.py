"""The settings of the pipeline on several machines, and of the same pipeline on one."""

from __future__ import annotations

import sys

from local_s3 import BUCKET

ROOT = f"s3://{BUCKET}/run"
LAKE, RAW, ARTIFACTS = f"{ROOT}/lake", f"{ROOT}/raw", f"{ROOT}/mlartifacts"
# What rows depend on.
_RULES = """
[clusters.simulated]
window_s = 600
slots_max = 64

[clusters.chaos]
rest_url = "{flink}"
window_s = 60
poll_every_s = 20
slots_max = 8

[clusters.chaos.limits]
mode = "auto"
cooldown_s = 30

[planner.policies]
"chaos/orders" = "need_vector"
"""
_PLACES = """
[paths]
lake = "{lake}"
raw = "{raw}"
out = "{out}"

[mlflow]
tracking_uri = "{mlflow}"
artifact_root = "{artifacts}"

[storage]
endpoint = "{s3}"
region = "us-east-1"

[spark]
master = "{master}"
driver_memory = "2g"
executors = 2
executor_cores = 1
executor_memory = "1g"
executor_python = "{python}"

[apply]
as_service = true
tick_s = 15
"""


def rules(flink: str) -> str:
    """Return the settings that both have."""
    return _RULES.format(flink=flink)


def local_places(flink: str, s3: str) -> str:
    """Return settings of one machine whose every path lies on S3."""
    paths = f'[paths]\nlake = "{LAKE}"\nraw = "{RAW}"\nout = "{ROOT}"\n[mlflow]\nartifact_root = "{ARTIFACTS}"\n'
    return f'{rules(flink)}{paths}[storage]\nendpoint = "{s3}"\nregion = "us-east-1"\n'


def places(*, mlflow: str, s3: str, master: str) -> str:
    """Return where everything lies and runs on several machines."""
    return _PLACES.format(
        lake=LAKE, raw=RAW, out=ROOT, mlflow=mlflow, artifacts=ARTIFACTS, s3=s3, master=master, python=sys.executable
    )
