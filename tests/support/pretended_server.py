"""A small HTTP server on loopback that answers as it is told, over TLS if it is given a certificate."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JOB = "f" * 32
SOURCE, MAP = "a" * 32, "b" * 32
Answers = Mapping[str, tuple[int, Any]]

METRICS = ("numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond", "accumulateBusyTimeMs")


def flink_answers(**changed: Any) -> dict[str, tuple[int, Any]]:
    """Return the replies of a healthy Flink 2.1 with one job, by path; ``changed`` names what differs.

    Args:
        changed: ``version``, ``configuration``, ``checkpoints``, ``requirements``, ``metrics``, ``ahead_s``.
    """
    configuration = {"jobmanager.scheduler": "adaptive", "web.timeout": "20 s"} | changed.get("configuration", {})
    vertices = [
        {"id": SOURCE, "name": "Source: orders", "parallelism": 2, "maxParallelism": 128, "slotSharingGroupId": "g"},
        {"id": MAP, "name": "enrich", "parallelism": 2, "maxParallelism": 128, "slotSharingGroupId": "g"},
    ]
    nodes = [{"id": SOURCE}, {"id": MAP, "inputs": [{"id": SOURCE}]}]
    now_ms = round(1000 * (time.time() + changed.get("ahead_s", 0.0)))
    job = {
        "jid": JOB,
        "name": "orders",
        "state": "RUNNING",
        "now": now_ms,
        "vertices": vertices,
        "plan": {"nodes": nodes},
    }
    names = [{"id": name} for name in changed.get("metrics", METRICS)]
    backlog = [{"id": "Source__orders.pendingRecords"}]
    return {
        "/config": (200, {"flink-version": changed.get("version", "2.1.3")}),
        "/overview": (200, {"slots-total": 64, "slots-available": 62}),
        "/jobmanager/config": (200, [{"key": key, "value": value} for key, value in configuration.items()]),
        "/jobs/metrics": (200, []),
        "/jobs/overview": (200, {"jobs": [{"jid": JOB, "name": "orders", "state": "RUNNING"}]}),
        f"/jobs/{JOB}": (200, job),
        f"/jobs/{JOB}/config": (200, {"execution-config": {"user-config": changed.get("job_configuration", {})}}),
        f"/jobs/{JOB}/checkpoints/config": changed.get("checkpoints", (200, {"interval": 60_000})),
        f"/jobs/{JOB}/resource-requirements": changed.get("requirements", (200, {})),
        f"/jobs/{JOB}/vertices/{SOURCE}/subtasks/metrics": (200, names + backlog),
        f"/jobs/{JOB}/vertices/{MAP}/subtasks/metrics": (200, names),
    }


@contextmanager
def serve(
    answer: Callable[[str, str], tuple[int, Any]],
    tls: ssl.SSLContext | None = None,
    wanted: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Run a server; yields its address.

    Args:
        answer: from method and path with query to status and what is sent as JSON, or bytes as they are.
        tls: of the server.
        wanted: headers without which a request is refused with 401.
    """

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_known = all(self.headers.get(name) == value for name, value in (wanted or {}).items())
            status, payload = answer(self.command, self.path) if is_known else (401, {"errors": ["who is it?"]})
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hash(body)}"')  # a client of S3 wants both
            self.send_header("Last-Modified", self.date_time_string())
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the names that it looks for

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: Any) -> None:
            pass  # a client that refuses a certificate hangs up

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def answer_from(answers: Answers) -> Callable[[str, str], tuple[int, Any]]:
    """Return a function that answers by path, without the query."""
    return lambda _, path: answers.get(path.partition("?")[0], (404, {"errors": ["Not found."]}))


def make_certificate(folder: Path, *, expired: bool) -> tuple[Path, ssl.SSLContext]:
    """Write a CA and a certificate of 127.0.0.1 signed by it; returns the CA's file and the server's context."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.now(UTC)
    begin = now - timedelta(days=30)
    end = now - timedelta(days=1) if expired else now + timedelta(days=1)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def build(subject: str, key: Any, until: datetime) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("test CA"))
        numbered = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return numbered.not_valid_before(begin).not_valid_after(until)

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    # Python 3.13 takes no CA without these, and no certificate that does not name its CA's key.
    may = dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"), False)
    may |= dict.fromkeys(("key_agreement", "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(key_cert_sign=True, crl_sign=True, **may)
    own = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = build("test CA", ca_key, now + timedelta(days=1)).add_extension(constraints, critical=True)
    ca = ca.add_extension(usage, critical=True).add_extension(own, critical=False)
    ca_file, file = folder / "ca.pem", folder / "server.pem"
    ca_file.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    of_ca = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    named = build("jobmanager", key, end).add_extension(host, critical=False).add_extension(of_ca, critical=False)
    signed = named.sign(ca_key, hashes.SHA256())
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, *plain)
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return ca_file, context
