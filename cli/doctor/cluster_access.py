"""Checks of a cluster's REST API: address, TLS, rights, version, latency, clock."""

from __future__ import annotations

import statistics
from email.utils import parsedate_to_datetime
from typing import Any

from cli.doctor.findings import Finding, error, ok, warning
from cli.doctor.probe import Probe, ProbeError, ProbeReply
from include.flink.versions import NEWEST_TRIED, OLDEST, read_version
from include.settings import Cluster, Ingest

SLOW_SHARE = 0.5
_SKEW_NOTED_SHARE = 0.1  # of a window


def check_address(part: str, probe: Probe) -> tuple[dict[str, Any] | None, Finding]:
    """Ask for ``/config``; return it, None where this is no Flink that lets us in."""
    try:
        reply = probe.get("/config")
    except ProbeError as problem:
        return None, error(part, problem.check, str(problem), problem.remedy)
    if reply.status in {401, 403, 407}:
        return None, error(part, "rights", *_describe_refusal(probe.url, reply.status))
    if not reply.is_ok or not isinstance(reply.payload, dict) or "flink-version" not in reply.payload:
        text = f"{probe.url}/config replies with {reply.status}, and not as Flink does"
        remedy = "is rest_url the JobManager's REST address, with the path of a proxy if there is one?"
        return None, error(part, "address", text, remedy)
    tls = ", certificate valid" if probe.url.startswith("https") else ""
    return dict(reply.payload), ok(part, "address", f"{probe.url} replies{tls}")


def _describe_refusal(url: str, status: int) -> tuple[str, str]:
    if status == 401:
        return (
            f"{url} wants to know who asks (401)",
            "write basic, bearer or a client certificate in the cluster's connection",
        )
    if status == 407:
        return f"the proxy before {url} wants to know who asks (407)", "write proxy_basic in the cluster's connection"
    text = f"{url} forbids what we ask for (403)"
    return text, "let this user GET /config, /overview, /jobs and PUT /jobs/:id/resource-requirements"


def check_version(part: str, config: dict[str, Any]) -> Finding:
    """Check that Flink can be rescaled through REST, from 1.18 on."""
    text, result = f"Flink {config.get('flink-version')}", read_version(config.get("flink-version"))
    if result is None:
        return warning(part, "version", f"{text}: no version that is known", "read the first plans as advice only")
    if result < OLDEST:
        remedy = "upgrade to Flink 1.18 or later; until then read the plans as advice"
        return error(part, "version", f"{text} cannot change parallelism through REST", remedy)
    if result > NEWEST_TRIED:
        newest = ".".join(map(str, NEWEST_TRIED))
        return warning(
            part, "version", f"{text} is newer than {newest}", "leave the mode at dry-run until you saw it work"
        )
    return ok(part, "version", text)


def check_latency(part: str, probe: Probe, requests: int, cluster: Cluster) -> Finding:
    """Check that a poll takes a small part of the time between two."""
    median_s = statistics.median(probe.latencies_s)
    poll_s = median_s * requests
    text = f"{1000 * median_s:.0f} ms a request, some {poll_s:.1f} s for a poll of {requests}"
    if poll_s > cluster.poll_every_s:
        remedy = (
            f"raise poll_every_s above {poll_s:.0f} (and window_s with it), or bring Tidewise nearer to the cluster"
        )
        return error(part, "latency", f"{text}: longer than poll_every_s = {cluster.poll_every_s:g}", remedy)
    if poll_s > SLOW_SHARE * cluster.poll_every_s:
        return warning(
            part, "latency", text, f"raise poll_every_s = {cluster.poll_every_s:g}, so that polls do not meet"
        )
    return ok(part, "latency", text)


def find_skew_s(*replies: ProbeReply) -> float | None:
    """Return by how much the cluster's clock is ahead of ours; None where no reply tells.

    By the ``Date`` header, which a proxy sets, and by ``now`` of a reply to ``/jobs/:id``, which Flink sets itself; of
    several the largest.
    """
    result = [skew for reply in replies for skew in (_read_date(reply), _read_now(reply)) if skew is not None]
    return max(result, key=abs, default=None)


def _read_date(reply: ProbeReply) -> float | None:
    try:
        return parsedate_to_datetime(reply.headers["date"]).timestamp() + 0.5 - reply.at_s  # it has whole seconds
    except (KeyError, ValueError):
        return None


def _read_now(reply: ProbeReply) -> float | None:
    now_ms = reply.payload.get("now") if isinstance(reply.payload, dict) else None
    return None if now_ms is None else float(now_ms) / 1000.0 - reply.at_s


def check_clock(part: str, skew_s: float | None, cluster: Cluster, ingest: Ingest) -> Finding:
    """Check that the cluster's clock and ours agree: times that Flink tells are moved by the difference of an hour."""
    if skew_s is None:
        return ok(part, "clock", "not known: no Date header and no job")
    text = f"the cluster's clock is {abs(skew_s):,.0f} s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
    if abs(skew_s) > ingest.max_clock_skew_s:
        remedy = "set both clocks by NTP (timedatectl); checkpoint ages and restarts would be wrong by as much"
        return error(part, "clock", text, remedy)
    if abs(skew_s) > _SKEW_NOTED_SHARE * cluster.window_s:
        return warning(part, "clock", text, "set both clocks by NTP (timedatectl)")
    return ok(part, "clock", "agrees with this machine's")
