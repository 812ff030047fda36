"""A process that says what Airflow finds: its database, and whether the DAG files import; one JSON line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from include.entry_points import EntryPointError
from include.orchestration.pools import POOLS
from include.orchestration.submitted_stage import find_maker
from include.settings import load_settings

MARK = "@doctor "


def main(argv: Sequence[str]) -> int:
    """Print what was found; ``--no-database``: without a look at the database, which is then null."""
    from airflow.configuration import conf
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(conf.get("core", "dags_folder"))
    errors = {file: trace.strip().splitlines()[-1] for file, trace in bag.import_errors.items()}
    database = None if argv else check_database()
    has_connections = database == ""
    connection = find_connection() if has_connections else None
    result: dict[str, Any] = {
        "dags": sorted(bag.dags),
        "errors": errors,
        "database": database,
        "missing": list_missing(connection) if has_connections else [],
        "submission": None if connection is None else check_submission(connection),
    }
    print(MARK + json.dumps(result), flush=True)
    return 0


def find_connection() -> Any | None:
    """Return the connection through which stages are submitted, from where tasks look for it."""
    from airflow.configuration import ensure_secrets_loaded

    # A secrets backend, the environment, the database.
    wanted = load_settings().spark.connection_id
    return next(filter(None, (backend.get_connection(wanted) for backend in ensure_secrets_loaded())), None)


def list_missing(connection: Any | None) -> list[str]:
    """Return pools and the connection that the DAGs need and the database does not have."""
    from airflow.models.pool import Pool

    present = Pool.slots_stats()
    result = [f"pool {name}" for name in POOLS if name not in present]
    if connection is None:
        result.append(f"connection {load_settings().spark.connection_id}")
    return result


def check_submission(connection: Any) -> dict[str, str | None]:
    """Return the type of the connection, and why no stage can be submitted through it."""
    try:
        find_maker(connection.conn_type)
    except EntryPointError as error:
        return {"type": connection.conn_type, "refusal": str(error)}
    return {"type": connection.conn_type, "refusal": None}


def check_database() -> str:
    """Return what is wrong with the database; empty when nothing is."""
    from airflow.settings import get_engine
    from airflow.utils import db
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with get_engine().connect() as connection:  # type: ignore[no-untyped-call]
            connection.execute(text("SELECT 1"))
        db.check_migrations(0)  # type: ignore[no-untyped-call]
    except SQLAlchemyError as problem:
        return str(problem).splitlines()[0]
    except TimeoutError:
        return "its tables are of another version"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
