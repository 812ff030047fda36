"""`make run` with every path on S3 plans the same steps, byte for byte, as on folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from local_s3 import BUCKET, list_requests, s3_environment, s3_server
from request_kinds import METHODS, table_of_requests

from tools.markdown import format_table

REPOSITORY = Path(__file__).resolve().parents[2]
DAYS = os.environ.get("TIDEWISE_RUN_DAYS", "2")


@pytest.mark.long
@pytest.mark.timeout(3500)
def test_a_run_on_s3_plans_what_a_run_on_folders_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = run(str(tmp_path / "out"), tmp_path / "local.log")
    expected = (tmp_path / "out" / "plans.json").read_bytes()
    with s3_server() as address:
        variables = {name: value for name, value in s3_environment(address).items() if "__PATHS__" not in name}
        root = f"s3://{BUCKET}/run"
        requests: dict[str, list[str]] = {}
        part = "start"

        def note(line: str) -> None:
            """Give what was asked for until a line to the part before it."""
            nonlocal part
            requests.setdefault(part, []).extend(list_requests(address))
            if begun := re.search(r"\d of \d +(\w+):", line):
                part = begun[1]

        on_s3 = run(
            root,
            tmp_path / "s3.log",
            note,
            **{name: value for name, value in variables.items() if "MLFLOW" not in name},
        )
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        from include.place import place
        from include.settings import load_settings

        load_settings()
        made = place(root)
        assert (made / "plans.json").read_bytes() == expected
        assert not [one for one in REPOSITORY.iterdir() if one.name.startswith("s3")]  # no bucket taken for a folder
        assert (made / "report.html").is_file()
        assert (made / "lake" / "silver").is_dir()
        assert (made / "raw").is_dir()
        assert (made / "mlartifacts").is_dir()
        print(format_table(["part", "requests", *METHODS, "most of them"], table_of_requests(requests)))
        assert {"ingest", "train", "forecast", "plan", "control"} <= requests.keys()
    print(local, on_s3, f"plans.json: {len(expected)} bytes, the same", sep="\n")


def run(out: str, log: Path, note: Callable[[str], None] = lambda line: None, **variables: str) -> str:
    """Run below a folder or prefix; returns its last line. Each line is noted when it comes, and once more the end."""
    command = [sys.executable, "-u", "-m", "cli.console", "run", "--days", DAYS, "--out", out]
    lines = [""]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, cwd=REPOSITORY, env=os.environ | variables, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            note(line)
            lines.append(line.strip())
    note("")
    assert running.returncode == 0, "\n".join(lines[-20:]) + log.read_text()[-4000:]
    return next(line for line in reversed(lines) if line)
