"""Which sources a cluster's settings give, and that one that is gone stops no other."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import ValidationError

from include.metric_sources.collection import CollectionError, collect_for
from include.metric_sources.live_sources import observed_clusters, open_sources, reads_prometheus
from include.settings import Cluster, Paths, Settings
from include.settings.sources import Kafka, Prometheus

DEAD = "http://127.0.0.1:1"
BROKERS = {"main": Kafka(bootstrap_servers="127.0.0.1:1", topics={"orders/Source: orders": ("t",)}, timeout_s=1)}


@pytest.fixture
def empty_prometheus():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            slots = {"metric": {"__name__": "flink_jobmanager_taskSlotsTotal"}, "values": []}
            if "taskSlotsTotal" in self.path:
                end = float(self.path.split("end=")[1].split("&")[0])
                slots["values"] = [[end, "8"]]
            text = {"status": "success", "data": {"resultType": "matrix", "result": [slots] if slots["values"] else []}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(text).encode())

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()


def settings_of(tmp_path, **clusters: Cluster) -> Settings:
    return Settings(paths=Paths(raw=str(tmp_path)), clusters=clusters)


@pytest.mark.parametrize(
    ("rest", "url", "live", "expected"),
    [
        (None, DEAD, None, True),
        (DEAD, DEAD, None, False),
        (DEAD, DEAD, True, True),
        (None, DEAD, False, False),
        (DEAD, None, True, False),
    ],
)
def test_prometheus_is_read_without_rest_or_when_asked_for(rest, url, live, expected):
    cluster = Cluster(rest_url=rest, prometheus=Prometheus(url=url, live=live))
    assert reads_prometheus(cluster) is expected


def test_every_source_of_a_cluster_is_opened(tmp_path):
    settings = settings_of(
        tmp_path,
        files=Cluster(),
        both=Cluster(rest_url=DEAD, kafka=BROKERS),
        prom=Cluster(prometheus=Prometheus(url=DEAD)),
    )
    assert observed_clusters(settings) == ["both", "prom"]
    opened = {
        name: [type(one).__name__ for one in open_sources(settings, name, lambda: 0.0, lambda _: None)]
        for name in ("both", "prom")
    }
    assert opened == {"both": ["LiveRest", "KafkaSource"], "prom": ["LivePrometheusSource"]}


def test_brokers_that_are_gone_do_not_stop_prometheus(tmp_path, empty_prometheus):
    settings = settings_of(tmp_path, c=Cluster(prometheus=Prometheus(url=empty_prometheus), kafka=BROKERS))
    delivery = collect_for(settings, 0.0)
    assert delivery.records == 1  # the slots
    (path,) = tmp_path.rglob("*.gz")
    assert path.name.startswith("prometheus-")
    assert "[clusters.c.kafka.main]" in delivery.refused["c"]


def test_a_prometheus_that_is_gone_is_named(tmp_path):
    settings = settings_of(tmp_path, c=Cluster(prometheus=Prometheus(url=DEAD)))
    with pytest.raises(CollectionError, match=r"\[clusters\.c\.prometheus\] http://127"):
        collect_for(settings, 0.0)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"url": "prometheus:9090"}, "http://"),
        ({"url": DEAD, "prefix": "prometheus"}, "is no path"),
        ({"url": DEAD, "matchers": ["namespace=prod"]}, "is no label matcher"),
        ({"url": DEAD, "matchers": ['__name__="x"']}, "is no label matcher"),
        ({"url": DEAD, "step_s": 600, "max_sample_age_s": 10}, "samples would be missed"),
        ({"url": DEAD, "connection": {"bearer": "s3cret"}}, "never the secret itself"),
    ],
)
def test_a_prometheus_that_cannot_be_is_refused(section, why):
    with pytest.raises(ValidationError, match=why):
        Prometheus(**section)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"bootstrap_servers": "broker"}, "is no host:port"),
        ({"bootstrap_servers": "b:9092", "topics": {"orders": ("t",)}}, "must be"),
        ({"bootstrap_servers": "b:9092", "topics": {"orders/s": ("a topic",)}}, "is no name of a topic"),
        ({"bootstrap_servers": "b:9092", "security_protocol": "SASL_SSL"}, "goes with"),
        ({"bootstrap_servers": "b:9092", "sasl_login": "file:/x", "sasl_mechanism": "PLAIN"}, "goes without"),
    ],
)
def test_kafka_that_cannot_be_is_refused(section, why):
    with pytest.raises(ValidationError, match=why):
        Kafka(**section)
