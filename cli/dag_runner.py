"""A process that runs the real DAGs one after the other, as its parent asks (see :mod:`cli.dag_client`).

One process for all of them: importing Airflow takes longer than running most tasks.  Requests come as JSON lines on
standard input; what Airflow and Spark print goes to standard output, and so do the replies, marked by a prefix.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REPLY = "@tidewise "


def prepare_database() -> None:
    """Create Airflow's tables (in SQLite) and the project's pools when they are not there."""
    from airflow.configuration import conf
    from airflow.models.pool import Pool
    from airflow.settings import get_engine
    from airflow.utils import db

    from include.orchestration.pools import POOLS

    if not _is_migrated(str(conf.get("database", "sql_alchemy_conn"))):
        db.upgradedb()
    with get_engine().connect() as connection:  # type: ignore[no-untyped-call]
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")  # kept in the file: readers make no writer wait
    for name, (slots, description) in POOLS.items():
        Pool.create_or_update_pool(name, slots, description, include_deferred=False)
    release_old_addresses()


def release_old_addresses() -> None:
    """Have our assets active under their present URIs: a database of before holds their names under others.

    A scheduler does so once a minute; `make run` has none, and a task whose assets are not active fails.
    """
    from airflow.models.asset import AssetActive, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete, select

    from include.orchestration.assets import list_assets

    with create_session() as session:
        for asset in list_assets():
            session.execute(delete(AssetActive).where(AssetActive.name == asset.name, AssetActive.uri != asset.uri))
            known = select(AssetModel).where(AssetModel.name == asset.name, AssetModel.uri == asset.uri)
            model = session.scalar(known)
            if model is not None and session.get(AssetActive, (asset.name, asset.uri)) is None:
                session.add(AssetActive.for_asset(model))


def _is_migrated(connection: str) -> bool:
    from airflow.utils import db
    from sqlalchemy import make_url

    file = Path(make_url(connection).database or "")
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        return False
    try:
        db.check_migrations(0)  # type: ignore[no-untyped-call]
    except TimeoutError:
        return False
    return True


def load_dags() -> dict[str, Any]:
    """Return the project's DAGs by id.

    Raises:
        RuntimeError: a DAG file does not import.
    """
    from airflow.configuration import conf
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(conf.get("core", "dags_folder"))
    if bag.import_errors:
        raise RuntimeError(f"DAG files do not import: {bag.import_errors}")
    return dict(bag.dags)


def run_dag(dag: Any, conf: dict[str, Any]) -> dict[str, Any]:
    """Run one DAG to its end; returns its state, and that of each task.

    Its logical date is the present, from which Airflow counts the duration; the time to look from is in ``conf``.
    """
    for task in dag.tasks:
        task.retries = 0  # a person is waiting: a failure is shown at once
    run = dag.test(run_conf=conf)
    return {"state": str(run.state), "tasks": {one.task_id: str(one.state) for one in run.get_task_instances()}}


def main() -> int:
    """Answer requests until standard input ends; returns the exit code."""
    prepare_database()
    dags = load_dags()
    _reply({"ready": sorted(dags)})
    for line in sys.stdin:
        request = json.loads(line)
        _reply(run_dag(dags[request["dag_id"]], request["conf"]))
    return 0


def _reply(content: dict[str, Any]) -> None:
    print(f"{REPLY}{json.dumps(content)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
