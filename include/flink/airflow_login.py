"""Logins from Airflow's connections."""

from __future__ import annotations

from airflow.sdk.bases.hook import BaseHook

from include.flink.credentials import Login, SecretError, headers_in


def read_login(connection_id: str) -> Login:
    """Return what a connection holds.

    Raises:
        SecretError: there is no such connection, or it cannot be used.
    """
    try:
        found = BaseHook.get_connection(connection_id)
    except Exception as error:
        # Whatever Airflow raises, its text may hold the connection's URI.
        raise SecretError(
            f"the Airflow connection {connection_id!r} cannot be read ({type(error).__name__}); make it, or write "
            "another connection_id"
        ) from None
    return Login(found.login or "", found.password or "", headers_in(found.extra, connection_id))
