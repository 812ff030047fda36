"""The webhook of an Airflow connection."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from include.notifications.webhook import WITHIN_S, Webhook

log = logging.getLogger(__name__)


class WebConnection(Protocol):
    """What is used of Airflow's connection."""

    host: str | None
    port: int | None
    schema: str | None
    password: str | None

    @property
    def extra_dejson(self) -> Mapping[str, Any]:
        """Its extra."""


def find_webhook(connection_id: str) -> Webhook | None:
    """Return the webhook of a connection; None where there is no such connection, or it names no host."""
    from airflow.sdk.bases.hook import BaseHook

    from include.orchestration.airflow_names import AirflowNotFoundException

    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        return None
    except Exception as error:  # whatever Airflow raises: its text may hold the connection's URI
        log.warning("tidewise: the connection %s cannot be read (%s): no message", connection_id, type(error).__name__)
        return None
    url = form_url(connection)
    if url is None:
        log.warning("tidewise: the connection %s names no host: no message is sent", connection_id)
        return None
    headers = connection.extra_dejson.get("headers")
    given = {str(key): str(value) for key, value in headers.items()} if isinstance(headers, dict) else {}
    return Webhook(url, given, WITHIN_S)


def form_url(connection: WebConnection) -> str | None:
    """Return the address of a connection.

    The host may be the whole address. Where it is a name, the schema is http or https, or, as Airflow reads it from a
    URI, the path. A password is the end of the path, as in Airflow's connections to Slack.
    """
    host, schema = (connection.host or "").strip(), (connection.schema or "").strip("/")
    if not host:
        return None
    is_protocol = schema in {"http", "https"}
    url = host if "://" in host else f"{schema if is_protocol else _protocol_of(connection)}://{host}"
    if connection.port and "://" not in host:
        url = f"{url}:{connection.port}"
    parts = [url.rstrip("/"), "" if is_protocol else schema, (connection.password or "").strip("/")]
    return "/".join(part for part in parts if part)


def _protocol_of(connection: WebConnection) -> str:
    return "http" if getattr(connection, "conn_type", "") == "http" else "https"
