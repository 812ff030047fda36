"""A Redis server on loopback that writes nothing to the disk."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machine_programs import find_program
from waiting import free_port, wait_until

from lab.local_flink.processes import end_process, start_process

HOST = "127.0.0.1"


@contextmanager
def local_redis(folder: Path) -> Iterator[str]:
    """Run a server; gives the URL of its first database.

    Raises:
        AssertionError: it is not installed, or does not start.
    """
    port = free_port()
    folder.mkdir(parents=True)
    command = [find_program("redis-server", "redis-server"), "--bind", HOST, "--port", str(port)]
    server = start_process([*command, "--save", "", "--appendonly", "no", "--dir", str(folder)], folder / "log", {})
    try:
        assert wait_until(lambda: _answers(port), 30), (folder / "log").read_text()
        yield f"redis://{HOST}:{port}/0"
    finally:
        end_process(server)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16) == b"+PONG\r\n"
    except OSError:
        return False
