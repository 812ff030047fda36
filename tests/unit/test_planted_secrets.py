"""A secret of each kind is used on real TLS, with failures, and is then found in nothing that was written."""

from __future__ import annotations

import gzip
import logging
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path

import flink_server
import pyarrow
import pyarrow.parquet
import pytest
from flink_server import FakeJob, FlinkServer, serving
from planted_secrets import HEADER, KEY_VARIABLE, connection_values, find_secrets, plant, process_list
from proxies import forward_proxy, server_context

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.actuators.flink_actuator import open_actuator
from include.flink.open_client import open_client
from include.metric_sources.collection import collect_for
from include.settings import SettingsError, check_settings, load_settings


@pytest.fixture
def planted(tmp_path, monkeypatch):
    made = plant(tmp_path / "secrets")
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def is_mine(planted, way):
    """Whether a request has everything that the settings name."""
    logins = {"basic": planted.basic_header(), "bearer": f"Bearer {planted.secrets['bearer']}"}
    wanted = {"Authorization": logins[way], HEADER: planted.secrets["header"]}
    return lambda headers: wanted.items() <= headers.items()


def clusters_of(stack, planted, proxy_url):
    """Run clusters behind mutual TLS, sound and in trouble, and return the settings that name them and the servers."""
    context = server_context(planted.authority, wants_client=True)
    servers, values = {}, {}
    troubles = {
        "redirect": flink_server.redirect,
        "html": flink_server.reply_html,
        "error": flink_server.reply_500,
        "closing": flink_server.close,
        "echo": lambda request: request.write_json({"errors": [f"no {request.headers}"]}, 403),
        "echo-200": lambda request: request.write_json({"jobs": [request.headers]}),
    }
    for name in ("sound", "proxied", "refused", "untrusted", *troubles):
        way = "basic" if name in {"proxied", "echo", "closing"} else "bearer"
        server = FlinkServer(FakeJob())
        server.is_allowed = (lambda headers: False) if name == "refused" else is_mine(planted, way)
        if name in troubles:
            server.troubles["*"] = troubles[name]
        servers[name] = stack.enter_context(serving(server, context))
        connection = connection_values(planted, way=way, proxy=proxy_url if name == "proxied" else None)
        if name == "untrusted":
            del connection["ca_file"]
        values[name] = {"rest_url": server.url, "connection": connection}
    return servers, values


@pytest.mark.covers("apply_review 12")
def test_no_secret_is_written_by_collecting_and_acting_with_failures(planted, tmp_path, caplog):
    texts: dict[str, str] = {}
    with ExitStack() as stack, caplog.at_level(logging.DEBUG):
        proxy = stack.enter_context(forward_proxy(planted.proxy_header()))
        servers, clusters = clusters_of(stack, planted, proxy.url)
        settings = check_settings({"paths": {"raw": str(tmp_path / "raw")}, "clusters": clusters})
        delivery = collect_for(settings, 0.0)
        texts["delivery"] = repr(delivery)
        for name in clusters:
            actuator = open_actuator(settings, name)
            with suppress(RequestUnknownError):
                texts[f"{name} observed"] = repr(actuator.observe(f"{name}/orders"))
            try:
                actuator.request(f"{name}/orders", "a" * 32, {"1" * 32: 2, "2" * 32: 2})
            except (RequestRefusedError, RequestUnknownError) as error:
                texts[f"{name} error"] = "".join(traceback.format_exception(error))
        texts["ps"] = process_list()
        client = open_client(settings, "sound")
        texts["objects"] = repr([vars(client), vars(client.transport), client.transport._credentials])
    # They were used, each of them:
    assert {path.name for path in (tmp_path / "raw").iterdir()} >= {"cluster=sound", "cluster=proxied"}
    assert servers["sound"].jobs[0].requested == servers["proxied"].jobs[0].requested == {"1" * 32: 2, "2" * 32: 2}
    assert proxy.tunnels
    assert set(delivery.refused) == {"redirect", "closing", "untrusted"}  # the others have replied, each in its way
    assert "[secret]" in texts["echo error"]
    texts |= {
        "log": caplog.text,
        "settings": repr(settings),
        "settings as JSON": settings.model_dump_json(),
    }
    assert find_secrets(planted, [tmp_path], texts) == []


@pytest.mark.covers("apply_review 12")
def test_a_secret_in_the_settings_is_refused_and_not_shown(planted, tmp_path, monkeypatch):
    secrets, texts = planted.secrets, {}
    wrong = {
        "bearer": secrets["bearer"],
        "basic": f"user:{secrets['basic']}",
        "headers": {HEADER: secrets["header"]},
        "password": secrets["basic"],
        "proxy": f"http://user:{secrets['proxy']}@proxy:3128",
        "client_key_file": ["-----BEGIN", secrets["private key"]],
        "client_key_password": secrets["basic"],
        "connection_id": f"{secrets['basic']} x",
    }
    for key, value in wrong.items():
        with pytest.raises(SettingsError) as caught:
            check_settings({"clusters": {"a": {"connection": {key: value}}}})
        assert "clusters.a.connection" in str(caught.value), key
        texts[key] = "".join(traceback.format_exception(caught.value))
    for url in (
        f"http://u:{secrets['basic']}@host:1",
        f"http://u:{secrets['basic']}/x@host",
        f"http://[u:{secrets['basic']}@h",
    ):
        with pytest.raises(SettingsError) as caught:
            check_settings({"clusters": {"a": {"rest_url": url}}})
        texts[f"rest_url {len(texts)}"] = "".join(traceback.format_exception(caught.value))
    monkeypatch.chdir(tmp_path)
    for variable, value in (("BEARER", secrets["bearer"]), ("HEADERS", f"{{{secrets['header']}")):
        monkeypatch.setenv(f"TIDEWISE__CLUSTERS__a__CONNECTION__{variable}", value)
        with pytest.raises(SettingsError) as caught:
            load_settings()
        texts[f"variable {variable}"] = "".join(traceback.format_exception(caught.value))
        monkeypatch.delenv(f"TIDEWISE__CLUSTERS__a__CONNECTION__{variable}")
    assert all("file:/etc/flink/login" in texts[key] for key in ("bearer", "basic", "headers", "client_key_password"))
    assert find_secrets(planted, [], texts) == []


def test_credentials_in_a_url_are_refused_with_what_to_do_instead():
    with pytest.raises(SettingsError, match=r"must not hold credentials.*\[clusters\.<name>\.connection\] basic = "):
        check_settings({"clusters": {"a": {"rest_url": "http://ada:pw@jobmanager:8081"}}})


def test_the_search_finds_every_secret_in_every_place(planted, tmp_path):
    """Without this, a search that finds nothing would prove nothing."""
    secrets, places = planted.secrets, tmp_path / "places"
    places.mkdir()
    (places / "plain.log").write_text(f"password is {secrets['basic']}!")
    members = [gzip.compress(text.encode()) for text in ("first\n", f'{{"body": "{secrets["bearer"]}"}}')]
    (places / "raw.jsonl.gz").write_bytes(b"".join(members))
    table = pyarrow.table({"detail": [f"x {secrets['header']}"]})
    pyarrow.parquet.write_table(table, places / "part.parquet", compression="zstd")
    Path(places / "cut.gz").write_bytes(gzip.compress(secrets["private key"].encode())[:-6])
    texts = {"header": f"Proxy-Authorization: {planted.proxy_header()}", "log": f"{planted.basic_header()}"}
    result = find_secrets(planted, [tmp_path], texts)
    assert {line.split(" in ")[0] for line in result} == set(secrets)
    assert not [line for line in result if "/secrets/" in line]
    assert find_secrets(planted, [], {"variable": KEY_VARIABLE, "file": str(planted.folder / "basic")}) == []
