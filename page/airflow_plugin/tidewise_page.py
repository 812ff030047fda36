"""Airflow's plugin: the page below ``/tidewise/``, and its entry in the navigation.

Every process of Airflow loads this file, and the API server alone answers requests, so the rest is imported by those.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from page import PREFIX


@cache
def _app() -> Any:
    from page.airflow_access import find_access
    from page.app import build_app
    from page.environment import open_source

    # While the page works, Airflow's own routes get the interpreter back five times as soon as by default.
    sys.setswitchinterval(min(sys.getswitchinterval(), 0.001))
    return build_app(open_source(os.environ, time.time), find_access())


async def serve(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request (ASGI)."""
    await _app()(scope, receive, send)


class TidewisePlugin(AirflowPlugin):  # type: ignore[misc,unused-ignore]
    """What Airflow's API server adds."""

    name = "tidewise_page"
    fastapi_apps = [{"app": serve, "url_prefix": PREFIX, "name": "Tidewise"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Tidewise",
            "href": f"{urlsplit(conf.get('api', 'base_url', fallback='')).path.rstrip('/')}{PREFIX}/",
            "destination": "nav",
            "url_route": "tidewise",
        }
    ]
