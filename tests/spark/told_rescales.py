"""Jobs that stop once in an hour, and what Flink 2.3 tells of it: each case is a cluster."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from include.flink.raw_format import Endpoint
from include.settings import Cluster
from tests.spark.raw_builders import (
    START,
    VERTEX_IDS,
    WORK,
    PolledJob,
    exceptions_body,
    ms,
    record,
    write,
)

SEEN = START + timedelta(minutes=29, seconds=50)  # the last poll before the stop
STOPPED = START + timedelta(minutes=30, seconds=57, milliseconds=655)
RUNNING = START + timedelta(minutes=31, seconds=10)
FAILED = STOPPED - timedelta(seconds=5)
OFF = timedelta(seconds=240)
"""By how much a JobManager's clock is behind or ahead, in some of the clusters."""
GROUP_ID = "8" * 32
STATES = ("WaitingForResources", "CreatingExecutionGraph", "Executing")
PROFILE = {
    **{"cpuCores": 1.0, "taskHeapMemory": 384, "taskOffHeapMemory": 0, "managedMemory": 64, "networkMemory": 64},
    "extendedResources": {},
}


def span(state: str, entered: datetime, left: datetime) -> dict[str, object]:
    return {
        "state": state,
        "enterTimestampInMillis": ms(entered),
        "leaveTimestampInMillis": ms(left),
        "durationInMillis": ms(left) - ms(entered),
        "stringifiedException": None,
    }


def told(
    trigger: str, stopped: datetime, ran: datetime, state: str = "COMPLETED", reason: str = "SUCCEEDED"
) -> dict[str, object]:
    """A reply of ``/jobs/:jobid/rescales/details/:rescaleuuid``, with the fields that Flink 2.3 gives it.

    Before the job stops for it, a rescale waits in state Executing; "Restarting" is the stop.
    """
    asked = stopped - timedelta(seconds=3)
    step = (ran - stopped) / 4
    states = [span("Executing", asked, stopped), span("Restarting", stopped, stopped + step)]
    states += [span(name, stopped + place * step, stopped + (place + 1) * step) for place, name in enumerate(STATES, 1)]
    group = {"slotSharingGroupId": GROUP_ID, "slotSharingGroupName": "default"}
    vertices = {
        vertex_id: {
            **{"jobVertexId": vertex_id, "jobVertexName": name, **group},
            **{"desiredParallelism": 3, "sufficientParallelism": 1},
            **{"preRescaleParallelism": 2, "postRescaleParallelism": 3},
        }
        for name, vertex_id in VERTEX_IDS.items()
    }
    slots = {
        **group,
        **{"requestResourceProfile": PROFILE, "acquiredResourceProfile": PROFILE},
        **{"desiredSlots": 3, "minimalRequiredSlots": 1, "preRescaleSlots": 2, "postRescaleSlots": 3},
    }
    return {
        "rescaleUuid": "0f6d4f0a8b5c4d8fa3c1d3a1b2c4e5f6",
        "resourceRequirementsUuid": "1f6d4f0a8b5c4d8fa3c1d3a1b2c4e5f6",
        "rescaleAttemptId": 1,
        "vertices": vertices,
        "slots": {GROUP_ID: slots},
        "schedulerStates": states,
        "startTimestampInMillis": ms(asked),
        "endTimestampInMillis": ms(ran),
        "terminalState": state,
        "triggerCause": trigger,
        "terminatedReason": reason,
    }


RAN = RUNNING + timedelta(milliseconds=400)  # a rescale ends a little after the job's own time of RUNNING
INITIAL = told("INITIAL_SCHEDULE", START - timedelta(hours=1, seconds=9), START - timedelta(hours=1))
SITUATIONS = {
    "requirement": [INITIAL, told("UPDATE_REQUIREMENT", STOPPED, RAN)],
    "resource": [INITIAL, told("NEW_RESOURCE_AVAILABLE", STOPPED, RAN)],
    "failover": [INITIAL, told("RECOVERABLE_FAILOVER", STOPPED, RAN)],
    "ignored": [told("UPDATE_REQUIREMENT", STOPPED, RAN, "IGNORED", "NO_RESOURCES_OR_PARALLELISMS_CHANGE")],
    "another": [told("UPDATE_REQUIREMENT", STOPPED, RUNNING + timedelta(seconds=2.1))],  # not the one that ended then
    "silent": [],
    "behind": [INITIAL, told("UPDATE_REQUIREMENT", STOPPED - OFF, RAN - OFF)],
    "ahead": [INITIAL, told("UPDATE_REQUIREMENT", STOPPED + OFF, RAN + OFF)],  # after the reply that tells it
    "silent-behind": [],
}


def write_rescales(raw: Path) -> dict[str, Cluster]:
    """Write every situation below ``raw``; returns the clusters."""
    for cluster, replies in SITUATIONS.items():
        ahead = {"behind": -OFF, "ahead": OFF}.get(cluster.rpartition("-")[2])
        before = PolledJob(START - timedelta(hours=1), cluster, ahead=ahead)
        is_failure = cluster == "failover"
        after = PolledJob(
            RUNNING, cluster, ahead=ahead, parallelism={**before.parallelism, WORK: 2 if is_failure else 3}
        )
        asked = RUNNING + timedelta(seconds=30)
        lines = [
            record(asked + timedelta(milliseconds=place), Endpoint.RESCALE, reply, cluster=cluster)
            for place, reply in enumerate(replies)
        ]
        if is_failure:
            lost = exceptions_body((FAILED, "TaskManager with id tm-1 is no longer reachable"))
            lines.append(record(asked, Endpoint.EXCEPTIONS, lost, cluster=cluster))
        lines += [*before.hour(START)[:25], *after.hour(START)[25:]]  # six polls before the stop, six after it
        write(raw, START, lines, cluster=cluster)
    return {name: Cluster(window_s=300) for name in SITUATIONS}
