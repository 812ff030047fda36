"""Every check, side by side where they do not need each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from cli.doctor.airflow import check_airflow
from cli.doctor.brokers import check_brokers
from cli.doctor.cluster import check_cluster
from cli.doctor.connecting import open_probe
from cli.doctor.control_folder import check_control_folder
from cli.doctor.findings import Finding, error
from cli.doctor.kubernetes import check_operator
from cli.doctor.machine import check_disk, check_interpreter, check_jars, check_java, check_shared_libraries
from cli.doctor.probe import PROMETHEUS, Probe
from cli.doctor.series import SeriesNames, check_series
from cli.doctor.settings_file import read_settings
from cli.doctor.spark_storage import check_s3_places, check_spark_on_s3
from cli.doctor.storage import check_lake, check_mlflow, check_tables, describe
from include.flink.credentials import SecretError
from include.settings import Cluster, Settings

WORKERS = 16
Found = Finding | Sequence[Finding]


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to look at besides the machine and the settings.

    Attributes:
        clusters: names; empty for all with an address.
        prometheus: address of a Prometheus-compatible server, None without one.
        kafka: brokers as ``host:port``, separated by commas, None without any.
        with_airflow: whether Airflow is started, which takes some ten seconds.
    """

    clusters: Sequence[str] = ()
    prometheus: str | None = None
    kafka: str | None = None
    with_airflow: bool = True


def run_checks(extent: CheckOptions, on_done: Callable[[str, list[Finding]], None]) -> list[Finding]:
    """Return all findings, in the order of the parts; ``on_done`` gets those of each part when they are done."""
    settings, about_settings = read_settings()
    machine = [check_interpreter(), check_shared_libraries(), check_java(), *about_settings]
    on_done("machine", machine)
    if settings is None:
        return machine
    checks = dict(list_checks(extent, settings))
    with ThreadPoolExecutor(WORKERS) as pool:
        started = {name: pool.submit(_run, name, check, on_done) for name, check in checks.items()}
        return [*machine, *(finding for one in started.values() for finding in one.result())]


def list_checks(extent: CheckOptions, settings: Settings) -> Iterable[tuple[str, Callable[[], Found]]]:
    """Yield name and function of each part that is to be looked at."""
    yield "jars", partial(check_jars, settings)
    yield "disk", partial(check_disk, settings)
    yield "lake", partial(check_lake, settings)
    yield "tables", partial(check_tables, settings)
    yield "places on S3", partial(check_s3_places, settings)
    yield "Spark on S3", partial(check_spark_on_s3, settings)
    yield "control folder", partial(check_control_folder, settings)
    yield "MLflow", partial(check_mlflow, settings)
    live = {name: one for name, one in sorted(settings.clusters.items()) if one.rest_url is not None}
    for name, cluster in live.items():
        if not extent.clusters or name in extent.clusters:
            yield f"cluster {name}", partial(check_cluster, name, cluster, settings)
    for name, cluster in live.items():
        if cluster.actuator == "kubernetes" and (not extent.clusters or name in extent.clusters):
            yield f"operator of {name}", partial(check_operator, name, cluster)
    for name in sorted(set(extent.clusters) - set(live)):
        fault = error(f"cluster {name}", "address", "the settings name none with a rest_url", "correct --cluster")
        yield f"cluster {name}", partial(list, [fault])
    for name, cluster in settings.clusters.items():
        if cluster.prometheus.url is not None and (not extent.clusters or name in extent.clusters):
            yield f"Prometheus of {name}", partial(check_server, name, cluster)
        for kafka in cluster.kafka.values():
            yield f"Kafka of {name}", partial(check_brokers, kafka.bootstrap_servers)
    if extent.prometheus is not None:
        yield "Prometheus", partial(check_series, Probe(extent.prometheus, server=PROMETHEUS))
    if extent.kafka is not None:
        yield "Kafka", partial(check_brokers, extent.kafka)
    if extent.with_airflow:
        yield "Airflow", partial(check_airflow, settings)


def check_server(name: str, cluster: Cluster) -> list[Finding]:
    """Return the findings of the server that scrapes a cluster."""
    server = cluster.prometheus
    tenant = {} if server.tenant is None else {"X-Scope-OrgID": server.tenant}
    try:
        probe = open_probe(f"{str(server.url).rstrip('/')}{server.prefix}", server.connection, tenant, PROMETHEUS)
    except SecretError as problem:
        return [error("Prometheus", "secret", str(problem), f"correct [clusters.{name}.prometheus.connection]")]
    return check_series(probe, SeriesNames(server.names, server.matchers))


def _run(name: str, check: Callable[[], Found], on_done: Callable[[str, list[Finding]], None]) -> list[Finding]:
    """Run a check; one that fails itself is a finding, so that the others are still seen."""
    try:
        result = check()
    except Exception as problem:
        result = error(name, "check", f"the check itself failed: {describe(problem)}", "report this, with the line")
    findings = [result] if isinstance(result, Finding) else list(result)
    on_done(name, findings)
    return findings
