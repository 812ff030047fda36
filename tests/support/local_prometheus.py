"""A real Prometheus on loopback: scrapes some ports, or serves blocks that promtool made."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.local_flink.cluster import free_ports
from lab.local_flink.processes import end_process, start_process
from tools.test_parts import PartMissingError, find_prometheus, find_victoria_metrics


def prometheus_folder() -> Path:
    """The folder with its programs; the test is skipped, by name, where there is none."""
    try:
        return find_prometheus()
    except PartMissingError as error:
        pytest.skip(str(error))


@contextmanager
def running_prometheus(
    work_dir: Path, targets: Sequence[int] = (), scrape_every_s: int = 1, options: Sequence[str] = ()
) -> Iterator[str]:
    """Run Prometheus; yields its address."""
    folder = prometheus_folder()
    (port,) = free_ports(1)
    work_dir.mkdir(parents=True, exist_ok=True)
    hosts = ", ".join(f"'127.0.0.1:{target}'" for target in targets)
    scrape = f"  - job_name: flink\n    static_configs:\n      - targets: [{hosts}]\n" if targets else ""
    (work_dir / "prometheus.yml").write_text(
        f"global:\n  scrape_interval: {scrape_every_s}s\n  scrape_timeout: {scrape_every_s}s\n"
        + (f"scrape_configs:\n{scrape}" if scrape else "")
    )
    command = [str(folder / "prometheus"), f"--config.file={work_dir / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={work_dir / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    command += ["--storage.tsdb.retention.time=10y", "--log.level=warn", *options]
    process = start_process(command, work_dir / "prometheus.log", {"GOMAXPROCS": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(f"{url}/-/ready", process, work_dir / "prometheus.log")
        yield url
    finally:
        end_process(process)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(log.read_text())


@contextmanager
def running_victoria_metrics(work_dir: Path, openmetrics: Path) -> Iterator[str]:
    """Run VictoriaMetrics with a history; yields its address."""
    try:
        program = find_victoria_metrics()
    except PartMissingError as error:
        pytest.skip(str(error))
    (port,) = free_ports(1)
    command = [str(program), f"-storageDataPath={work_dir / 'data'}", f"-httpListenAddr=127.0.0.1:{port}"]
    command += ["-retentionPeriod=100y", "-memory.allowedBytes=200MB", "-loggerLevel=ERROR"]
    process = start_process(command, work_dir / "victoria.log", {"GOMAXPROCS": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(f"{url}/health", process, work_dir / "victoria.log")
        lines = [line for line in openmetrics.read_text().splitlines() if not line.startswith("#")]
        content = "".join(f"{line}000\n" for line in lines).encode()  # it takes milliseconds
        for path, body in (("api/v1/import/prometheus", content), ("internal/force_flush", b"")):
            with urllib.request.urlopen(urllib.request.Request(f"{url}/{path}", body, method="POST"), timeout=60):
                pass
        yield url
    finally:
        end_process(process)


def fill(work_dir: Path, openmetrics: Path) -> None:
    """Make blocks of history with promtool, for a server that is started afterwards."""
    command = [str(prometheus_folder() / "promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    command += ["--max-block-duration=24h", str(openmetrics), str(work_dir / "data")]
    subprocess.run(command, check=True, capture_output=True)
