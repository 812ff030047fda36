"""Puts a controller together from the settings: readers, leases, actuators, one control per cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from controller.actuators.actuator import Actuator
from controller.actuators.choose_actuator import choose_terms, open_cluster_actuator
from controller.actuators.recorded_actuator import RecordedActuator
from controller.cluster_control import ClusterControl
from controller.decisions.step_reviews import load_reviews
from controller.leases.lease import Lease
from controller.limits.forgotten_lifts import delete_forgotten_lifts
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.log_witness import LogWitness
from controller.memory.stored_memories import StoredMemories
from controller.tick import Readers, Ticker
from controller.view.champion import ChampionReader
from controller.view.plan_tables import PlanTables
from controller.view.recent_files import polls_kept
from include.live_windows import LiveWindows
from include.settings import Settings
from include.version import controller_version
from models.polling.poll_history import PollHistory

Clock = Callable[[], float]
LEASE_TICKS, LEASE_LEAST_S = 3, 30.0


def lease_s(settings: Settings) -> float:
    """Return how long a lease lasts that is renewed at every tick: after a kill the next controller waits so long."""
    return max(LEASE_LEAST_S, float(LEASE_TICKS * settings.apply.tick_s))


def build_ticker(
    load: Callable[[], Settings], clusters: Sequence[str], owner: str, clock: Clock, *, is_rehearsal: bool
) -> Ticker:
    """Return what makes the ticks of some clusters.

    A rehearsal asks nothing of a cluster and sends nothing, whatever the mode: jobs are as the raw files show.
    """
    settings = load()
    lake = settings.paths.lake
    history = PollHistory(
        {name: one.window_s for name, one in settings.clusters.items()},
        polls=polls_kept(settings),
        max_value=settings.ingest.max_value,
        settle_s=settings.ingest.settle_s,
        name_job=lambda cluster, name: settings.cluster(cluster).name_job(name),
    )
    readers = Readers(PlanTables(lake), StoredMemories(lake), ChampionReader(settings.mlflow))
    table = open_control_log(lake)
    limits = open_limits(settings, clock, load, is_rehearsal=is_rehearsal)
    reviews = load_reviews()
    ticker: list[Ticker] = []

    def control(name: str) -> ClusterControl:
        # Other controllers go by the present, whatever time is looked at.
        lease = Lease(lake, name, owner, time.time, expiry_s=lease_s(settings))
        witness = LogWitness(settings.paths.out, lake, name)
        log = DeltaControlLog(table, name, lease, clock, witness=witness, read_code_version=read_version)
        rest_url = settings.cluster(name).rest_url
        actuator: Actuator
        if rest_url is None or is_rehearsal:
            actuator = RecordedActuator(name, lambda: ticker[0].view.seen, history.slots)
        else:
            actuator = open_cluster_actuator(settings, name, lease.may_send)
        return ClusterControl(
            name=name,
            actuator=actuator,
            log=log,
            lease=lease,
            limits=limits,
            clock=clock,
            late_after_s=settings.planner.costs.late_after_s,
            is_rehearsal=is_rehearsal or settings.cluster(name).actuator == "none",
            express=choose_terms(settings, name),
            made_with=settings,
            review=reviews,
            delete_lifts=partial(delete_forgotten_lifts, lake, name, log.read_history),
            live=None if is_rehearsal else LiveWindows(lake),
        )

    def read_version() -> str:
        return controller_version(ticker[0].settings.planner.policies_in_use)  # they may change meanwhile

    def load_in_force() -> Settings:
        load()  # it may be refused now for what no file tells
        return limits.load_in_force()

    ticker.append(Ticker(load_in_force, history, readers, {name: control(name) for name in clusters}, clock))
    return ticker[0]
