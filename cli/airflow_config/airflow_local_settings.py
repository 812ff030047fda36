"""What Airflow loads at its start when it keeps its tables in SQLite (see :mod:`cli.embedded`)."""

from __future__ import annotations

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

__all__: list[str] = []  # Airflow takes every public name for a cluster policy


@event.listens_for(Engine, "savepoint")  # type: ignore[untyped-decorator,unused-ignore]
def take_write_lock_first(connection: Connection, name: str) -> None:  # noqa: ARG001 - the signature is SQLAlchemy's
    """Take SQLite's write lock before a savepoint opens a transaction.

    A transaction that reads first and then writes is refused at once ("database is locked") when another process
    wrote in between, however long the timeout; one that begins with the lock waits for its turn.
    """
    if connection.dialect.name == "sqlite" and not connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]
        connection.exec_driver_sql("BEGIN IMMEDIATE")
