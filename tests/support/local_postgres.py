"""A PostgreSQL server on loopback with empty databases; it is gone with its folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machine_programs import find_program, has_program
from waiting import free_port, wait_until

from lab.local_flink.processes import end_process

USER = "tidewise"
_PATTERN = "usr/lib/postgresql/*/bin"
# Nothing of it is needed after the machine has crashed.
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def is_installed() -> bool:
    """Whether its programs are on this machine."""
    return has_program("initdb", _PATTERN)


@contextmanager
def local_postgres(*databases: str) -> Iterator[str]:
    """Run a server; gives ``user@host:port``, to which a database's name is added.

    Raises:
        AssertionError: it is not installed, or does not start.
    """
    initdb, postgres = (find_program(name, "postgresql", _PATTERN) for name in ("initdb", "postgres"))
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="tidewise-postgres-"))
    if account is not None:
        shutil.chown(folder, account, account)
    port = free_port()
    made = subprocess.run(
        [initdb, "--auth=trust", f"--username={USER}", "--encoding=UTF8", "--no-sync", str(folder / "data")],
        user=account,
        group=account,
        cwd=folder,
        env=_plain(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    options = (f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", *_QUICK)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [postgres, "-D", str(folder / "data"), *(word for one in options for word in ("-c", one))],
            user=account,
            group=account,
            cwd=folder,
            env=_plain(folder),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        address = f"{USER}@127.0.0.1:{port}"
        assert wait_until(lambda: _answers(address), 60), (folder / "log").read_text()
        for name in databases:
            _create(address, name)
        yield address
    finally:
        end_process(server)
        shutil.rmtree(folder, ignore_errors=True)


def read_rows(address: str, database: str, query: str, *values: str) -> list[tuple[object, ...]]:
    """Return what a query gives."""
    connection = _connect(address, database)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(query, values)
            return list(cursor.fetchall())
    finally:
        connection.close()


def _account() -> str | None:
    """Return under whom it runs: not as root, which it refuses."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _plain(folder: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": str(folder)}


def _connect(address: str, database: str) -> Any:
    import psycopg2  # of an extra

    return psycopg2.connect(f"postgresql://{address}/{database}")


def _answers(address: str) -> bool:
    import psycopg2

    try:
        return read_rows(address, "postgres", "SELECT 1") == [(1,)]
    except psycopg2.OperationalError:
        return False


def _create(address: str, database: str) -> None:
    connection = _connect(address, "postgres")
    try:
        connection.autocommit = True  # a database is made outside of a transaction
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{database}"')
    finally:
        connection.close()
