"""Names of what planning reads, and how far back it looks."""

from __future__ import annotations

from datetime import timedelta

# A job unseen for longer has left; one seen since then, but not lately, is refused by name.
LOOKBACK = timedelta(days=2)
JOB = ["cluster", "job"]
LIMITS = ("max_parallelism", "partitions", "ship_strategies", "slot_sharing_group")
STALE = "stale: "  # how a fallback_reason begins that says so, and nothing else
QUANTILES = ["q10_per_s", "q50_per_s", "q90_per_s", "q95_per_s"]
OF_EVENTS = ["event_factor", "event_spread"]
"""What of a forecast's quantiles is that of an event; null in a bin without one."""
