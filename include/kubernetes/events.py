"""Events of Kubernetes on a job's resource (``kubectl describe``): what Tidewise asked for, and what was refused.

They are for people; nothing is decided by them. So they are sent beside the work, and one that cannot be sent costs a
line in the log.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.job_resource import GROUP, VERSION, JobResource

COMPONENT = "tidewise"
REQUESTED, REFUSED = "RescaleRequested", "RescaleRefused"
_MOST_WAITING = 100
_LONGEST_MESSAGE = 1024  # of the API server
log = logging.getLogger(__name__)


class EventApi(Protocol):
    """Creates events in the namespace of the resources."""

    def create_event(self, event: Mapping[str, Any]) -> None:
        """Create an event.

        Raises:
            ApiError: it was not created.
        """


def form_event(resource: JobResource, reason: str, message: str, at_s: float, *, is_warning: bool) -> dict[str, Any]:
    """Return a core/v1 event on a resource; its uid is that by which ``kubectl describe`` finds it."""
    at = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    involved = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": resource.kind,
        "namespace": resource.namespace,
        "name": resource.name,
        "uid": resource.uid,
        "resourceVersion": resource.resource_version,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{resource.name[:200]}.tidewise-", "namespace": resource.namespace},
        "involvedObject": involved,
        "type": "Warning" if is_warning else "Normal",
        "reason": reason,
        "action": "Rescale",
        "message": message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def describe_change(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return which parallelism changes, by vertex.

    >>> describe_change({"a": 1, "b": 2}, {"a": 3, "b": 2})
    'parallelism of a: 1 -> 3'
    """
    changes = [
        f"{vertex}: {before.get(vertex, '?')} -> {count}"
        for vertex, count in sorted(after.items())
        if before.get(vertex) != count
    ]
    return f"parallelism of {', '.join(changes)}" if changes else "the same parallelism again"


class EventRecorder:
    """Sends events in a thread of its own; may be used by several threads."""

    def __init__(self, api: EventApi, clock: Callable[[], float]) -> None:
        self._api, self._clock = api, clock
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._has_failed = False

    def record(self, resource: JobResource, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Send an event on a resource soon; returns at once."""
        try:
            self._waiting.put_nowait(form_event(resource, reason, message, self._clock(), is_warning=is_warning))
        except queue.Full:  # an API server that replies slowly
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_all, daemon=True, name="kubernetes-events")
                self._thread.start()

    def wait(self) -> None:
        """Wait until all events were sent, or given up."""
        self._waiting.join()

    def _send_all(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                self._api.create_event(event)
                self._has_failed = False
            except Exception as error:  # the thread has to live on
                self._complain(error)
            finally:
                self._waiting.task_done()

    def _complain(self, error: Exception) -> None:
        if not self._has_failed:  # once, until one is taken again
            is_forbidden = isinstance(error, ApiRefusedError) and error.status == 403
            remedy = "; apply the rbac.yaml that tidewise manifests writes" if is_forbidden else ""
            log.warning("no Kubernetes event: %s%s", error, remedy)
        self._has_failed = True
