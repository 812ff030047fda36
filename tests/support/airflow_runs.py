"""DAG runs of an Airflow on PostgreSQL: asked for by its API, followed in its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_parts import AirflowParts
from local_postgres import read_rows
from waiting import wait_until

_READS_DAGS_S = 300.0
_ENDED = {"success", "failed"}


@dataclass(frozen=True, slots=True)
class Tries:
    """A task of a run: its state, and on which worker it was tried how often."""

    state: str
    count: int


@dataclass(frozen=True, slots=True)
class AirflowRuns:
    """Runs of an Airflow.

    Attributes:
        airflow: which.
        postgres: where its tables are, ``user@host:port``.
        date: logical date of the runs, ISO 8601.
    """

    airflow: AirflowParts
    postgres: str
    date: str

    def switch_on(self, *names: str) -> None:
        """Wait until Airflow has read the DAGs, and switch them on.

        Raises:
            AssertionError: it does not read them.
        """
        query = "SELECT dag_id FROM serialized_dag"
        assert wait_until(lambda: set(names) <= {one for (one,) in self._ask(query)}, _READS_DAGS_S, 1.0), self._ask(
            "SELECT filename, stacktrace FROM import_error"
        ) or self._ask(query)
        for name in names:
            self.airflow.request("PATCH", f"/api/v2/dags/{name}", {"is_paused": False})

    def trigger(self, dag: str, conf: Mapping[str, str]) -> None:
        """Ask for a run at the logical date."""
        run = {"dag_run_id": f"cluster__{dag}", "logical_date": self.date, "conf": dict(conf)}
        self.airflow.request("POST", f"/api/v2/dags/{dag}/dagRuns", run)

    def read_state(self, dag: str) -> str:
        """Return the state of the run."""
        rows = self._ask("SELECT state FROM dag_run WHERE run_id = %s", f"cluster__{dag}")
        return str(rows[0][0]) if rows else ""

    def read_states(self) -> list[tuple[object, ...]]:
        """Return every task of every run with its state, where it ran and how often it was tried."""
        return self._ask("SELECT dag_id, task_id, state, hostname, try_number FROM task_instance")

    def wait_for(self, dag: str, within_s: float) -> str:
        """Wait until the run has ended; returns its state."""
        wait_until(lambda: self.read_state(dag) in _ENDED, within_s, 1.0)
        return self.read_state(dag)

    def read_tries(self, dag: str) -> dict[str, Tries]:
        """Return task -> how it ended, and how often it was tried."""
        query = "SELECT task_id, state, try_number FROM task_instance WHERE run_id = %s"
        return {
            str(task): Tries(str(state), int(str(number)))
            for task, state, number in self._ask(query, f"cluster__{dag}")
        }

    def _ask(self, query: str, *values: str) -> list[tuple[object, ...]]:
        return read_rows(self.postgres, "airflow", query, *values)
