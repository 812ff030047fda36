"""The policies of a run, and what decides under each of them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.live.autoscaler import DEFAULTS, TUNED
from benchmarks.live.live_job import SLOTS
from benchmarks.live.settings import CLUSTER, Pace, write_settings
from benchmarks.nexmark.autoscaler_process import start_autoscaler
from benchmarks.nexmark.rival import Rival
from include.flink.faults import FlinkError
from include.flink.poller import RestSource
from include.threads import running_beside
from lab.local_flink.job_client import JobClient
from lab.local_flink.processes import end_process, start_process
from models.policies.observations import Observations
from models.polling.poll_history import PollHistory
from models.polling.seen_job import PolledJob

TIDEWISE = "tidewise"


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A policy of a run.

    Attributes:
        title: for people.
        by: what decides: "controller", "autoscaler" (Flink's own process), "host" (asked by this program), or "".
        name: in the catalogue, of a policy that is asked by this program.
        settings: of Flink's autoscaler.
        starts_at_peak: whether the job begins with the slots that the peak needs.
    """

    title: str
    by: str = ""
    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    starts_at_peak: bool = False


POLICIES: Mapping[str, LivePolicy] = {
    TIDEWISE: LivePolicy("Tidewise: plans and controller", "controller"),
    "controller_alone": LivePolicy("Tidewise's controller without history", "controller"),
    "flink_autoscaler": LivePolicy("Flink's autoscaler, defaults", "autoscaler", settings=DEFAULTS),
    "flink_autoscaler_tuned": LivePolicy("Flink's autoscaler, tuned", "autoscaler", settings=TUNED),
    "ds2": LivePolicy("DS2", "host", "ds2"),
    "conttune": LivePolicy("ContTune, alpha 3", "host", "conttune_a3"),
    "none": LivePolicy("none: as it was started"),
    "constant": LivePolicy("none: enough for the peak", starts_at_peak=True),
}


@contextmanager
def deciding(
    policy: LivePolicy, client: JobClient, folder: Path, pace: Pace, jar: Path | None
) -> Iterator[Callable[[], str]]:
    """Let a policy decide until the end of the block; yields what says why it no longer does, empty while it does.

    Args:
        policy: which.
        client: of the cluster.
        folder: of the run; below it the controller finds the lake.
        pace: of the run.
        jar: of Flink's autoscaler.
    """
    if policy.by == "host":
        with _Host(policy.name, client, pace).running() as failed:
            yield failed
        return
    if not policy.by:
        yield lambda: ""
        return
    if policy.by == "controller":
        environment = write_settings(folder, pace, client.rest_url)
        process = start_process([sys.executable, "-m", "controller"], folder / "controller.log", environment)
    else:
        assert jar is not None
        process = start_autoscaler(jar, client.rest_url, folder / "autoscaler.log", every_s=10)
    try:
        yield lambda: "" if process.poll() is None else f"its process ended with code {process.returncode}"
    finally:
        end_process(process, grace_s=20)


class _Host:
    """Asks a policy of the catalogue about the windows of the only job, and sends what it wants."""

    def __init__(self, name: str, client: JobClient, pace: Pace) -> None:
        self._rival = Rival(name, {}, SLOTS)
        self._client, self._pace = client, pace
        self._ended = threading.Event()
        self._failure = ""

    @contextmanager
    def running(self) -> Iterator[Callable[[], str]]:
        """Ask until the end of the block."""
        with running_beside(self._run, self._ended):
            yield lambda: self._failure

    def _run(self) -> None:
        pace = self._pace
        source = RestSource(self._client, CLUSTER, time.time)
        history = PollHistory(
            {CLUSTER: pace.window_s}, polls=round(60 * pace.window_s / pace.poll_every_s), settle_s=30
        )
        next_s = time.time() + pace.evaluate_s
        while not self._ended.wait(pace.poll_every_s):
            try:
                history.add(source.poll().records)
                if time.time() >= next_s:
                    next_s += pace.evaluate_s
                    windows = history.windows(time.time())
                    for number, observed in enumerate(history.jobs()):
                        self._decide(observed, windows.observations(number))
            except FlinkError:
                continue  # the cluster does not reply: at the next poll
            except Exception as error:
                self._failure = repr(error)
                raise

    def _decide(self, seen: PolledJob, observations: Observations) -> None:
        if seen.graph is None or not seen.is_up:
            return
        wanted = self._rival.decide(seen.graph, seen.running, observations, round(time.time()))
        if wanted is not None:
            by_vertex = {vertex: wanted[name] for name, vertex in seen.vertex_ids.items()}
            self._client.put_resource_requirements(seen.job_id, by_vertex)
