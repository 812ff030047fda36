"""Airflow's tables in SQLite: several processes write, and each waits for its turn."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cli.embedded import DATABASE_WAITS_S, airflow_environment, below
from include.settings import load_settings

REPOSITORY = Path(__file__).resolve().parents[2]

# Within a savepoint another connection writes between this one's read and its write, as Airflow's scheduler does
# between those of `backfill create`.
SAVEPOINT = """
import sqlite3
from cli.dag_runner import prepare_database
prepare_database()
from airflow.settings import Session, engine
from sqlalchemy import text
session = Session()
with session.begin_nested():
    session.execute(text("select count(*) from slot_pool")).all()
    other = sqlite3.connect(engine.url.database, timeout=0.1)
    try:
        other.execute("update slot_pool set description = 'theirs'")
        other.commit()
        print("other: written")
    except sqlite3.OperationalError as error:
        print(f"other: {error}")
    session.execute(text("update slot_pool set description = 'ours'"))
session.commit()
with engine.connect() as connection:
    print("timeout:", connection.exec_driver_sql("pragma busy_timeout").scalar())
"""
# A database of before the assets had URIs: Airflow would call them inactive, and fail every task that writes them.
# In the same process: a database takes five CPU seconds.
OLD_ADDRESSES = """
from airflow.models.asset import AssetActive, AssetModel
from airflow.utils.session import create_session
from cli.dag_runner import release_old_addresses
from include.orchestration.assets import RAW
with create_session() as session:
    for uri in ("raw.payloads", RAW.uri):
        session.add(AssetModel(name="raw.payloads", uri=uri, group="tidewise"))
    session.flush()
    session.add(AssetActive(name="raw.payloads", uri="raw.payloads"))
release_old_addresses()
with create_session() as session:
    print("active:", [(one.name, one.uri) for one in session.query(AssetActive)])
"""


@pytest.fixture
def environment(tmp_path, monkeypatch) -> dict[str, str]:
    for name, value in below(tmp_path).items():
        monkeypatch.setenv(name, value)
    return airflow_environment(load_settings(), os.environ)


def test_a_savepoint_holds_the_write_lock_and_assets_of_before_have_their_present_addresses(environment, tmp_path):
    command = [sys.executable, "-c", SAVEPOINT + OLD_ADDRESSES]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "other: database is locked" in done.stdout
    assert f"timeout: {DATABASE_WAITS_S * 1000}" in done.stdout
    assert "active: [('raw.payloads', 'x-tidewise://raw/payloads')]" in done.stdout
    with sqlite3.connect(tmp_path / "airflow" / "airflow.db") as result:
        assert {row[0] for row in result.execute("select description from slot_pool")} == {"ours"}
        assert result.execute("pragma journal_mode").fetchone() == ("wal",)
