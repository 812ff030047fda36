"""A cluster over the REST double and a real control of it: settings file, lease, log in Delta, holds, actuator."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.choose_actuator import choose_terms, open_cluster_actuator
from controller.cluster_control import ClusterControl
from controller.leases.lease import Lease
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.view.job_view import JobView
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from models.control.state import Intention, Origin
from models.polling.seen_job import PolledJob

_FILE = """
[paths]
lake = "{root}/lake"
raw = "{root}/raw"
out = "{root}/out"
[limits]
cooldown_s = 3600
[clusters.live]
rest_url = "{url}"
limits.mode = "{mode}"
"""


@dataclass
class ControlledCluster:
    """Cluster ``live``, whose jobs a test has rescaled as a plan would."""

    root: Path
    server: FlinkServer
    control: ClusterControl

    @property
    def job(self) -> FakeJob:
        return self.server.jobs[0]

    @property
    def puts(self) -> int:
        return len(self.server.asked("PUT"))

    def want(self, count: int | None, reason: str = "load rises", step_id: str = "", evaluates: bool = True) -> str:
        """Decide once on the first job; returns verb and reason."""
        wanted = None
        if count is not None:
            target = dict.fromkeys(self.job.requested or {}, count)
            wanted = Intention(target, Origin.PLAN, step_id or f"step-{count}", reason, time.time() + 600)
        view = JobView("live", self.job.name, seen=self.poll())
        result, problem = self.control.control(
            {self.job.name: view}, {self.job.name: wanted}, None, is_evaluation=evaluates
        )
        assert problem is None
        assert isinstance(result, Counter)
        return next(iter(result), "")

    def poll(self) -> PolledJob:
        """Return what polls would show of the job, with the names of its operators."""
        names, now_ms = self.job.names, round(1000 * time.time())
        return PolledJob(
            *("live", self.job.name, self.job.job_id, self.job.state, now_ms),
            running={names[vertex]: count for vertex, count in self.job.parallelism.items()},
            restarting=False,
            vertex_ids={name: vertex for vertex, name in names.items()},
            finished=frozenset(),
            graph=None,
            stops=(),
            metrics={},
        )


@contextmanager
def controlled_cluster(
    root: Path, patch: pytest.MonkeyPatch, mode: str = "auto", server: FlinkServer | None = None
) -> Iterator[ControlledCluster]:
    """Run a control of a cluster with one job, which it has not taken over yet."""
    file = root / "settings.toml"
    patch.setenv(SETTINGS_FILE_VARIABLE, str(file))
    for folder in ("lake", "raw", "out"):
        (root / folder).mkdir()
    with serving(server or FlinkServer(FakeJob())) as running:
        file.write_text(_FILE.format(root=root, url=running.url, mode=mode))
        os.utime(file, (time.time() - 1000, time.time() - 1000))
        settings = load_settings()
        lease = Lease(settings.paths.lake, "live", "here:1", time.time)
        control = ClusterControl(
            name="live",
            actuator=open_cluster_actuator(settings, "live", lease.may_send),
            log=DeltaControlLog(open_control_log(settings.paths.lake), "live", lease, time.time),
            lease=lease,
            limits=open_limits(settings, time.time, load_settings),
            clock=time.time,
            late_after_s=60.0,
            express=choose_terms(settings, "live"),
            made_with=settings,
        )
        yield ControlledCluster(root, running, control)
