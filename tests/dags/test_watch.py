"""tidewise_watch: its command is green and red as the fleet is."""

from __future__ import annotations

import os
import subprocess

import pytest

pytestmark = pytest.mark.airflow


def test_its_command_fails_with_what_to_do(dags, tmp_path) -> None:
    task = dags["tidewise_watch"].get_task("watch")
    file = tmp_path / "settings.toml"
    file.write_text(
        f'[paths]\nlake = "{tmp_path}/lake"\nraw = "{tmp_path}/raw"\n[clusters.prod]\nrest_url = "http://j"\n'
    )
    environment = dict(os.environ) | task.env | {"TIDEWISE_SETTINGS": str(file)}
    done = subprocess.run(
        ["bash", "-c", task.bash_command], cwd=task.cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "prod: no controller has ever worked on it" in done.stdout
    assert "start it: make control" in done.stdout
    assert task.retries == 0
