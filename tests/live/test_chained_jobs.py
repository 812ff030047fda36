"""Jobs as Flink chains them by default, on a real cluster, against what their source owes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from live_flink import LiveFlink, job_on
from waiting import wait_until

from include.flink.endpoints import vertex_metric_names_path, vertex_metrics_path
from include.flink.poller import RestSource
from lab.local_flink.load import CHAINED, ENRICHED, EXPRESS, ROUTED, LoadOptions, LoadTopology, due_after
from models.polling.poll_history import PollHistory

pytestmark = pytest.mark.e2e
LEAST = 3000  # orders, before a ratio is judged
RATE_PER_S, WINDOW_S = 800.0, 5
_STALE_S = 3.5  # age of the metrics that the JobManager serves
_AHEAD_S = 5.0  # the source owes from when its graph is built on, and a busy machine submits it seconds later
_NAMES = ("numRecordsIn", "numRecordsOut", "pendingRecords")


def read_vertices(flink: LiveFlink) -> Mapping[str, Mapping[str, float]]:
    """Return vertex -> metric -> sum over its subtasks, of the vertex and its operators."""
    client, get, result = flink.client, flink.client.transport.get_json, {}
    for vertex in client.job(flink.job_id)["vertices"]:
        listed = [one["id"] for one in get(vertex_metric_names_path(flink.job_id, vertex["id"]))]
        wanted = [name for name in listed if name.rpartition(".")[2] in _NAMES]
        reply = get(vertex_metrics_path(flink.job_id, vertex["id"], wanted)) if wanted else []
        result[vertex["name"]] = {one["id"]: one["sum"] for one in reply}
    return result


class Watch:
    """The windows of the controller over a job, polled as the controller polls it."""

    def __init__(self, flink: LiveFlink) -> None:
        self._job_id = flink.job_id
        self._source = RestSource(flink.client, "live", time.time)
        self._windows = PollHistory({"live": WINDOW_S}, polls=200)

    def poll(self) -> None:
        self._windows.add(self._source.poll().records)

    def rates(self) -> Mapping[str, tuple[float, float]]:
        """Return vertex -> records/s in and out in the last window."""
        place, job = next(pair for pair in enumerate(self._windows.jobs()) if pair[1].job_id == self._job_id)
        result = self._windows.windows(time.time()).observations(place)
        pairs = zip(result.processing_rate_per_s[-1].tolist(), result.output_rate_per_s[-1].tolist(), strict=True)
        return dict(zip(job.graph.names, pairs, strict=True))

    def shows(self, rates: Mapping[str, tuple[float, float]]) -> bool:
        """Whether a window has these rates; where a subtask was deployed late, those before work its backlog off."""

        def has_these_rates() -> bool:
            self.poll()
            return self.rates() == rates

        return wait_until(has_these_rates, 60)


def owes_what_is_due(flink: LiveFlink, counter: str, watch: Watch) -> Callable[[], bool]:
    """Return whether, at three polls in a row, taken in + backlog is what the trace says is due."""
    submitted_s, in_a_row = flink.client.job(flink.job_id)["start-time"] / 1000, 0

    def check() -> bool:
        nonlocal in_a_row
        watch.poll()
        metrics = next(one for name, one in read_vertices(flink).items() if name.startswith("Source"))
        elapsed_s = time.time() - submitted_s
        owed = metrics.get(counter, -1.0) + metrics.get("Source__orders.pendingRecords", 0.0)
        is_due = (
            due_after(elapsed_s - _STALE_S, flink.options) <= owed <= due_after(elapsed_s + _AHEAD_S, flink.options)
        )
        in_a_row = in_a_row + 1 if is_due and elapsed_s > 3 * WINDOW_S else 0
        return in_a_row == 3

    return check


def test_a_whole_job_in_one_vertex_is_seen_at_its_source_operator_alone(local_cluster):
    options = LoadOptions(
        "one-vertex", RATE_PER_S, RATE_PER_S, cost_us=10, wait_us=190, form=LoadTopology.CHAINED, keep_one_in=4
    )
    with job_on(local_cluster, options) as flink:
        watch = Watch(flink)
        due = owes_what_is_due(flink, "Source__orders.numRecordsOut", watch)
        assert wait_until(due, 90), read_vertices(flink)
        ((name, metrics),) = read_vertices(flink).items()
        assert name == CHAINED
        assert (metrics["numRecordsIn"], metrics["numRecordsOut"]) == (0.0, 0.0)
        retained = metrics["keep.numRecordsOut"] / metrics["Source__orders.numRecordsOut"]
        assert retained == pytest.approx(1 / 4, rel=0.02)
        steady = {CHAINED: (pytest.approx(RATE_PER_S, rel=0.25), 0.0)}
        assert watch.shows(steady), watch.rates()


def test_side_outputs_send_a_share_over_each_edge(local_cluster):
    """The source counts what it takes in; what leaves its chain is the sum over the main and the side output."""
    options = LoadOptions(
        "side-outputs",
        RATE_PER_S,
        RATE_PER_S,
        cost_us=10,
        wait_us=190,
        form=LoadTopology.SIDE_OUTPUTS,
        keep_one_in=2,
        counts_in=True,
    )
    with job_on(local_cluster, options) as flink:
        watch = Watch(flink)
        assert wait_until(owes_what_is_due(flink, "numRecordsIn", watch), 90), read_vertices(flink)

        def has_sent_enough() -> bool:
            return read_vertices(flink)[ROUTED]["numRecordsOut"] > LEAST

        assert wait_until(has_sent_enough, 60)
        result = read_vertices(flink)
        assert set(result) == {ROUTED, ENRICHED, EXPRESS}
        source, enriched, express = result[ROUTED], result[ENRICHED], result[EXPRESS]
        assert source["Source__orders.numRecordsIn"] == pytest.approx(source["numRecordsIn"], rel=0.1)
        assert source["numRecordsOut"] / source["numRecordsIn"] == pytest.approx(0.5, rel=0.05)
        assert enriched["numRecordsIn"] + express["numRecordsIn"] == pytest.approx(source["numRecordsOut"], rel=0.1)
        share = express["numRecordsIn"] / (enriched["numRecordsIn"] + express["numRecordsIn"])
        assert share == pytest.approx(0.1, rel=0.25)
        steady = {
            ROUTED: (pytest.approx(RATE_PER_S, rel=0.25), pytest.approx(RATE_PER_S / 2, rel=0.25)),
            ENRICHED: (pytest.approx(0.9 * RATE_PER_S / 2, rel=0.25), 0.0),
            EXPRESS: (pytest.approx(0.1 * RATE_PER_S / 2, rel=0.4), 0.0),
        }
        assert watch.shows(steady), watch.rates()
