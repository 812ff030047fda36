"""`make run` with every path on S3 plans the same steps, byte for byte, as on folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_s3 import BUCKET, count_requests, s3_environment, s3_server

REPOSITORY = Path(__file__).resolve().parents[2]
DAYS = os.environ.get("TIDEWISE_RUN_DAYS", "2")


@pytest.mark.long
@pytest.mark.timeout(3500)
def test_a_run_on_s3_plans_what_a_run_on_folders_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = run(str(tmp_path / "out"))
    expected = (tmp_path / "out" / "plans.json").read_bytes()
    with s3_server() as address:
        variables = {name: value for name, value in s3_environment(address).items() if "__PATHS__" not in name}
        root = f"s3://{BUCKET}/run"
        on_s3 = run(root, **{name: value for name, value in variables.items() if "MLFLOW" not in name})
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
        print(f"requests: {count_requests(address)}")
    print(local, on_s3, f"plans.json: {len(expected)} bytes, the same", sep="\n")


def run(out: str, **variables: str) -> str:
    """Run below a folder or prefix; returns its last line."""
    command = [sys.executable, "-m", "cli.run", "--days", DAYS, "--out", out]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout.strip().splitlines()[-1]
