"""The transport against a server that misbehaves, TLS, logins and a proxy; every fault has a name and a remedy."""

from __future__ import annotations

import threading
import time

import flink_server
import pytest
import trustme
from flink_server import FlinkServer, serving
from planted_secrets import PROXY_USER, USER
from proxies import forward_proxy, server_context

from include.flink.faults import (
    CertificateRefusedError,
    FlinkRefusedError,
    FlinkUnreachableError,
    RedirectedError,
    ReplyTooLargeError,
    ReplyTooSlowError,
    RequestStoppedError,
    SecretUnreadableError,
)
from include.flink.transport import Transport
from include.settings.connection import Connection


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def files(authority, tmp_path):
    """A folder with CA, client certificate and key."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client = authority.issue_cert("tidewise@example.com")
    (tmp_path / "client.pem").write_bytes(b"".join(blob.bytes() for blob in client.cert_chain_pems))
    client.private_key_pem.write_to_path(tmp_path / "client.key")
    return tmp_path


def transport_to(server, connection=None, **limits):
    limits = {"retries": 0, "backoff_factor_s": 0.0, **limits}
    return Transport(server.url, cluster="prod", connection=connection or Connection(), **limits)


def misbehaving(trouble, path="*"):
    server = FlinkServer()
    server.troubles[path] = trouble
    return server


# limits on replies


def test_a_huge_reply_is_not_read_to_its_end():
    with serving(misbehaving(flink_server.reply_500_mb)) as server:
        started = time.monotonic()
        with pytest.raises(ReplyTooLargeError, match=r"cluster prod .*/overview is larger than 4194304 bytes"):
            transport_to(server, largest_bytes=4 * 2**20, retries=5).get("/overview")
        assert time.monotonic() - started < 5
        assert len(server.requests) == 1  # asking again would bring as much again


@pytest.mark.parametrize("trouble", [flink_server.trickle_body, flink_server.trickle_head])
def test_a_reply_byte_by_byte_ends_at_the_limit_for_the_whole(trouble):
    with serving(misbehaving(trouble)) as server:
        started = time.monotonic()
        with pytest.raises(ReplyTooSlowError, match="longer than 1 s"):
            transport_to(server, total_timeout_s=1.0, retries=5).get("/overview")
        assert time.monotonic() - started < 2.5
        assert len(server.requests) == 1


def test_silence_is_the_same_fault_as_nobody_at_all():
    with (
        serving(misbehaving(flink_server.hang)) as server,
        pytest.raises(FlinkUnreachableError, match=r"cluster prod .*2 attempts: ReadTimeoutError.*check rest_url"),
    ):
        transport_to(server, read_timeout_s=0.3, retries=1).get("/overview")


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_redirect_is_a_fault_of_its_own_and_never_followed(method):
    with serving(misbehaving(flink_server.redirect)) as server:
        transport = transport_to(server)
        ask = (
            (lambda: transport.get("/overview"))
            if method == "GET"
            else (lambda: transport.send_json("PUT", "/x", json={}))
        )
        with pytest.raises(
            RedirectedError, match=r"a redirect to https://login\.example\.com/oauth, which is not"
        ) as caught:
            ask()
    assert "t0psecret" not in str(caught.value)


def test_a_page_instead_of_json_is_refused_by_name():
    with (
        serving(misbehaving(flink_server.reply_html)) as server,
        pytest.raises(FlinkRefusedError, match="not JSON: '<html"),
    ):
        transport_to(server).get_json("/overview")


def test_the_connection_is_used_again_after_a_reply_and_not_after_a_broken_one():
    with serving(FlinkServer()) as server:
        transport = transport_to(server)
        transport.get("/overview")
        server.troubles["*"] = flink_server.trickle_body
        transport._total_timeout_s = 0.5
        with pytest.raises(ReplyTooSlowError):
            transport.get("/overview")
        server.troubles.clear()
        assert transport.get_json("/overview")["slots-total"] == 8


def test_stopping_wakes_a_thread_that_waits_for_a_reply():
    with serving(misbehaving(flink_server.hang)) as server:
        transport = transport_to(server, read_timeout_s=30.0, retries=5)
        caught = []

        def ask():
            try:
                transport.get("/overview")
            except FlinkUnreachableError as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.requests:
            time.sleep(0.01)
        started = time.monotonic()
        transport.stop()
        thread.join(5)
        assert time.monotonic() - started < 1
        assert [type(one) for one in caught] == [RequestStoppedError]
        with pytest.raises(RequestStoppedError):
            transport.get("/overview")


# TLS


def test_tls_with_the_ca_of_the_settings(authority, files):
    with serving(FlinkServer(), server_context(authority)) as server:
        connection = Connection(ca_file=str(files / "ca.pem"))
        assert transport_to(server, connection).get_json("/overview")["slots-total"] == 8


def test_a_certificate_of_somebody_else_is_a_fault_of_its_own(authority, files):
    with serving(FlinkServer(), server_context(trustme.CA())) as server:
        for connection in (Connection(), Connection(ca_file=str(files / "ca.pem"))):
            with pytest.raises(
                CertificateRefusedError, match=r"cluster prod .*certificate.*name the certificates to trust"
            ):
                transport_to(server, connection, retries=5).get("/overview")
    assert server.requests == []


def test_a_certificate_for_another_host_is_refused(authority, files):
    with (
        serving(FlinkServer(), server_context(authority, host="elsewhere.example.com")) as server,
        pytest.raises(CertificateRefusedError, match=r"Hostname mismatch|not valid for 'localhost'"),
    ):
        transport_to(server, Connection(ca_file=str(files / "ca.pem"))).get("/overview")


def test_mutual_tls(authority, files):
    with serving(FlinkServer(), server_context(authority, wants_client=True)) as server:
        ca = str(files / "ca.pem")
        whole = Connection(
            ca_file=ca, client_cert_file=str(files / "client.pem"), client_key_file=str(files / "client.key")
        )
        assert transport_to(server, whole).get("/overview").ok
        with pytest.raises(FlinkUnreachableError):
            transport_to(server, Connection(ca_file=ca)).get("/overview")
    assert server.asked() == ["/overview"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"ca_file": "missing.pem"}, "ca_file .*missing.pem cannot be used"),
        ({"ca_file": "ca.pem", "client_cert_file": "ca.pem"}, "client_cert_file .* cannot be used"),
        ({"ca_file": "ca.pem", "client_cert_file": "client.pem", "client_key_file": "other.key"}, "belong together"),
    ],
)
def test_files_that_cannot_be_used_are_named(authority, files, values, told):
    authority.issue_cert("x@example.com").private_key_pem.write_to_path(files / "other.key")
    connection = Connection(**{key: str(files / name) for key, name in values.items()})
    with (
        serving(FlinkServer(), server_context(authority)) as server,
        pytest.raises(SecretUnreadableError, match=f"cluster prod .*{told}"),
    ):
        transport_to(server, connection).get("/overview")


# logins


def test_basic_bearer_and_headers_are_sent(tmp_path, monkeypatch):
    (tmp_path / "login").write_text("ada:päss\n", encoding="utf-8")
    monkeypatch.setenv("TW_TOKEN", "abc")
    monkeypatch.setenv("TW_KEY", "k1")
    with serving(FlinkServer()) as server:
        transport_to(server, Connection(basic=f"file:{tmp_path / 'login'}")).get("/overview")
        transport_to(server, Connection(bearer="env:TW_TOKEN", headers={"X-Api-Key": "env:TW_KEY"})).get("/overview")
        transport_to(server, Connection(bearer="env:TW_TOKEN")).send_json("PUT", "/overview", json={"a": 1})
    basic, bearer, put = (request.headers for request in server.requests)
    assert basic["Authorization"] == "Basic YWRhOnDDpHNz"
    assert (bearer["Authorization"], bearer["X-Api-Key"]) == ("Bearer abc", "k1")
    assert (put["Authorization"], put["Content-Type"]) == ("Bearer abc", "application/json")


def test_a_token_file_is_read_again_when_it_changes(tmp_path):
    token = tmp_path / "token"
    token.write_text("one")
    with serving(FlinkServer()) as server:
        transport = transport_to(server, Connection(bearer=f"file:{token}"))
        transport.get("/overview")
        (tmp_path / "new").write_text("two")
        (tmp_path / "new").replace(token)  # as Kubernetes swaps a projected token
        transport.get("/overview")
        token.unlink()
        with pytest.raises(SecretUnreadableError, match=r"cluster prod .*token cannot be read \(No such file"):
            transport.get("/overview")
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "holds nothing"), (b"a\nb", "one line"), (b"x" * 70_000, "larger"), (b"nocolon", "must hold user:password")],
)
def test_a_login_that_cannot_be_used_is_refused_without_showing_it(tmp_path, content, told):
    (tmp_path / "login").write_bytes(content)
    with serving(FlinkServer()) as server, pytest.raises(SecretUnreadableError, match=told) as caught:
        transport_to(server, Connection(basic=f"file:{tmp_path / 'login'}")).get("/overview")
    assert "nocolon" not in str(caught.value).replace("/login", "")
    assert server.requests == []


def test_a_login_that_is_refused_says_where_it_is_named(monkeypatch):
    monkeypatch.setenv("TW_TOKEN", "abc")
    server = FlinkServer()
    server.is_allowed = lambda headers: False
    with serving(server), pytest.raises(FlinkRefusedError, match=r"401: who are you\?; check the login") as caught:
        transport_to(server, Connection(bearer="env:TW_TOKEN")).get_json("/overview")
    assert "abc" not in str(caught.value)


def test_an_airflow_connection_authenticates(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_FLINK_PROD", '{"conn_type": "http", "login": "ada", "password": "pw", '
                       '"extra": {"headers": {"X-Api-Key": "k1"}}}')  # fmt: skip
    monkeypatch.setenv("AIRFLOW_CONN_FLINK_TOKEN", '{"conn_type": "http", "password": "tok"}')
    with serving(FlinkServer()) as server:
        transport_to(server, Connection(connection_id="flink_prod")).get("/overview")
        transport_to(server, Connection(connection_id="flink_token")).get("/overview")
        with pytest.raises(SecretUnreadableError, match="Airflow connection 'nosuch' cannot be read"):
            transport_to(server, Connection(connection_id="nosuch")).get("/overview")
    first, second = (request.headers for request in server.requests)
    assert (first["Authorization"], first["X-Api-Key"]) == ("Basic YWRhOnB3", "k1")
    assert second["Authorization"] == "Bearer tok"


# proxy


def test_a_proxy_of_the_settings_gets_its_login_and_the_cluster_does_not(authority, files):
    (files / "proxy").write_text(f"{PROXY_USER}:pw")
    with (
        forward_proxy("Basic cHJveHktdXNlcjpwdw==") as proxy,
        serving(FlinkServer(), server_context(authority)) as server,
    ):
        values = {"ca_file": str(files / "ca.pem"), "proxy": proxy.url}
        known = Connection(**values, proxy_basic=f"file:{files / 'proxy'}")
        assert transport_to(server, known).get("/overview").ok
        with pytest.raises(FlinkUnreachableError, match=r"1 attempts: proxy: tunnel refused with 407, see proxy_basic"):
            transport_to(server, Connection(**values)).get("/overview")
    assert proxy.tunnels == [f"localhost:{server.port}"]
    assert not any("roxy" in name for request in server.requests for name in request.headers)
    assert USER not in str(server.requests[0].headers)
