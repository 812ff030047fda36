"""What a Flink configuration tells of who adds slots and who rescales, without any I/O."""

from __future__ import annotations

from collections.abc import Mapping

# With them Flink itself asks for TaskManagers as jobs need them.  ``kubernetes.cluster-id`` alone is no proof: the
# operator's standalone mode sets it as well, with the target ``remote``.
_ELASTIC_TARGETS = ("kubernetes-", "yarn-")
_AUTOSCALERS = ("job.autoscaler.", "kubernetes.operator.job.autoscaler.")


def read_configuration(result: object) -> dict[str, str]:
    """Read ``/jobmanager/config``, a list of objects with key and value; what is none of them is left out."""
    entries = result if isinstance(result, list) else []
    return {
        str(entry["key"]): str(entry["value"])
        for entry in entries
        if isinstance(entry, dict) and "key" in entry and "value" in entry
    }


def read_user_configuration(result: object) -> dict[str, str]:
    """Read the parameters that a job has given itself from ``/jobs/:jobid/config``."""
    execution = result.get("execution-config") if isinstance(result, dict) else None
    given = execution.get("user-config") if isinstance(execution, dict) else None
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def is_configuration(result: object) -> bool:
    """Whether a ``/jobmanager/config`` reply is what Flink sends, so that a key which it lacks is not set."""
    entries = result if isinstance(result, list) else [None]
    return all(isinstance(entry, dict) and "key" in entry and "value" in entry for entry in entries)


def is_user_configuration(result: object) -> bool:
    """Whether a ``/jobs/:jobid/config`` reply tells the parameters that a job has given itself.

    Flink leaves them out of a job that waits for resources.
    """
    execution = result.get("execution-config") if isinstance(result, dict) else None
    return isinstance(execution, dict) and isinstance(execution.get("user-config"), dict)


def is_reactive(configuration: Mapping[str, str]) -> bool:
    """Whether each job takes all slots that there are; Flink then refuses any other parallelism."""
    return configuration.get("scheduler-mode", "").lower() == "reactive"


def is_elastic(configuration: Mapping[str, str]) -> bool:
    """Whether the cluster adds TaskManagers by itself when a job wants more slots than there are."""
    return configuration.get("execution.target", "").startswith(_ELASTIC_TARGETS) or is_reactive(configuration)


def active_autoscaler(configuration: Mapping[str, str]) -> str | None:
    """Return the key that switches another autoscaler on; None without one, or when it only advises.

    The Kubernetes operator takes these keys out of what it hands to Flink since its release 1.8, so that this finds an
    older one, a standalone autoscaler, or a job that names them itself; of others only their changes can be seen.
    """
    for prefix in _AUTOSCALERS:
        is_on = configuration.get(f"{prefix}enabled", "").lower() == "true"
        if is_on and configuration.get(f"{prefix}scaling.enabled", "true").lower() != "false":
            return f"{prefix}enabled"
    return None
