"""End offsets of topics, asked of the brokers of one Kafka cluster."""

from __future__ import annotations

import concurrent.futures
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from include.flink.credentials import SecretError, SecretFiles
from include.flink.faults import FlinkError, FlinkUnreachableError
from include.settings.sources import Kafka

_LIBRARY_TIMEOUT_S = 1.0  # librdkafka ends a request this long before the limit of the call


class KafkaUnreachableError(FlinkUnreachableError):
    """No usable reply came from the brokers."""

    def __init__(self, place: str, cause: str) -> None:
        FlinkError.__init__(self, f"{place}: no offsets ({cause}); check bootstrap_servers and the security there")


class Broker:
    """One Kafka cluster; it is only asked, nothing is read from its topics and no group is joined."""

    def __init__(self, cluster: str, name: str, settings: Kafka) -> None:
        self.place = f"[clusters.{cluster}.kafka.{name}] {settings.bootstrap_servers}"
        self._settings = settings
        self._client: AdminClient | None = None

    def read_end_offsets(self) -> list[dict[str, Any]]:
        """Return one entry per topic: its partitions with ``end``, or ``error`` where there is no answer.

        Raises:
            KafkaUnreachableError: no broker replied, or the login was refused.
        """
        try:
            return self._read()
        except (KafkaException, SecretError, concurrent.futures.TimeoutError) as error:
            raise KafkaUnreachableError(self.place, _text(error)) from None

    def _read(self) -> list[dict[str, Any]]:
        client, topics = self._open(), self._settings.names
        if not topics:
            return []
        limit_s = self._settings.timeout_s
        described = client.describe_topics(TopicCollection(list(topics)), request_timeout=limit_s)
        result: dict[str, dict[str, Any]] = {}
        wanted: dict[TopicPartition, OffsetSpec] = {}
        for topic, future in described.items():
            try:
                partitions = sorted(one.id for one in future.result(limit_s + _LIBRARY_TIMEOUT_S).partitions)
            except KafkaException as error:
                if not _is_of_topic(error):
                    raise
                result[topic] = {"topic": topic, "error": _text(error), "partitions": []}
                continue
            result[topic] = {"topic": topic, "partitions": [{"partition": number} for number in partitions]}
            wanted.update({TopicPartition(topic, number): OffsetSpec.latest() for number in partitions})
        self._add_ends(client, wanted, result)
        return [result[topic] for topic in sorted(result)]

    def _add_ends(
        self, client: AdminClient, wanted: dict[TopicPartition, OffsetSpec], result: dict[str, dict[str, Any]]
    ) -> None:
        if not wanted:
            return
        limit_s = self._settings.timeout_s
        offsets = client.list_offsets(wanted, request_timeout=limit_s)
        for place, future in offsets.items():
            (entry,) = (one for one in result[place.topic]["partitions"] if one["partition"] == place.partition)
            try:
                entry["end"] = int(future.result(limit_s + _LIBRARY_TIMEOUT_S).offset)
            except KafkaException as error:  # a partition without a leader: the others still tell
                entry["error"] = _text(error)

    def _open(self) -> AdminClient:
        if self._client is None:
            self._client = AdminClient(client_options(self._settings))
        return self._client


def client_options(settings: Kafka) -> dict[str, Any]:
    """Return librdkafka's options.

    Raises:
        SecretError: the login cannot be read, or is not ``user:password``.
    """
    options: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap_servers,
        "security.protocol": settings.security_protocol,
        "client.id": "tidewise",
        "socket.timeout.ms": round(1000 * settings.timeout_s),
        "log_level": 2,
    }
    if settings.sasl_login is not None:
        user, colon, password = SecretFiles().read(settings.sasl_login).partition(":")
        if not colon:
            raise SecretError("sasl_login must hold user:password")
        options |= {"sasl.mechanism": settings.sasl_mechanism, "sasl.username": user, "sasl.password": password}
    files = {
        "ssl.ca.location": settings.ca_file,
        "ssl.certificate.location": settings.client_cert_file,
        "ssl.key.location": settings.client_key_file,
    }
    return options | {key: path for key, path in files.items() if path is not None}


def _is_of_topic(error: KafkaException) -> bool:
    fault = error.args[0]
    return fault.name() in {"UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION", "_UNKNOWN_TOPIC"}


def _text(error: Exception) -> str:
    fault = error.args[0] if error.args else error
    return str(fault.name()) if hasattr(fault, "name") else str(fault) or type(error).__name__
