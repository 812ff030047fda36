"""How a cluster's REST API is reached: TLS, authentication, proxy.

Settings are logged and stored, so they hold no secret: they name the file, the environment variable or the Airflow
connection that does.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from include.settings.secret_values import check_uri
from include.settings.section import Section, Text

_WRITE_SECRET = 'write "file:/etc/flink/login" or "env:FLINK_LOGIN", say'
_WRITE_URL = "write http://jobmanager:8081, say"
_WRITE_LOGIN = (
    "write the address alone, and in the section "
    '[clusters.<name>.connection] basic = "file:/etc/flink/login" (a file with user:password), say'
)
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
_OWN_HEADERS = frozenset(
    {"authorization", "connection", "content-length", "host", "proxy-authorization", "transfer-encoding"}
)


def check_http_url(text: str, *, write: str = _WRITE_URL, instead: str = _WRITE_LOGIN) -> str:
    """Refuse what is no address of an HTTP server, or holds credentials.

    Raises:
        ValueError: why, and what to write.
    """
    try:
        result = urlsplit(text)
        port = result.port
    except ValueError as error:
        reported = str(error)  # which may quote a part of it
        reason = f"is no URL ({reported})" if reported.startswith("Port out of range") else "is no URL"
        raise ValueError(f"{reason}; {write}") from None
    if result.scheme not in {"http", "https"}:
        raise ValueError(f"must begin with http:// or https://; {write}")
    check_uri(text, instead)
    if not result.hostname or not re.fullmatch(r"[A-Za-z0-9._:-]+", result.hostname) or port == 0:
        raise ValueError(f"names no host and port; {write}")
    if result.query or result.fragment:
        raise ValueError(f"must end with the path; {write}")
    return text


_proxy = partial(
    check_http_url, write="write http://proxy:3128, say", instead='write proxy_basic = "file:..." beside it'
)


def _secret(text: str) -> str:
    kind, colon, rest = text.partition(":")
    if not colon or kind not in {"file", "env"}:
        raise ValueError(f"must name where the secret is, never the secret itself; {_WRITE_SECRET}")
    if kind == "env" and not re.fullmatch(r"[A-Za-z_]\w{0,199}", rest):
        raise ValueError('names no environment variable; write "env:FLINK_LOGIN", say')
    if kind == "file" and not rest.strip():
        raise ValueError('names no file; write "file:/etc/flink/login", say')
    return text


def _header_name(text: str) -> str:
    if not re.fullmatch(_HEADER_NAME, text):
        raise ValueError("is no name of an HTTP header; write X-Api-Key, say")
    if text.lower() in _OWN_HEADERS:
        raise ValueError("is a header that Tidewise sets itself; write basic, bearer or proxy_basic instead")
    return text


SecretReference = Annotated[Text, AfterValidator(_secret)]
"""``file:PATH`` or ``env:NAME``: where a secret is read, each time anew when the file has changed."""


class Connection(Section):
    """TLS, authentication and proxy of a cluster."""

    ca_file: Text | None = Field(None, description="PEM file of trusted certificates; unset: the system's")
    client_cert_file: Text | None = Field(None, description="PEM file of the client certificate")
    client_key_file: Text | None = Field(None, description="PEM file of its key; unset: in client_cert_file")
    client_key_password: SecretReference | None = Field(
        None, description='password of the key: `"file:PATH"` or `"env:NAME"`'
    )
    basic: SecretReference | None = Field(
        None, description='user:password for basic authentication: `"file:PATH"` or `"env:NAME"`'
    )
    bearer: SecretReference | None = Field(
        None, description='bearer token: `"file:PATH"` (read again when it changes) or `"env:NAME"`'
    )
    headers: dict[Annotated[str, AfterValidator(_header_name)], SecretReference] = Field(
        default_factory=dict, description='further headers: name -> `"file:PATH"` or `"env:NAME"` of its value'
    )
    connection_id: Annotated[str, Field(pattern=r"^[\w#!()\-.:/\\]{1,200}$")] | None = Field(
        None,
        description="Airflow connection with login and password (a password alone: a bearer token); its extra "
        'may hold {"headers": {...}}',
    )
    proxy: Annotated[Text, AfterValidator(_proxy)] | None = Field(
        None, description="HTTP proxy to the cluster, in the place of the environment's"
    )
    proxy_basic: SecretReference | None = Field(
        None, description='user:password for the proxy: `"file:PATH"` or `"env:NAME"`'
    )

    @model_validator(mode="after")
    def _keys_fit(self) -> Connection:
        ways = [key for key in ("basic", "bearer", "connection_id") if getattr(self, key) is not None]
        if len(ways) > 1:
            raise ValueError(f"{' and '.join(ways)} each authenticate; write one of them")
        if self.client_cert_file is None and (self.client_key_file or self.client_key_password):
            raise ValueError("client_key_file without a certificate; write client_cert_file as well")
        if self.proxy_basic is not None and self.proxy is None:
            raise ValueError("proxy_basic without a proxy; write proxy as well")
        return self
