"""Pinning a job to a parallelism, and taking the pin off."""

from __future__ import annotations

from include.control.controlled_lake import is_controlled
from include.control.interventions import Intervention, UserAction, record_intervention
from include.control.pins import PersonalPin, PinStore, find_pin
from include.settings import Settings


class NotPinnedError(ValueError):
    """It was not done; the message says why."""


def pin_job(settings: Settings, pin: PersonalPin, now_s: float) -> bool:
    """Write a pin; returns whether a controller works on this lake and will read it.

    Raises:
        NotPinnedError: the settings say otherwise.
        StoreUnreadableError: it was not written.
    """
    check_pin(settings, pin.cluster, pin.job, pin.parallelism)
    PinStore(settings.paths.lake).write(pin)
    scope, detail = f"{pin.cluster}/{pin.job}", f"all operators at {pin.parallelism}"
    one = Intervention(now_s, UserAction.PIN, scope, pin.by, pin.reason, detail, until_s=pin.until_s)
    record_intervention(settings.paths.lake, one)
    return is_controlled(settings.paths.lake, pin.cluster, now_s)


def unpin_job(settings: Settings, cluster: str, job: str, *, by: str, reason: str, now_s: float) -> PersonalPin:
    """Take a job's pin off, and return it.

    Raises:
        NotPinnedError: no person has pinned it.
        StoreUnreadableError: it may still be there.
    """
    store = PinStore(settings.paths.lake)
    pin = find_pin(store.read(now_s).pins, cluster, job)
    if pin is None:
        raise NotPinnedError(f"no person has pinned {cluster}/{job}")
    store.take_off(cluster, job)
    detail = f"was at {pin.parallelism}{f' by {pin.by}' if pin.by else ''}"
    record_intervention(
        settings.paths.lake, Intervention(now_s, UserAction.UNPIN, f"{cluster}/{job}", by, reason, detail)
    )
    return pin


def check_pin(settings: Settings, cluster: str, job: str, parallelism: int) -> None:
    """Refuse a pin that the settings would not let through.

    Raises:
        NotPinnedError: it is outside of their limits, or they pin the job themselves.
    """
    of_job, of_cluster = settings.job_limits(cluster, job), settings.cluster(cluster)
    if of_job.pin is not None:
        raise NotPinnedError(f'limits.jobs."{cluster}/{job}".pin is in the settings, and goes before')
    most = [one for one in (settings.limits.slots_max, of_cluster.slots_max, of_job.slots_max) if one is not None]
    least = [one.slots_min for one in (settings.limits, of_cluster.limits, of_job) if one.slots_min is not None]
    if not max([1, *least]) <= parallelism <= min(most):
        raise NotPinnedError(f"the settings allow {max([1, *least])} to {min(most)} slots, and not {parallelism}")
