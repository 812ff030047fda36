"""The page within Airflow: its plugin as Airflow finds and mounts it, behind its own auth manager and log-ins."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from browser import find_browser
from browser_session import BrowserSession, browser_session

from page import PREFIX

USERS = {"vera": "viewer", "olga": "op"}
"""Who may look, and who may do all."""
NOBODY = "nora"
"""Logged in, and without a role."""


@cache
def airflow_app() -> Any:
    """Return an application with all plugins, the auth manager and Airflow's middlewares; without its own views."""
    os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] = ",".join(map(":".join, USERS.items()))
    from airflow import settings
    from airflow.api_fastapi.app import init_auth_manager, init_plugins
    from airflow.api_fastapi.core_api.app import init_config, init_middlewares
    from airflow.models.base import Base
    from airflow.utils.db import import_all_models
    from fastapi import FastAPI

    import_all_models()
    Base.metadata.create_all(settings.engine)
    app = FastAPI()
    init_plugins(app)
    init_auth_manager(app)
    init_middlewares(app)
    init_config(app)
    return app


def page_plugin() -> dict[str, Any]:
    """Return what Airflow mounts of the plugin."""
    from airflow.plugins_manager import get_fastapi_plugins

    (result,) = [one for one in get_fastapi_plugins()[0] if one["url_prefix"] == PREFIX]
    return dict(result)


def forget_app() -> None:
    """Have the plugin read the settings of this test, as a new process would."""
    page_plugin()["app"].__globals__["_app"].cache_clear()


def log_in(client: Any, name: str) -> str:
    """Log in with the password that the auth manager has made; returns the token.

    A person without a role cannot log in to this auth manager, so their token is made by it directly.
    """
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    if name == NOBODY:
        without: str = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=name, role=None))
        return without
    passwords = json.loads(Path(SimpleAuthManager.get_generated_password_file()).read_text())
    reply = client.post("/auth/token", json={"username": name, "password": passwords[name]})
    assert reply.status_code == 201, reply.text
    token: str = reply.json()["access_token"]
    return token


@contextmanager
def opened(app: Any, folder: Path) -> Iterator[tuple[str, BrowserSession]]:
    """Serve an application and start a browser for it; yields its address and a tab that shows nothing yet."""
    browser = find_browser()
    if browser is None:
        pytest.fail("no Chromium on PATH, so the page is not tried in a browser: apt-get install chromium")
    with served(app) as address, browser_session(browser, folder) as tab:
        yield address, tab


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a port of its own; yields its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    ends = time.monotonic() + 30
    while not server.started and time.monotonic() < ends:
        time.sleep(0.02)
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
