"""The source of raw lines of kind ``kafka_offsets``: one for each Kafka cluster and poll."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from include.flink.poller import Delivery
from include.flink.raw_format import Kind, RawRecord, hour_directory, write_lines
from include.kafka.broker import Broker, KafkaUnreachable
from include.settings.sources import Kafka

log = logging.getLogger(__name__)
FILE_PREFIX = "kafka-"


class KafkaSource:
    """Asks the brokers of one Flink cluster's topics.

    Args:
        cluster: name of the Flink cluster.
        settings: name of each Kafka cluster -> its settings.
        clock: epoch seconds.
    """

    def __init__(self, cluster: str, settings: Mapping[str, Kafka], clock: Callable[[], float]) -> None:
        self._cluster, self._clock = cluster, clock
        self._brokers = {name: Broker(cluster, name, one) for name, one in sorted(settings.items())}
        self._last_ms = 0

    def poll(self) -> tuple[list[RawRecord], dict[str, str]]:
        """Return the lines, and the Kafka clusters that did not reply with the fault: they do not stop the others."""
        records, faults = [], {}
        for name, broker in self._brokers.items():
            try:
                topics = broker.read_end_offsets()
            except KafkaUnreachable as error:
                log.error("cluster %s: %s", self._cluster, error)
                faults[name] = str(error)
                continue
            # The key of a line is its time: two Kafka clusters never have the same.
            self._last_ms = max(round(1000 * self._clock()), self._last_ms + 1)
            body = json.dumps({"kafka": name, "topics": topics}, separators=(",", ":"))
            names = ",".join(one["topic"] for one in topics)
            endpoint = f"kafka:{name}/list_offsets?topics={names}"
            kind = str(Kind.KAFKA_OFFSETS)
            records.append(RawRecord(self._last_ms, self._cluster, kind, endpoint, None, None, 200, body))
        return records, faults

    def deliver(self, raw_root: Path) -> Delivery:
        """Poll once and write the lines as one file into the directory of the present hour."""
        records, faults = self.poll()
        refused = {f"{self._cluster}/{name}": fault for name, fault in faults.items()}
        if not records:
            return Delivery(refused=refused)
        now = datetime.fromtimestamp(self._clock(), UTC)
        path = hour_directory(raw_root, self._cluster, now) / f"{FILE_PREFIX}{now:%Y%m%dT%H%M%S%f}.jsonl.gz"
        count = write_lines(path, (record.to_line() for record in records))
        return Delivery(written=(path,), refused=refused, records=count)
