"""Checks of the lake and of MLflow, by doing what the stages do there."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
import urllib3
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore

from cli.doctor.findings import Finding, Level, error, ok, warning
from cli.doctor.machine import find_existing
from fleet.fleet_reader import FleetReader
from include.backup.registry_copy import database_file
from include.object_store import open_store
from include.settings import Settings

_SQLITE = "sqlite:///"
_TRIES: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=10)}
_SEARCH_WITHIN_S = 120.0
_SEARCH = """
import os
import sys
try:
    from mlflow import MlflowClient
    MlflowClient(os.environ["MLFLOW_TRACKING_URI"]).search_registered_models(max_results=1)
except Exception as error:
    sys.exit(print(f"{type(error).__name__}: {' '.join(str(error).split())}") or 1)
"""
_CONTENT = b"written by tidewise doctor; may be removed"


def check_lake(settings: Settings) -> list[Finding]:
    """Write, read and write again only where nothing is, as Delta commits; then remove what was written."""
    return check_place("lake", settings.paths.lake)


def check_tables(settings: Settings) -> list[Finding]:
    """Name the tables of the lake that are lost."""
    lost = FleetReader(settings, {}).find_lost_tables()
    remedy = "put it back: tidewise restore, or run its stages again (docs/runbook.md)"
    return [error("tables", one.name, str(one), remedy) for one in lost] or [ok("tables", "lost", "no table is lost")]


def check_place(part: str, uri: str) -> list[Finding]:
    """Do so below one root, a folder or URI that findings call ``part``."""
    name = f"_doctor/{uuid.uuid4().hex}"
    findings: list[Finding] = []
    try:
        store = open_store(uri, retry_config=_TRIES)
        obstore.put(store, name, _CONTENT)
    except Exception as problem:  # of the file system or of any provider's client
        return [error(part, "write", f"{uri} cannot be written: {describe(problem)}", _remedy(uri))]
    findings.append(ok(part, "write", f"{uri} can be written"))
    findings.append(_check_read(part, store, name, uri))
    findings.append(_check_conditional(part, store, name, uri))
    findings.append(_check_delete(part, store, name, uri))
    return findings


def _check_read(part: str, store: ObjectStore, name: str, uri: str) -> Finding:
    try:
        content = bytes(obstore.get(store, name).bytes())
    except Exception as problem:
        return error(part, "read", f"{uri} cannot be read: {describe(problem)}", _remedy(uri))
    if content != _CONTENT:
        return error(part, "read", f"{uri} gives back other bytes than were written", "use another store")
    return ok(part, "read", "what was written comes back")


def _check_conditional(part: str, store: ObjectStore, name: str, uri: str) -> Finding:
    try:
        obstore.put(store, name, b"second", mode="create")
    except AlreadyExistsError:
        return ok(part, "conditional write", "a second writer of a commit is refused")
    except Exception as problem:
        text = f"{uri} knows no conditional write: {describe(problem)}"
        return error(part, "conditional write", text, "use a store that does (If-None-Match), or one writer at a time")
    return error(
        part,
        "conditional write",
        f"{uri} lets a second writer replace a commit, so tables would lose rows",
        "use a store with conditional writes (S3, GCS, Azure, MinIO, a local disk)",
    )


def _check_delete(part: str, store: ObjectStore, name: str, uri: str) -> Finding:
    try:
        obstore.delete(store, name)
    except Exception as problem:
        text = f"{uri}/{name} cannot be removed: {describe(problem)}"
        return warning(part, "delete", text, "give the right to delete: old files of tables are never removed without")
    _remove_folder(uri)
    return ok(part, "delete", "what was written is removed")


def _remove_folder(uri: str) -> None:
    folder = Path(uri) / "_doctor"
    if "://" not in uri and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _remedy(uri: str) -> str:
    if "://" in uri:
        return "give the credentials read, write and delete on this place (s3:GetObject, PutObject, DeleteObject, say)"
    return f"let the user {os.environ.get('USER', os.getuid())} write there, or set paths.lake to another folder"


def describe(problem: BaseException) -> str:
    """Return the name of an error and the beginning of what it says."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text[:200]}" if text else type(problem).__name__


def check_mlflow(settings: Settings) -> list[Finding]:
    """Check that MLflow's database or server can be used, and the models in it."""
    uri, file = settings.mlflow.tracking_uri, database_file(settings.mlflow)
    reached = [] if (one := check_reach(uri)) is None else [one]
    if any(one.level is not Level.OK for one in reached) or (file is not None and not file.exists()):
        return reached
    searched = search_mlflow(uri)
    return [*reached, searched, *(check_champion(settings) if searched.level is Level.OK else [])]


def check_reach(uri: str) -> Finding | None:
    """Check what shows without MLflow: that a SQLite file can be written, and that a server replies; else None."""
    if uri.startswith(_SQLITE):
        return _check_database(Path(uri.removeprefix(_SQLITE).partition("?")[0]))
    return _check_server(uri) if uri.startswith(("http://", "https://")) else None


def search_mlflow(uri: str) -> Finding:
    """Ask MLflow for a model, in a process that can be ended: it tries for minutes to reach a database."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SEARCH],
            env={**os.environ, "MLFLOW_TRACKING_URI": uri, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SEARCH_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"{uri} has not replied within {_SEARCH_WITHIN_S:g} s"
        return error("MLflow", "search", text, "does the database answer, and is mlflow.tracking_uri right?")
    if done.returncode:
        return judge_refusal(uri, done.stdout.strip() or f"the search ended with {done.returncode}")
    return ok("MLflow", "search", f"{uri} is searched as trainings do it")


def judge_refusal(uri: str, reported: str) -> Finding:
    """Return what MLflow's refusal of a search means."""
    if reported.startswith("ModuleNotFoundError: No module named 'mlflow'"):
        return warning("MLflow", "search", f"{uri} was not asked: MLflow is not installed here", "run `make setup`")
    remedy = "is mlflow.tracking_uri right, and may this login read there?"
    if "mlflow db upgrade" in reported:
        remedy = f"take a backup of the database, then run `mlflow db upgrade {uri}`"
    elif "migrate-filestore" in reported:
        remedy = "run `mlflow migrate-filestore`, and name the database that it makes in mlflow.tracking_uri"
    return error("MLflow", "search", f"{uri}: {reported[:300]}", remedy)


def check_champion(settings: Settings) -> list[Finding]:
    """Check that the models that plans should use can be read, of an MLflow that can be searched."""
    from spark_jobs.model_store import ModelStore  # MLflow takes seconds

    champion = ModelStore(settings.mlflow).read_champion()
    if champion.lost:
        used = "no models are in use" if champion.registered is None else f"version {champion.registered.number} is"
        remedy = "put its files back, or let tidewise_train run: what it makes is promoted as ever"
        return [error("models", "champion", f"{'; '.join(champion.lost)}; {used}", remedy)]
    if champion.registered is None:
        return [ok("models", "champion", "nothing is promoted yet")]
    return [ok("models", "champion", f"version {champion.registered.number} can be read")]


def _check_database(file: Path) -> Finding:
    remedy = "let this user write the file and its folder, or set mlflow.tracking_uri"
    if not file.exists():
        folder = find_existing(file.parent)
        if not os.access(folder, os.W_OK):
            return error("MLflow", "store", f"{folder} cannot be written, {file.name} would be made there", remedy)
        return ok("MLflow", "store", f"{file} is made by the first training")
    try:
        with sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=5) as database:
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as problem:
        return error("MLflow", "store", f"{file}: {problem}", remedy)
    if tables and "alembic_version" not in tables:
        return error("MLflow", "store", f"{file} is another program's database", "set mlflow.tracking_uri")
    return ok("MLflow", "store", f"{file} can be written")


def _check_server(uri: str) -> Finding:
    remedy = "is mlflow.tracking_uri right, and does the server run?"
    try:
        pool = urllib3.PoolManager(retries=False, timeout=5.0)
        reply = pool.request("GET", f"{uri.rstrip('/')}/version")
    except urllib3.exceptions.HTTPError as problem:
        return error("MLflow", "store", f"{uri} does not reply: {describe(problem)}", remedy)
    if reply.status in {401, 403}:
        return error(
            "MLflow",
            "store",
            f"{uri} refuses with {reply.status}",
            "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
        )
    if reply.status != 200:
        return warning("MLflow", "store", f"{uri}/version replies with {reply.status}", remedy)
    return ok("MLflow", "store", f"{uri} is MLflow {reply.data.decode(errors='replace')[:20]}")
