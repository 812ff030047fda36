"""Further processes of Flink beside a local cluster: ZooKeeper, a second JobManager, a history server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli.java_build import java_tool
from lab.local_flink.build import flink_version
from lab.local_flink.cluster import free_ports
from lab.local_flink.configuration import ClusterOptions, flink_configuration, java_command, write_configuration
from lab.local_flink.processes import end_process, start_process

_ZOOKEEPER = "org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"
LOOPBACK = "127.0.0.1"


@contextmanager
def running_zookeeper(flink_home: Path, folder: Path) -> Iterator[str]:
    """Run the ZooKeeper that Flink's own jar carries; gives its address."""
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "zoo.cfg"
    config.write_text(f"clientPort={port}\nclientPortAddress={LOOPBACK}\ndataDir={folder / 'data'}\n")
    options = ["-Xmx128m", "-Dzookeeper.admin.enableServer=false"]
    command = [java_tool("java"), *options, "-cp", f"{flink_home / 'lib'}/*", _ZOOKEEPER, str(config)]
    with _running(command, folder / "zookeeper.out"):
        yield f"{LOOPBACK}:{port}"


@contextmanager
def running_beside(
    entry_point: str, flink_home: Path, folder: Path, options: ClusterOptions, settings: Mapping[str, str]
) -> Iterator[str]:
    """Run a process of Flink with the configuration of a cluster on ports of its own; gives its REST address.

    Args:
        entry_point: its class.
        flink_home: folder of Flink's ``lib``.
        folder: of its configuration and log.
        options: of the cluster.
        settings: of this process alone; ``{port}`` in a value is its port.
    """
    rest, rpc = free_ports(2)
    own = {key: value.format(port=rest) for key, value in settings.items()}
    values = flink_configuration(options, {"rest": rest, "rpc": rpc}, folder) | own
    write_configuration(folder / "conf", values, flink_version(flink_home))
    command = java_command(java_tool("java"), flink_home, folder / "conf", folder / "process.log", entry_point)
    with _running(command, folder / "process.out"):
        yield f"http://{LOOPBACK}:{rest}"


@contextmanager
def _running(command: Sequence[str], output: Path) -> Iterator[None]:
    process = start_process(command, output, {})
    try:
        yield
    finally:
        end_process(process)
