"""What a machine of a team has of its own: a home, Airflow's home, the settings, and a checkout of the project."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from include.settings import PROJECT

CODE = ("cli", "controller", "dags", "fleet", "include", "models", "page", "spark_jobs")
SHARED = (".venv", ".cache")
"""What `make setup` has made, which is as large as everything else together: the same files, by a link."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine by its folder; nothing that is written to it is seen by another one."""

    folder: Path

    @property
    def checkout(self) -> Path:
        """The project there."""
        return self.folder / "tidewise"

    @property
    def settings_file(self) -> Path:
        """Its settings."""
        return self.folder / "home" / "tidewise.toml"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that are unlike those of other machines."""
        return {
            "HOME": str(self.folder / "home"),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.checkout / "dags"),
            "PYTHONPATH": str(self.checkout),
            "TIDEWISE_SETTINGS": str(self.settings_file),
        }

    def read_logs(self, task: str) -> str:
        """Return what Airflow logged here of a DAG's task, ``dag_id=.../.../task_id=...`` or a part of it."""
        files = sorted((self.folder / "airflow" / "logs").rglob("*.log"))
        return "\n".join(one.read_text(errors="replace") for one in files if task in str(one))


def make_machine(folder: Path, settings: str) -> Machine:
    """Make a machine with these settings."""
    machine = Machine(folder)
    for name in ("home", "airflow"):
        (folder / name).mkdir(parents=True)
    machine.settings_file.write_text(settings)
    for name in CODE:
        shutil.copytree(PROJECT / name, machine.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SHARED:
        (machine.checkout / name).symlink_to((PROJECT / name).resolve())
    return machine
