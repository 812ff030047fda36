"""Where a cluster's metrics come from besides its REST API: a Prometheus-compatible server, Kafka brokers."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from include.settings.connection import Connection, SecretReference, check_http_url
from include.settings.section import Section, Text, must_fit
from include.utc import HOUR_S

_MATCHER = r'(?!__name__[=!])[A-Za-z_][A-Za-z0-9_]*(=|!=|=~|!~)"(?:[^"\\\n]|\\.)*"'
_NO_PATH = 'is no path; write "/prometheus" or "/select/0/prometheus", say'
_NO_METRIC = 'is no name of a metric or label; write letters, digits, "_" and ":", no digit first'
_NO_MATCHER = "is no label matcher; write 'namespace=\"prod\"' or 'cluster=~\"a|b\"', say"
_NO_TOPIC = "is no name of a topic; write letters, digits, dots, dashes and underscores"
_NO_SOURCE = 'must be "job/operator"; write "orders/Source: orders", say'
_server_url = partial(check_http_url, write="write http://prometheus:9090, say")
MetricName = Annotated[Text, must_fit(r"[A-Za-z_:][A-Za-z0-9_:]*", _NO_METRIC)]


class MetricNames(Section):
    """Names of Flink's metrics on the server, where scopes or a relabelling change them."""

    job_label: MetricName = Field("job_name", description="label with the name of the job")
    prefix: str = Field(
        "flink_", pattern=r"^([A-Za-z_:][A-Za-z0-9_:]*)?$", description="what every metric's name begins with"
    )
    task: MetricName = Field("taskmanager_job_task", description="`metrics.scope.task` in names of metrics")
    operator: MetricName = Field("taskmanager_job_task_operator", description="the same of `metrics.scope.operator`")
    job: MetricName = Field("jobmanager_job", description="the same of `metrics.scope.jm-job`")
    cluster: MetricName = Field("jobmanager", description="the same of `metrics.scope.jm`")


class Prometheus(Section):
    """A server with Prometheus' HTTP API that scrapes the cluster: Prometheus, VictoriaMetrics, Mimir, Thanos."""

    url: Annotated[Text, AfterValidator(_server_url)] | None = Field(None, description="address of the server")
    prefix: Annotated[str, must_fit(r"(/[A-Za-z0-9._~:@-]+)*", _NO_PATH)] = Field(
        "", description='path before `/api/v1`: `"/prometheus"` for Mimir, `"/select/0/prometheus"` for VictoriaMetrics'
    )
    tenant: Text | None = Field(None, description="value of the header `X-Scope-OrgID`")
    matchers: tuple[Annotated[Text, must_fit(_MATCHER, _NO_MATCHER)], ...] = Field(
        (), description="label matchers that select this cluster: `'namespace=\"prod\"'`"
    )
    live: bool | None = Field(None, description="polled in the place of REST; unset: without a rest_url")
    step_s: int = Field(
        60, ge=1, le=HOUR_S, description="s; time between two samples; a multiple of the scrape interval"
    )
    max_sample_age_s: int = Field(
        120, ge=1, le=HOUR_S, description="s; older samples are left out; above the scrape interval"
    )
    graphs: Text | None = Field(None, description="folder of saved replies of `/jobs/:jobid`, `*.json`")
    chunk_h: int = Field(6, ge=1, le=168, description="h; most of one query of an import")
    requests_per_s: float = Field(5.0, gt=0, le=1000, description="most queries of an import a second")
    timeout_s: float = Field(120.0, ge=0.1, le=HOUR_S, description="s; of a reply")
    names: MetricNames = MetricNames()
    connection: Connection = Connection()

    @model_validator(mode="after")
    def _times_fit(self) -> Prometheus:
        if self.max_sample_age_s < self.step_s // 2:
            raise ValueError(
                f"max_sample_age_s = {self.max_sample_age_s} is shorter than half of step_s = {self.step_s}, so "
                f"samples would be missed; write max_sample_age_s = {2 * self.step_s}, say"
            )
        return self


def _bootstrap(text: str) -> str:
    for server in text.split(","):
        host, colon, port = server.strip().rpartition(":")
        if (
            not colon
            or not re.fullmatch(r"[A-Za-z0-9._:\[\]-]+", host)
            or not port.isdigit()
            or not 0 < int(port) < 65536
        ):
            raise ValueError(f'{server.strip()!r} is no host:port; write "broker1:9092,broker2:9092", say')
    return text


Topic = Annotated[str, must_fit(r"[A-Za-z0-9._-]{1,249}", _NO_TOPIC)]
SourceKey = Annotated[str, must_fit(r".*\S.*/.*\S.*", _NO_SOURCE)]  # which slash it is the jobs' names tell


class Kafka(Section):
    """Brokers of topics that jobs read: end offsets tell what arrives, also while a job is down."""

    bootstrap_servers: Annotated[Text, AfterValidator(_bootstrap)] = Field(description="host:port, comma-separated")
    topics: dict[SourceKey, tuple[Topic, ...]] = Field(
        default_factory=dict, description='`"job/operator"` or `"job/vertex id"` of a source -> topics that it reads'
    )
    writes: dict[Text, tuple[Topic, ...]] = Field(
        default_factory=dict,
        description="job -> topics that it writes: which jobs feed each other, as `fed_by`",
    )
    security_protocol: Annotated[str, Field(pattern="^(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)$")] = Field(
        "PLAINTEXT", description="`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`"
    )
    sasl_mechanism: Annotated[str, Field(pattern="^(PLAIN|SCRAM-SHA-256|SCRAM-SHA-512)$")] | None = Field(
        None, description="`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`"
    )
    sasl_login: SecretReference | None = Field(None, description='user:password: `"file:PATH"` or `"env:NAME"`')
    ca_file: Text | None = Field(None, description="PEM file of trusted certificates; unset: the system's")
    client_cert_file: Text | None = Field(None, description="PEM file of the client certificate")
    client_key_file: Text | None = Field(None, description="PEM file of its key")
    timeout_s: float = Field(10.0, ge=0.1, le=300, description="s; of the replies of a poll")

    @model_validator(mode="after")
    def _login_fits(self) -> Kafka:
        uses_sasl = self.security_protocol.startswith("SASL")
        if uses_sasl != (self.sasl_login is not None) or uses_sasl != (self.sasl_mechanism is not None):
            raise ValueError(
                f"security_protocol = {self.security_protocol!r} goes {'with' if uses_sasl else 'without'} "
                "sasl_mechanism and sasl_login; write all three, or neither of the two"
            )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """All topics, each once, by name."""
        return tuple(sorted({topic for topics in self.topics.values() for topic in topics}))
