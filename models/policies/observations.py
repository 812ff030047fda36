"""Observations of a job for a policy: its latest windows, as ``silver.observations`` holds them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np

from models.arrays import Bools, Floats, Ints


class Latency(StrEnum):
    """What a latency is of: end to end where the job sends latency markers, else the age of the backlog at sources."""

    END_TO_END = "end to end"
    BACKLOG_AGE = "backlog age"


@dataclass(frozen=True, slots=True)
class Observations:
    """Windows of one job, oldest first; W windows, O operators in the order of the job graph.

    Rates are of whole operators in records/s; NaN where Flink did not measure.  A source's processing rate is what it
    takes in.

    Attributes:
        window_start_s: (W,) epoch seconds.
        window_s: length of a window.
        parallelism: (W, O), 0 where it was not seen.
        processing_rate_per_s, output_rate_per_s: (W, O) observed, Eq. 3 and 4 of DS2.
        true_processing_rate_per_s, true_output_rate_per_s: (W, O) Eq. 5 and 6 of DS2; the first is PA of ContTune.
        target_data_rate_per_s: (W, O) records that arrive at a source; NaN for other operators.
        busy_share, idle_share, backpressured_share: (W, O) of the time of a mean subtask, 0..1.
        pending_records: (W, O) backlog at a source at the end of the window; NaN for other operators.
        latency_ms: (W, O) age of the oldest record that is not through, or what ``latency`` says.
        disturbed: (W,) the window overlaps a rescale or restart.
        latency: what ``latency_ms`` is of.
        outstanding_records: (W, O) backlog at a source and in the buffers behind it, in records of the source; NaN
            where that is not known, None where nothing tells it.
    """

    window_start_s: Ints
    window_s: int
    parallelism: Ints
    processing_rate_per_s: Floats
    output_rate_per_s: Floats
    true_processing_rate_per_s: Floats
    true_output_rate_per_s: Floats
    target_data_rate_per_s: Floats
    busy_share: Floats
    idle_share: Floats
    backpressured_share: Floats
    pending_records: Floats
    latency_ms: Floats
    disturbed: Bools
    latency: Latency = Latency.BACKLOG_AGE
    outstanding_records: Floats | None = None

    def __post_init__(self) -> None:
        windows = len(self.window_start_s)
        for name in MEASURES:
            if getattr(self, name).shape != self.parallelism.shape:
                raise ValueError(f"{name} must have the shape of parallelism, {self.parallelism.shape}")
        if self.parallelism.shape[0] != windows or self.disturbed.shape != (windows,):
            raise ValueError(f"parallelism and disturbed must have {windows} rows, one per window")
        if (np.diff(self.window_start_s) <= 0).any():
            raise ValueError("windows must be in order of time, each once")

    def __len__(self) -> int:
        """Return W."""
        return len(self.window_start_s)

    @classmethod
    def nothing(cls, operators: int = 0, window_s: int = 300) -> Observations:
        """Return no windows."""
        measures = {name: np.zeros((0, operators)) for name in MEASURES}
        starts, runs = np.zeros(0, np.int64), np.zeros((0, operators), np.int64)
        return cls(
            window_start_s=starts,
            window_s=window_s,
            parallelism=runs,
            disturbed=np.zeros(0, bool),
            latency=Latency.BACKLOG_AGE,
            **measures,
        )

    @property
    def waiting_records(self) -> Floats:
        """Return (W, O) the backlog of sources, with what is in the buffers where that is known."""
        if self.outstanding_records is None:
            return self.pending_records
        return np.where(np.isnan(self.outstanding_records), self.pending_records, self.outstanding_records)

    def since(self, time_s: float) -> Observations:
        """Return the windows that began at or after a time: those that a memory has not read yet."""
        return self.rows(np.flatnonzero(self.window_start_s >= time_s))

    def rows(self, index: Ints) -> Observations:
        """Return some of the windows."""
        retained = {name: getattr(self, name) for name in _NAMES}
        return Observations(
            **{name: one if name in _OF_ALL or one is None else one[index] for name, one in retained.items()}
        )


_NAMES = tuple(field.name for field in fields(Observations))
_OF_ALL = ("window_s", "latency")  # one value for all windows


MEASURES = (
    "processing_rate_per_s",
    "output_rate_per_s",
    "true_processing_rate_per_s",
    "true_output_rate_per_s",
    "target_data_rate_per_s",
    "busy_share",
    "idle_share",
    "backpressured_share",
    "pending_records",
    "latency_ms",
)
