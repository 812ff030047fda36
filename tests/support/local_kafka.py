"""A real Kafka broker on loopback: one Java process, KRaft, no other server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_until

from cli.java_build import java_tool
from lab.local_flink.cluster import free_ports
from lab.local_flink.processes import end_process, start_process
from tools.test_parts import PartMissingError, find_kafka


@dataclass
class LocalKafka:
    """A running broker.

    Attributes:
        servers: its bootstrap address.
        delivered: topic -> records that the broker has acknowledged to :meth:`send`.
    """

    servers: str
    delivered: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "log_level": 0})

    def create(self, topic: str, partitions: int = 3) -> None:
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(30)

    def send(self, topic: str, records: int) -> None:
        """Produce records and wait until the broker has them."""

        def count(error, message) -> None:
            assert error is None
            self.delivered[topic] = self.delivered.get(topic, 0) + 1

        for number in range(records):
            self._producer.produce(topic, value=b"x", key=str(number).encode(), on_delivery=count)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0


@contextmanager
def running_kafka(work_dir: Path, port: int | None = None) -> Iterator[LocalKafka]:
    """Run a broker with empty logs below a folder, or with those that are there; skipped where there is no Kafka."""
    try:
        jars = find_kafka()
    except PartMissingError as error:
        pytest.skip(str(error))
    broker, controller = free_ports(2)
    broker = port or broker
    work_dir.mkdir(parents=True, exist_ok=True)
    settings = work_dir / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{broker}\n"
        "controller.listener.names=CONTROLLER\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"log.dirs={work_dir / 'logs'}\noffsets.topic.replication.factor=1\nauto.create.topics.enable=false\n"
        "group.initial.rebalance.delay.ms=0\noffsets.topic.num.partitions=1\nnum.network.threads=1\nnum.io.threads=2\n"
    )
    java = [java_tool("java"), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    if not (work_dir / "logs").exists():
        formatted = [*java, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(settings)]
        subprocess.run(formatted, check=True, capture_output=True)
    process = start_process([*java, "kafka.Kafka", str(settings)], work_dir / "broker.log", {})
    try:
        servers = f"127.0.0.1:{broker}"
        assert wait_until(lambda: process.poll() is not None or _answers(servers), 60)
        assert process.poll() is None, (work_dir / "broker.log").read_text()
        yield LocalKafka(servers)
    finally:
        end_process(process)


def _answers(servers: str) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=1).brokers)
    except KafkaException:
        return False
