"""Probes of a server with the TLS, login and proxy that the settings name."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from cli.doctor.probe import FLINK, Probe, Server
from include.flink.credentials import Credentials, SecretError
from include.settings.connection import Connection


def open_probe(
    url: str, connection: Connection, headers: Mapping[str, str] | None = None, server: Server = FLINK
) -> Probe:
    """Return a probe of a server; ``server`` says what it is, for remedies.

    Raises:
        SecretError: a secret or a certificate's file cannot be read.
    """
    credentials = Credentials(connection)
    options: dict[str, Any] = {"headers": {**(headers or {}), **credentials.headers()}}
    if url.startswith("https:"):
        options["ssl_context"] = open_tls(connection, credentials)
    proxy = None if connection.proxy is None else (connection.proxy, credentials.proxy_headers())
    return Probe(url, options, proxy, server)


def open_tls(connection: Connection, credentials: Credentials) -> ssl.SSLContext:
    """Return what is trusted and shown.

    Raises:
        SecretError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=connection.ca_file)
        if connection.client_cert_file is not None:
            password = credentials.key_password() or ""
            context.load_cert_chain(connection.client_cert_file, connection.client_key_file, password)
    except OSError as error:
        files = connection.client_cert_file or connection.ca_file
        raise SecretError(f"{files} cannot be used ({error.strerror or type(error).__name__})") from None
    return context
