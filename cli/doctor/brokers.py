"""Checks of Kafka: whether its brokers can be reached."""

from __future__ import annotations

import socket

from cli.doctor.findings import Finding, error, ok, warning

PART = "Kafka"
TIMEOUT_S = 5.0


def check_brokers(bootstrap: str) -> Finding:
    """Check that a broker accepts connections, of ``host:port`` separated by commas."""
    reached, faults = [], []
    for one in bootstrap.split(","):
        host, _, port = one.strip().rpartition(":")
        try:
            socket.create_connection((host, int(port)), TIMEOUT_S).close()
            reached.append(one.strip())
        except (OSError, ValueError) as problem:
            faults.append(f"{one.strip()} ({problem})")
    remedy = "correct the brokers' addresses, and is there a firewall or a NetworkPolicy between?"
    if not reached:
        return error(PART, "brokers", f"none can be reached: {', '.join(faults)}", remedy)
    if faults:
        return warning(PART, "brokers", f"not reached: {', '.join(faults)}", remedy)
    return ok(PART, "brokers", f"reached: {', '.join(reached)}")
