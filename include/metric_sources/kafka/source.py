"""The source of raw lines of kind ``kafka_offsets``: one for each Kafka cluster and poll."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from include.flink.poller import DeliveredFiles, Poll, deliver
from include.flink.raw_format import Endpoint, RawRecord
from include.metric_sources.kafka.broker import Broker, KafkaUnreachableError
from include.raw_files import KAFKA_PREFIX
from include.settings.sources import Kafka


class KafkaSource:
    """Asks the brokers of one Flink cluster's topics, by the settings of each Kafka cluster."""

    def __init__(self, cluster: str, settings: Mapping[str, Kafka], clock: Callable[[], float]) -> None:
        self._cluster, self._clock = cluster, clock
        self._brokers = {name: Broker(cluster, name, one) for name, one in sorted(settings.items())}
        self._last_ms = 0

    def poll(self) -> Poll:
        """Return the lines, and a fault for each Kafka cluster that did not reply: it does not stop the others."""
        records: list[RawRecord] = []
        faults: list[str] = []
        for name, broker in self._brokers.items():
            try:
                topics = broker.read_end_offsets()
            except KafkaUnreachableError as error:
                faults.append(str(error))
                continue
            # The key of a line is its time: two Kafka clusters never have the same.
            self._last_ms = max(round(1000 * self._clock()), self._last_ms + 1)
            body = json.dumps({"kafka": name, "topics": topics}, separators=(",", ":"))
            names = ",".join(one["topic"] for one in topics)
            endpoint = f"kafka:{name}/list_offsets?topics={names}"
            kind = str(Endpoint.KAFKA_OFFSETS)
            records.append(RawRecord(self._last_ms, self._cluster, kind, endpoint, None, None, 200, body))
        return Poll(tuple(records), tuple(faults))

    def write(self, poll: Poll, raw_root: Path, now_s: float) -> DeliveredFiles:
        """Write the lines as one file into the directory of the present hour.

        Raises:
            OSError: the disk is full, say.
        """
        return deliver(poll, self._cluster, raw_root, now_s, prefix=KAFKA_PREFIX)

    def stop(self) -> None:
        """Return at once: a poll ends by itself within its time limit."""

    def close(self) -> None:
        """Return at once: librdkafka closes its connections with the last reference."""
