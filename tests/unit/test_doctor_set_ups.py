"""Broken set-ups: the doctor names each fault and says what to do; a healthy one has no error."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pretended_server import JOB, answer_from, flink_answers, make_certificate, serve

from cli.doctor import cluster as doctor
from cli.doctor.checkup import check_server
from cli.doctor.findings import Finding, Level
from cli.doctor.probe import PROMETHEUS, Probe, ProbeError
from cli.doctor.series import SeriesNames, check_retention, check_series
from cli.doctor.storage import check_lake, check_mlflow, check_reach, judge_refusal
from include.settings import Cluster, Mlflow, Paths, Settings

NOBODY = 65_534
NEEDED, USEFUL = SeriesNames().needed, SeriesNames().useful


def examine(url: str, **settings: Any) -> list[Finding]:
    cluster = Cluster(rest_url=url, **settings)
    return doctor.check_cluster("prod", cluster, Settings(), sleep=lambda _: None)


def examine_flink(**changed: Any) -> list[Finding]:
    with serve(answer_from(flink_answers(**changed))) as url:
        return examine(url)


def errors(findings: list[Finding]) -> dict[str, Finding]:
    return {one.check: one for one in findings if one.level is Level.ERROR}


def the_error(findings: list[Finding], check: str) -> Finding:
    """Return the one error there is."""
    result = errors(findings)
    assert result.keys() == {check}, findings
    assert result[check].remedy
    return result[check]


def test_a_healthy_cluster_has_no_fault():
    findings = examine_flink()
    assert {one.level for one in findings} == {Level.OK}, findings
    assert {"address", "version", "scheduler", "clock", "latency", "checkpoints of orders"} <= {
        x.check for x in findings
    }


def test_wrong_port():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
    result = the_error(examine(f"http://127.0.0.1:{port}"), "address")
    assert "nothing listens" in result.text
    assert str(port) in result.text
    assert "port" in result.remedy


def test_another_program_on_the_port():
    with serve(lambda *_: (200, b"<html>hello</html>")) as url:
        assert "not as Flink does" in the_error(examine(url), "address").text


def test_a_name_that_is_not_known():
    assert "is not known" in the_error(examine("http://jobmanager.invalid:8081"), "address").text


def test_expired_certificate(tmp_path):
    ca_file, context = make_certificate(tmp_path, expired=True)
    with serve(answer_from(flink_answers()), context) as url:
        result = the_error(examine(url, connection={"ca_file": str(ca_file)}), "TLS")
    assert "expired" in result.text
    assert "renew" in result.remedy


def test_a_certificate_that_is_valid(tmp_path):
    ca_file, context = make_certificate(tmp_path, expired=False)
    with serve(answer_from(flink_answers()), context) as url:
        assert errors(examine(url, connection={"ca_file": str(ca_file)})) == {}


def test_a_secret_that_cannot_be_read():
    result = the_error(examine("http://127.0.0.1:9", connection={"bearer": "env:NO_SUCH_TOKEN"}), "secret")
    assert "NO_SUCH_TOKEN" in result.text


def test_a_login_is_shown_to_the_server(monkeypatch):
    monkeypatch.setenv("FLINK_TOKEN", "planted-token")
    answers = flink_answers()
    with serve(answer_from(answers), wanted={"Authorization": "Bearer planted-token"}) as url:
        assert errors(examine(url, connection={"bearer": "env:FLINK_TOKEN"})) == {}
        refused = the_error(examine(url), "rights")
    assert "planted" not in str(refused)


def test_a_certificate_of_an_unknown_ca(tmp_path):
    _, context = make_certificate(tmp_path, expired=False)
    with serve(answer_from(flink_answers()), context) as url:
        result = the_error(examine(url), "TLS")
    assert "not trusted" in result.text
    assert "ca_file" in result.remedy


def test_tls_asked_of_a_plain_server():
    with serve(answer_from(flink_answers())) as url:
        assert "http://" in the_error(examine(url.replace("http", "https")), "TLS").remedy


@pytest.mark.parametrize(
    "checkpoints", [(404, {"errors": ["Checkpointing is not enabled"]}), (200, {"interval": 2**63 - 1})]
)
def test_no_checkpoints(checkpoints):
    result = the_error(examine_flink(checkpoints=checkpoints), "checkpoints of orders")
    assert "execution.checkpointing.interval" in result.remedy


def test_checkpoints_that_are_not_told_are_not_off():
    result = the_error(examine_flink(checkpoints=(403, {"errors": ["no"]})), "checkpoints of orders")
    assert "does not tell" in result.text


def test_default_scheduler():
    result = the_error(
        examine_flink(configuration={"jobmanager.scheduler": "default"}, requirements=(404, {})), "scheduler"
    )
    assert "jobmanager.scheduler: adaptive" in result.remedy


def test_reactive_mode():
    result = the_error(examine_flink(configuration={"scheduler-mode": "REACTIVE"}), "scheduler")
    assert "reactive" in result.text
    assert "scheduler-mode" in result.remedy


def test_old_flink():
    result = the_error(examine_flink(version="1.17.2"), "version")
    assert "1.17.2" in result.text
    assert "1.18" in result.remedy


@pytest.mark.parametrize("where", ["configuration", "job_configuration"])
def test_autoscaler_on(where):
    result = the_error(examine_flink(**{where: {"job.autoscaler.enabled": "true"}}), "autoscaler")
    assert "job.autoscaler.enabled" in result.remedy


@pytest.mark.covers("flink_waits 6")
@pytest.mark.parametrize("path", ["/jobmanager/config", f"/jobs/{JOB}/config"])
@pytest.mark.parametrize("status", [403, 503])
def test_a_configuration_that_is_refused_is_no_proof_that_there_is_no_autoscaler(path, status):
    with serve(answer_from(flink_answers() | {path: (status, {"errors": ["no"]})})) as url:
        result = errors(examine(url))
    assert "nobody knows" in result["autoscaler"].text


def test_an_autoscaler_that_only_watches_is_no_fault():
    watching = {"job.autoscaler.enabled": "true", "job.autoscaler.scaling.enabled": "false"}
    assert errors(examine_flink(configuration=watching)) == {}


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_clock_off_by_an_hour(ahead_s):
    result = the_error(examine_flink(ahead_s=ahead_s), "clock")
    assert "3,600 s" in result.text
    assert ("ahead of" if ahead_s > 0 else "behind") in result.text
    assert "NTP" in result.remedy


@pytest.mark.parametrize(("ahead_s", "level"), [(25.0, Level.OK), (-36.0, Level.WARNING), (200.0, Level.WARNING)])
def test_a_clock_off_by_a_tenth_of_a_window_is_noted(ahead_s, level):
    (clock,) = [one for one in examine_flink(ahead_s=ahead_s) if one.check == "clock"]
    assert clock.level is level


@pytest.mark.parametrize(("status", "remedy"), [(401, "bearer"), (403, "resource-requirements"), (407, "proxy_basic")])
def test_no_rights(status, remedy):
    with serve(lambda *_: (status, {"errors": ["no"]})) as url:
        assert remedy in the_error(examine(url), "rights").remedy


def test_missing_metrics():
    result = the_error(examine_flink(metrics=("numRecordsIn",)), "metrics of orders")
    assert "numRecordsOut, busyTimeMsPerSecond" in result.text


def test_a_slow_cluster():
    answers = flink_answers()

    def slowly(_: str, path: str) -> tuple[int, Any]:
        time.sleep(0.05)
        return answers.get(path.partition("?")[0], (404, {}))

    with serve(slowly) as url:
        findings = examine(url, poll_every_s=0.2)
    assert "poll_every_s" in the_error(findings, "latency").remedy


def prometheus(missing: Mapping[str, str]) -> Any:
    """Answer queries with two jobs; ``missing``: series -> the job that lacks it."""

    def answer(_: str, path: str) -> tuple[int, Any]:
        from urllib.parse import parse_qs, urlsplit

        if path.endswith("/runtimeinfo"):
            return 200, {"status": "success", "data": {"storageRetention": "90d"}}
        expression = parse_qs(urlsplit(path).query)["query"][0]
        series = expression.rpartition("(")[2].rstrip(")").partition("{")[0]
        if "task_id" in expression:
            labels = {"job_name": "orders", "task_id": "t", "subtask_index": "0"}
            return 200, {"status": "success", "data": {"result": [{"metric": labels, "value": [0, "1"]}]}}
        jobs = [job for job in ("orders", "clicks") if missing.get(series) != job]
        result = [{"metric": {"job_name": job}, "value": [0, "4"]} for job in jobs]
        return 200, {"status": "success", "data": {"result": result}}

    return answer


def test_missing_series():
    with serve(prometheus({NEEDED[2]: "clicks"})) as url:
        result = the_error(check_series(Probe(url)), "series of clicks")
    assert NEEDED[2] in result.text
    with serve(prometheus({})) as url:
        assert {one.level for one in check_series(Probe(url))} == {Level.OK}
    with serve(prometheus({USEFUL[0]: "orders"})) as url:
        assert [one.check for one in check_series(Probe(url)) if one.level is Level.WARNING] == ["series of orders"]


def test_the_server_of_a_cluster_is_looked_at_under_its_names():
    renamed = {"names": {"prefix": "acme_flink_"}, "matchers": ('namespace="prod"',), "prefix": "/prometheus"}
    observed = []

    def answer(method: str, path: str) -> tuple[int, Any]:
        observed.append(path)
        return prometheus({"acme_flink_jobmanager_job_numRestarts": "orders"})(method, path)

    with serve(answer) as url:
        cluster = Cluster.model_validate({"prometheus": {"url": url, **renamed}})
        result = the_error(check_server("prod", cluster), "series of orders")
    assert "acme_flink_jobmanager_job_numRestarts" in result.text
    assert "JobManager" in result.remedy
    assert all(path.startswith("/prometheus/api/v1/") for path in observed)
    assert any("namespace%3D%22prod%22" in path for path in observed)


def test_a_short_retention_is_told():
    with serve(lambda *_: (200, {"status": "success", "data": {"storageRetention": "15d"}})) as url:
        assert "21d" in check_retention(Probe(url)).remedy
    with serve(lambda *_: (404, {})) as url:
        assert check_retention(Probe(url)).level is Level.OK


@contextmanager
def as_plain_user() -> Iterator[None]:
    """Be nobody where the tests are run by root, whom no right of a file stops."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_lake_that_may_only_be_read():
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are their user's alone
        Path(folder).chmod(0o755)
        lake = Path(folder) / "lake"
        lake.mkdir(mode=0o555)
        with as_plain_user():
            result = the_error(check_lake(Settings(paths=Paths(lake=str(lake)))), "write")
    assert str(lake) in result.text
    assert "paths.lake" in result.remedy


def test_a_bucket_that_may_only_be_read(monkeypatch):
    for name, value in {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "planted", "AWS_REGION": "eu"}.items():
        monkeypatch.setenv(name, value)
    denied = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    with serve(lambda method, _: (403, denied) if method == "PUT" else (200, b"")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        findings = check_lake(Settings(paths=Paths(lake="s3a://bucket/tidewise")))
    result = the_error(findings, "write")
    assert "PermissionDenied" in result.text
    assert "PutObject" in result.remedy
    assert "planted" not in str(result)


def test_a_store_without_conditional_writes(monkeypatch):
    retained: dict[str, bytes] = {}
    for name, value in {"AWS_ACCESS_KEY_ID": "writer", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu"}.items():
        monkeypatch.setenv(name, value)

    def answer(method: str, path: str) -> tuple[int, Any]:
        if method == "PUT":
            retained[path] = b"written by tidewise doctor; may be removed"
        return 200, retained.get(path, b"")

    with serve(answer) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        findings = check_lake(Settings(paths=Paths(lake="s3://bucket/tidewise")))
    assert "second writer" in the_error(findings, "conditional write").text
    assert "delete" in {one.check for one in findings if one.level is Level.WARNING}


def test_a_lake_on_a_local_disk(tmp_path):
    findings = check_lake(Settings(paths=Paths(lake=str(tmp_path / "lake"))))
    assert [(one.check, one.level) for one in findings] == [
        ("write", Level.OK),
        ("read", Level.OK),
        ("conditional write", Level.OK),
        ("delete", Level.OK),
    ]
    assert list((tmp_path / "lake").iterdir()) == []


def test_mlflow(tmp_path):
    assert check_reach(f"sqlite:///{tmp_path / 'new.db'}").level is Level.OK
    (tmp_path / "damaged.db").write_bytes(b"no database, but long enough to be looked at as one" * 10)
    assert check_reach(f"sqlite:///{tmp_path / 'damaged.db'}").level is Level.ERROR
    with serve(lambda *_: (200, b"3.17.2")) as url:
        assert "3.17.2" in check_reach(url).text
    assert check_reach(url).level is Level.ERROR  # it runs no more
    with serve(lambda *_: (401, b"")) as url:
        assert "MLFLOW_TRACKING" in check_reach(url).remedy


def test_an_mlflow_that_is_not_made_yet_is_not_asked(tmp_path):
    settings = Settings(mlflow=Mlflow(tracking_uri=f"sqlite:///{tmp_path / 'new.db'}"))
    assert [one.check for one in check_mlflow(settings)] == ["store"]
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("reported", "level", "remedy"),
    [
        ("MlflowException: Detected out-of-date database schema. ... run 'mlflow db upgrade <database_uri>'",
         Level.ERROR, "mlflow db upgrade postgresql://db/mlflow"),
        ("MlflowException: ... The `mlflow migrate-filestore` tool migrates", Level.ERROR, "mlflow migrate-filestore"),
        ("ModuleNotFoundError: No module named 'mlflow'", Level.WARNING, "make setup"),
        ("MlflowException: failed with error code 500", Level.ERROR, "mlflow.tracking_uri"),
    ],
)  # fmt: skip
@pytest.mark.covers("harm mlflow-unasked")
def test_what_mlflow_refuses_is_named_with_its_remedy(reported, level, remedy):
    finding = judge_refusal("postgresql://db/mlflow", reported)
    assert finding.level is level
    assert remedy in finding.remedy


def test_an_elastic_cluster_may_have_fewer_slots_than_a_plan():
    few = {"/overview": (200, {"slots-total": 4, "slots-available": 0})}
    for settings, level in (({}, Level.WARNING), ({"elastic": True}, Level.OK)):
        with serve(answer_from(flink_answers() | few)) as url:
            findings = examine(url, **settings)
        assert next(one.level for one in findings if one.check == "slots") is level


def test_a_server_that_drops_what_is_no_query_has_an_unknown_retention():
    """A gateway that lets queries through alone: the connection ends without a reply."""
    with serve(prometheus({})) as url:
        probe = Probe(url, server=PROMETHEUS)
        probe.get = lambda path, **_: _drop(path) if "runtimeinfo" in path else Probe.get(probe, path)
        findings = {one.check: one for one in check_series(probe)}
    assert findings["retention"].level is Level.WARNING
    assert {one.level for check, one in findings.items() if check != "retention"} == {Level.OK}


def _drop(path: str) -> Any:
    raise ProbeError("address", f"{path} ends the connection", "look at the server")


def test_remedies_of_prometheus_do_not_speak_of_flink():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        (result,) = check_series(Probe(f"http://127.0.0.1:{holder.getsockname()[1]}", server=PROMETHEUS))
    assert result.level is Level.ERROR
    assert "9090" in result.remedy
    assert not any(word in result.remedy for word in ("Flink", "rest_url", "JobManager"))
    with dropping_server() as url:
        (result,) = check_series(Probe(url, server=PROMETHEUS))
    assert "is this port Prometheus" in result.remedy
    assert "rest_url" not in result.remedy


@contextmanager
def dropping_server() -> Iterator[str]:
    """A server that ends every connection without a reply."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drop() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()

        threading.Thread(target=drop, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_partial_answers_are_named():
    def answer(method: str, path: str) -> tuple[int, Any]:
        status, result = prometheus({})(method, path)
        return status, {**result, "isPartial": True}

    with serve(answer) as url:
        result = the_error(check_series(Probe(url)), "address")
    assert "isPartial" in result.text


def test_keys_for_sources_and_jobs_that_do_not_run_are_named_with_the_nearest():
    topics = {"orders/Source: orders": ("t",), "oders/Source: orders": ("t",), f"orders/{'a' * 32}": ("t",)}
    kafka = {"main": {"bootstrap_servers": "127.0.0.1:1", "topics": topics}}
    settings = Settings.model_validate({"planner": {"policies": {"prod/order": "ds2", "other/orders": "ds2"}}})
    with serve(answer_from(flink_answers())) as url:
        partitions = {"orders/Source: orders": 8, "orders/Source: order": 8}
        cluster = Cluster.model_validate({"rest_url": url, "kafka": kafka, "partitions": partitions})
        result = doctor.check_cluster("prod", cluster, settings, sleep=lambda _: None)
    warned = {one.check: one for one in result if one.level is Level.WARNING}
    short = 'partitions."orders/Source: order"'
    assert warned.keys() == {"topics of main", short, 'planner.policies."prod/order"'}
    assert 'write "orders/Source: orders"' in warned[short].remedy
    assert 'write "orders/Source: orders"' in warned["topics of main"].remedy
    assert 'write "prod/orders"' in warned['planner.policies."prod/order"'].remedy
