"""Proxies on loopback: one that ends TLS before a real cluster, and one that the settings name to get through to it."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import trustme
import urllib3
from flink_server import FlinkServer, Request, serving


class Gateway(FlinkServer):
    """Hands each request on to a cluster, and its reply back."""

    def __init__(self, upstream: str) -> None:
        super().__init__()
        self._upstream = upstream
        self._pool = urllib3.PoolManager(retries=False)

    def answer(self, request: Request) -> None:
        self.requests.append(request)
        if not self.is_allowed(request.headers):
            request.write_json({"errors": ["who are you?"]}, 401)
            return
        headers = {name: request.headers[name] for name in ("Content-Type",) if name in request.headers}
        url = f"{self._upstream}{request.handler.path}"
        reply = self._pool.request(request.method, url, body=request.body or None, headers=headers)
        request.write(reply.data, reply.status, Content_Type=reply.headers.get("Content-Type", ""))


def server_context(authority: trustme.CA, *, wants_client: bool = False, host: str = "localhost") -> ssl.SSLContext:
    """Return the TLS of a server whose certificate the authority has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


@contextmanager
def tls_gateway(
    upstream: str, context: ssl.SSLContext, is_allowed: Callable[[dict[str, str]], bool]
) -> Iterator[Gateway]:
    """Run a gateway that ends TLS and asks for a login."""
    gateway = Gateway(upstream)
    gateway.is_allowed = is_allowed
    with serving(gateway, context):
        yield gateway


@dataclass
class ForwardProxy:
    """A proxy that opens tunnels for those who may (``CONNECT``).

    Attributes:
        login: the Proxy-Authorization it wants.
        tunnels: host:port of those it has opened.
    """

    login: str
    url: str = ""
    tunnels: list[str] = field(default_factory=list)

    def serve_one(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            lines = head.decode().split("\r\n")
            if f"proxy-authorization: {self.login}".lower() not in [line.lower() for line in lines]:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            target = lines[0].split(" ")[1]
            self.tunnels.append(target)
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port)), 5) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    for ready in select.select([client, server], [], [], 30)[0]:
                        data = ready.recv(65_536)
                        if not data:
                            return
                        (server if ready is client else client).sendall(data)


@contextmanager
def forward_proxy(login: str) -> Iterator[ForwardProxy]:
    """Run a proxy."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = ForwardProxy(login, f"http://127.0.0.1:{listener.getsockname()[1]}")

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=proxy.serve_one, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
