"""The section that says how a cluster is reached: what it takes and what it refuses, in one line without the value."""

from __future__ import annotations

import pytest

from include.settings import SettingsError, check_settings, load_settings


def refusal(connection, **cluster):
    with pytest.raises(SettingsError) as caught:
        check_settings({"clusters": {"a": {"rest_url": "https://flink:8081", "connection": connection, **cluster}}})
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("connection", "told"),
    [
        ({"basic": "ada"}, "must name where the secret is"),
        ({"bearer": "env:"}, "names no environment variable"),
        ({"bearer": "env:A B"}, "names no environment variable"),
        ({"bearer": "file:"}, "names no file"),
        ({"basic": "env:A", "bearer": "env:B"}, "basic and bearer each authenticate; write one of them"),
        ({"bearer": "env:A", "connection_id": "x"}, "bearer and connection_id each authenticate"),
        ({"client_key_file": "k.pem"}, "write client_cert_file as well"),
        ({"client_key_password": "env:A"}, "write client_cert_file as well"),
        ({"proxy_basic": "env:A"}, "write proxy as well"),
        ({"proxy": "socks5://x:1"}, "must begin with http:// or https://; write http://proxy:3128"),
        ({"proxy": "http://u:p@x:1"}, "write proxy_basic"),
        ({"headers": {"Authorization": "env:A"}}, "Tidewise sets itself"),
        ({"headers": {"a b": "env:A"}}, "no name of an HTTP header"),
        ({"headers": "x"}, "must be"),
        ({"passwort": "x"}, "there is no such key"),
        ({"ca_file": ""}, "must not be empty"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_write(connection, told):
    line = refusal(connection)
    assert told in line
    assert "clusters.a.connection" in line or "each authenticate" in line or "as well" in line


def test_certificates_need_tls():
    assert 'write rest_url = "https://' in refusal({"ca_file": "ca.pem"}, rest_url="http://flink:8081")


def test_variables_set_single_keys(monkeypatch, tmp_path):
    (tmp_path / "t.toml").write_text('[clusters.prod]\nrest_url = "https://flink"\n')
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "t.toml"))
    monkeypatch.setenv("TIDEWISE__CLUSTERS__prod__CONNECTION__BEARER", "env:FLINK_TOKEN")
    monkeypatch.setenv("TIDEWISE__CLUSTERS__prod__CONNECTION__HEADERS", '{"X-Api-Key": "env:FLINK_KEY"}')
    monkeypatch.setenv("TIDEWISE__CLUSTERS__prod__ELASTIC", "true")
    cluster = load_settings().cluster("prod")
    assert (cluster.connection.bearer, cluster.connection.headers) == (
        "env:FLINK_TOKEN",
        {"X-Api-Key": "env:FLINK_KEY"},
    )
    assert cluster.elastic is True
