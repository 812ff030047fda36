"""Pins: the parallelism at which persons want jobs to run, one small object per job below the lake.

A pin of the settings goes before: who writes it there means it for longer. What cannot be read as a pin holds all jobs,
as with holds: nobody knows then what a person wanted to stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from include.control.holds import EVERYTHING, Hold, UnreadableHold, hold_unread
from include.control.small_objects import ObjectFolder, StoreUnreadableError, object_name

FOLDER = "_control/pins"


@dataclass(frozen=True, slots=True)
class PersonalPin:
    """A person's demand that all operators of a job run at one parallelism.

    Attributes:
        cluster, job: whose.
        parallelism: of all its operators.
        by: who.
        reason: for others to read.
        since_s: epoch seconds.
        until_s: end; None: until it is taken off.
    """

    cluster: str
    job: str
    parallelism: int
    by: str = ""
    reason: str = ""
    since_s: float = 0.0
    until_s: float | None = None

    def is_over(self, now_s: float) -> bool:
        """Whether it has ended."""
        return self.until_s is not None and now_s >= self.until_s


@dataclass(frozen=True, slots=True)
class ActivePins:
    """The pins in force, and a hold on everything for each that cannot be read."""

    pins: tuple[PersonalPin, ...] = ()
    holds: tuple[Hold, ...] = ()


class PinStore:
    """The pins below a lake."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)

    def write(self, pin: PersonalPin) -> None:
        """Write a pin, in the place of the job's earlier one; raises :class:`StoreUnreadableError`."""
        text = json.dumps(asdict(pin), ensure_ascii=False, allow_nan=False)
        self._folder.write(object_name(f"{pin.cluster}/{pin.job}"), text.encode())

    def take_off(self, cluster: str, job: str) -> None:
        """Delete a job's pin; raises :class:`StoreUnreadableError`."""
        self._folder.delete(object_name(f"{cluster}/{job}"))

    def read(self, now_s: float) -> ActivePins:
        """Return the pins in force at a time, epoch seconds."""
        try:
            contents = self._folder.read_all()
        except StoreUnreadableError as error:
            return ActivePins(holds=(hold_unread("pins", error),))
        read = {name: _decode(content) for name, content in contents.items()}
        pins = [one for one in read.values() if one is not None and not one.is_over(now_s)]
        broken = [name for name, one in read.items() if one is None]
        holds = [
            UnreadableHold(
                EVERYTHING, f"the file {name} in {FOLDER} is no pin that could be read", remedy=f"remove {name}"
            )
            for name in broken
        ]
        return ActivePins(tuple(pins), tuple(holds))


def find_pin(pins: Iterable[PersonalPin], cluster: str, job: str) -> PersonalPin | None:
    """Return the pin of a job."""
    return next((one for one in pins if (one.cluster, one.job) == (cluster, job)), None)


def _decode(content: bytes) -> PersonalPin | None:
    try:
        result = PersonalPin(**json.loads(content))
        is_usable = (
            all(isinstance(one, str) and one for one in (result.cluster, result.job))
            and isinstance(result.by, str)
            and isinstance(result.reason, str)
            and type(result.parallelism) is int
            and result.parallelism >= 1
            and isinstance(result.since_s, float | int)
            and isinstance(result.until_s, float | int | None)
        )
    except (ValueError, TypeError, RecursionError):
        return None
    return result if is_usable else None
