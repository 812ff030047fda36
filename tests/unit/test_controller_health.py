"""The controller's port: whether ticks come in time, metrics, and what it refuses to listen on."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from flink_server import FakeJob, FlinkServer, serving
from prometheus_client.parser import text_string_to_metric_families
from signal_handlers import restoring_handlers
from waiting import free_port, wait_until

from controller import command, health_server
from controller.health import ControllerHealth
from controller.health_server import AddressError, parse_address, serve_health
from controller.leases.lease import Lease
from controller.tick import TickSummary
from controller.watching import watch_ticks
from include.settings import load_settings

LATE_AFTER_S = 180.0


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """Return the time, s."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> ControllerHealth:
    return ControllerHealth(clock, LATE_AFTER_S)


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples_of(text: str) -> dict[str, float]:
    return {
        one.name + "".join(f"[{value}]" for value in one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_health_is_503_until_the_first_tick_and_while_a_tick_is_late(clock: Clock, health: ControllerHealth) -> None:
    with serve_health(health, "127.0.0.1", 0) as port:
        status, text = ask(port, "/health")
        assert (status, json.loads(text)["status"]) == (503, "starting")
        health.note_tick(TickSummary(problems={"east": "another controller has the lease"}), 1e9, LATE_AFTER_S)
        clock.now_s += LATE_AFTER_S
        status, text = ask(port, "/health?verbose=1")
        assert (status, json.loads(text)) == (
            200,
            {
                "status": "ok",
                "last_tick_age_s": LATE_AFTER_S,
                "late_after_s": LATE_AFTER_S,
                "clusters_left_alone": {"east": "another controller has the lease"},
            },
        )
        clock.now_s += 0.2
        status, text = ask(port, "/health")
        assert (status, json.loads(text)["status"]) == (503, "late")
        health.note_tick(TickSummary(), 1e9, 60.0)
        clock.now_s += 61
        assert ask(port, "/health")[0] == 503  # by the settings as they are now


def test_metrics_count_what_ticks_did(health: ControllerHealth) -> None:
    health.note_tick(
        TickSummary(jobs=9, seen=8, decisions={"wait cooldown": 2}, faults=3, problems={"east": "slow"}, seconds=1.5),
        1_700_000_000.0,
        LATE_AFTER_S,
    )
    health.note_tick(TickSummary(jobs=9, seen=9, decisions={"wait cooldown": 1}, seconds=0.5), 1e9, LATE_AFTER_S)
    with serve_health(health, "127.0.0.1", 0) as port:
        status, text = ask(port, "/metrics")
        other = ask(port, "/metric")
    assert status == 200
    samples = samples_of(text)
    assert samples["process_resident_memory_bytes"] > 1e6
    own = {name.removeprefix("tidewise_controller_"): value for name, value in samples.items()}
    expected = {
        "tick_seconds_count": 2.0,
        "tick_seconds_sum": 2.0,
        "jobs": 9.0,
        "jobs_polled": 9.0,
        "decisions_total[wait cooldown]": 3.0,
        "unused_replies_total": 3.0,
        "cluster_left_alone[east]": 0.0,
        "process_last_tick_timestamp_seconds": 1e9,
    }
    assert {name: own[name] for name in expected} == expected
    assert other == (404, "there are /health and /metrics\n")


@pytest.mark.parametrize(
    ("text", "expected"), [("127.0.0.1:8090", ("127.0.0.1", 8090)), ("[::1]:0", ("::1", 0)), ("all:1", ("all", 1))]
)
def test_an_address_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["8090", ":8090", "host", "host:99999", "host:x", "a@host:1", "host:1/path", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="write host:port"):
        parse_address(text)


def test_a_port_that_is_taken_is_refused_by_name(health: ControllerHealth) -> None:
    with (
        serve_health(health, "127.0.0.1", 0) as port,
        pytest.raises(AddressError, match=f"127.0.0.1:{port} cannot be listened on: Address already in use"),
        serve_health(health, "127.0.0.1", port),
    ):
        pass


@pytest.mark.covers("harm slow-clients")
def test_slow_clients_keep_no_probe_out_and_take_few_descriptors(health: ControllerHealth) -> None:
    health.note_tick(TickSummary(), 1e9, LATE_AFTER_S)
    threads, files = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    slow = []
    with serve_health(health, "127.0.0.1", 0) as port:
        try:
            for _ in range(60):
                slow.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                slow[-1].sendall(b"GET /health HTTP/1.1\r\nX-A: ")
            assert ask(port, "/health")[0] == 200
            taken = len(list(Path("/proc/self/fd").iterdir())) - files - len(slow)
            assert taken <= health_server.CONNECTIONS_MAX + 5
            assert threading.active_count() - threads <= health_server.CONNECTIONS_MAX + 2
        finally:
            for one in slow:
                one.close()


@pytest.mark.covers("harm slow-clients")
def test_a_request_that_never_ends_is_ended(health: ControllerHealth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "WITHIN_S", 0.3)

    def send_slowly(client: socket.socket) -> None:
        client.sendall(b"GET /health HTTP/1.1\r\nX-A: ")
        for _ in range(200):
            client.sendall(b"a")
            time.sleep(0.05)

    with (
        serve_health(health, "127.0.0.1", 0) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as client,
        pytest.raises(OSError, match=r"reset|Broken pipe"),
    ):
        send_slowly(client)


@pytest.mark.parametrize(("error", "is_shown"), [(BrokenPipeError(), False), (ZeroDivisionError(), True)])
def test_what_goes_wrong_in_an_answer_is_shown_unless_a_client_has_gone(
    health: ControllerHealth,
    error: Exception,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> bytes:
        raise error

    monkeypatch.setattr(health, "metrics", fail)
    with serve_health(health, "127.0.0.1", 0) as port, pytest.raises(OSError, match="without response"):
        ask(port, "/metrics")
    assert (type(error).__name__ in capsys.readouterr().err) is is_shown


def test_after_the_end_nobody_listens(health: ControllerHealth) -> None:
    with serve_health(health, "127.0.0.1", 0) as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    assert not [one for one in threading.enumerate() if one.name == "health"]


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings of an installation in a folder of its own; signals stay the test runner's."""
    file = tmp_path / "tidewise.toml"
    file.write_text(
        f'[paths]\nraw = "{tmp_path}/raw"\nlake = "{tmp_path}/lake"\nout = "{tmp_path}/out"\n'
        f'[mlflow]\ntracking_uri = "sqlite:///{tmp_path}/mlflow.db"\n'
    )
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(file))
    with restoring_handlers():
        yield file


@pytest.mark.usefixtures("installation")
def test_the_command_refuses_an_address_that_cannot_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seconds", "1", "--listen", "8090"]) == command.EXIT_USAGE
    assert "no address to listen on" in capsys.readouterr().err


@pytest.mark.parametrize("one_tick", [["--once"], ["--watch"], ["--as-of", "2026-01-01T00:00:00Z"]])
def test_one_tick_has_no_port(one_tick: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([*one_tick, "--listen", "127.0.0.1:0"])
    assert "--listen is for a controller that goes on" in capsys.readouterr().err


def test_a_service_answers_while_it_goes_on_and_is_watched_from_outside(
    installation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it nobody ticks, beside it a second process says that it does, after it that it has ended."""
    port, replies, beside = free_port(), list[dict[str, object]](), list[int]()

    def ask_until_it_ticks() -> None:
        def is_ticking() -> bool:
            with suppress(OSError):
                replies.append(json.loads(ask(port, "/health")[1]))
            return bool(replies) and replies[-1]["status"] == "ok"

        if wait_until(is_ticking, 30):
            beside.append(watch_ticks(load_settings(), ["live"], time.time(), {}))
        os.kill(os.getpid(), signal.SIGTERM)

    with serving(FlinkServer(FakeJob())) as server:
        installation.write_text(f'{installation.read_text()}[clusters.live]\nrest_url = "{server.url}"\n')
        assert command.main(["--watch"]) == 1
        asking = threading.Thread(target=ask_until_it_ticks)
        asking.start()
        assert command.main(["--listen", f"127.0.0.1:{port}"]) == 0
        asking.join()
        assert command.main(["--watch"]) == 1
    assert beside == [0]
    printed = [line for line in capsys.readouterr().out.splitlines() if "cluster live" in line]
    assert len(printed) == 3
    assert "no controller has ever worked on it" in printed[0]
    assert "ticked" in printed[1]
    assert "has ended" in printed[2]


def test_a_port_that_is_taken_ends_the_command(installation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installation.write_text(f'{installation.read_text()}[clusters.live]\nrest_url = "http://127.0.0.1:9"\n')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command.main(["--seconds", "60", "--listen", f"127.0.0.1:{port}"]) == command.EXIT_USAGE
    assert "cannot be listened on" in capsys.readouterr().err


def test_where_the_lake_cannot_be_read_nobody_says_that_all_is_well(
    installation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installation.write_text(f'{installation.read_text()}[clusters.live]\nrest_url = "http://127.0.0.1:9"\n')
    table = installation.parent / "lake" / "ops" / "control_log" / "_delta_log"
    table.mkdir(parents=True)
    (table / "00000000000000000000.json").write_text("{}no log")
    assert command.main(["--watch"]) == 1
    assert "cannot be read, so nothing is known" in capsys.readouterr().err


def test_who_ticks_is_said_of_each_cluster_and_what_to_do_where_one_is_late(
    installation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("east", "north", "west")
    clusters = "".join(
        f'[clusters.{name}]\nrest_url = "http://127.0.0.1:{port}"\n' for port, name in enumerate(names, start=9)
    )
    installation.write_text(f"{installation.read_text()}{clusters}")
    lake = str(installation.parent / "lake")
    now_s = time.time()
    for name, late_s in (("east", 0.0), ("north", LATE_AFTER_S + 60)):
        assert Lease(lake, name, "host:1", lambda at_s=now_s - late_s: at_s, expiry_s=180.0).take()
    settings = load_settings()
    assert watch_ticks(settings, ["east"], now_s, {}) == 0
    assert capsys.readouterr().out == "controller: cluster east: host:1 ticked 0 s ago\n"
    assert watch_ticks(settings, ["east", "north"], now_s, {}) == 1
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.startswith("controller: cluster north: host:1 ticked 4 min ago; start it: ")
    for name in ("west", "nobody knows"):
        assert watch_ticks(settings, [name], now_s, {}) == 1
        assert capsys.readouterr().out.startswith(f"controller: cluster {name}: no controller has ever worked on it")


def has_ip_version_6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ip_version_6(), reason="this machine has no address ::1")
def test_an_address_of_ip_version_6_is_listened_on(health: ControllerHealth) -> None:
    with serve_health(health, "::1", 0) as port, socket.create_connection(("::1", port), timeout=5):
        pass


def test_an_address_that_is_not_of_this_machine_is_refused_with_the_systems_reason(health: ControllerHealth) -> None:
    with pytest.raises(AddressError, match=r"192\.0\.2\.1:0 cannot be listened on: Cannot assign requested address"):
        serve_health(health, "192.0.2.1", 0).__enter__()
