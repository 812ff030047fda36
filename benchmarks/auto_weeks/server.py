"""The double of Flink's REST API on loopback, the clock beside it, and everything that happens meanwhile."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from benchmarks.auto_weeks.events import KILLS, Event, draw_trouble
from benchmarks.auto_weeks.job_double import STEP_S, JobDouble
from benchmarks.auto_weeks.replies import Replies
from include.utc import HOUR_S

_QUESTIONS = 25  # a controller is killed at one of so many
_LATER_S = 600.0


@dataclass(slots=True)
class Asked:
    """Requirements that somebody has put.

    Attributes:
        at_s: epoch seconds of the run.
        real_s: the same by the clock of this machine.
        by: ``controller`` or ``person``.
        bounds: vertex id -> upper bound.
        trouble: that it met.
        in_force_s: from when on it was; None where it never was.
    """

    at_s: float
    real_s: float
    by: str
    job_id: str
    bounds: dict[str, int]
    trouble: str = ""
    in_force_s: float | None = None


@dataclass(slots=True)
class Life:
    """A process of the controller, epoch seconds of the run; how it was killed, empty where it was not."""

    began_s: float
    ended_s: float | None = None
    killed: str = ""


@dataclass(slots=True)
class Happened:
    """An event, and what it came to; ``until_s`` is until when it lasts by itself."""

    event: Event
    at_s: float
    what: str
    until_s: float


@dataclass
class Run:
    """A run; its methods are called with :attr:`lock`.

    Args:
        job: that runs.
        events: that come, in the order of time.
        end_s: epoch seconds.
        slots_max: of the settings.
        seed: of the events.

    Attributes:
        changed_s: when somebody else gave the job another parallelism: it is to be left alone for a while.
    """

    job: JobDouble
    events: list[Event]
    end_s: float
    slots_max: int
    seed: int
    asked: list[Asked] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    polls_s: list[float] = field(default_factory=list)
    changed_s: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    controller: subprocess.Popen[bytes] | None = None
    url: str = ""

    def __post_init__(self) -> None:
        self.now_s, self.replies = self.job.start_s, Replies(self.job)
        self.draws = random.Random(f"events {self.seed}")
        self._delayed: list[tuple[float, Asked, dict[str, int]]] = []
        self._killed_in: int | None = None  # so many questions
        self._killed_at: str = ""

    def go_to(self, until_s: float) -> bool:
        """Let time go on; returns whether the controller, if there was one, still runs."""
        while self.events and self.events[0].at_s <= until_s:
            event = self.events.pop(0)
            self._step_to(event.at_s)
            self._begin(event)
            if self.lives and self.lives[-1].killed and self.lives[-1].ended_s is None:
                return False
        self._step_to(until_s)
        return True

    def _step_to(self, until_s: float) -> None:
        while self.job.now_s + STEP_S <= until_s:
            self.job.advance()
            for one in [one for one in self._delayed if one[0] <= self.job.now_s]:
                self._delayed.remove(one)
                self._put_in_force(*one[1:], one[0])
        self.now_s = max(self.now_s, until_s)

    def _begin(self, event: Event) -> None:
        """Let an event happen; one that cannot now comes ten minutes later."""
        cannot = {
            "upgrade": self.job.deployment is not None,
            "person": not self.job.is_listed,
            "controller killed": self._is_armed or self.controller is None,
        }
        if cannot.get(event.kind):
            self.events = sorted([Event(event.at_s + _LATER_S, event.kind), *self.events], key=lambda one: one.at_s)
            return
        what, until_s = getattr(self, f"_begin_{event.kind.replace(' ', '_')}")()
        self.happened.append(Happened(event, self.now_s, what, until_s))

    def _begin_upgrade(self) -> tuple[str, float]:
        draws, job = self.draws, self.job
        asked = draws.choice([job.asked, job.first, (draws.randint(1, self.slots_max),) * len(job.first)])
        job.deploy(draws.uniform(10, 60), draws.uniform(20, 180), draws.uniform(20, 50), asked)
        until_s = self.now_s + 300.0
        self.changed_s += [until_s] if asked != job.asked else []
        return f"{max(job.asked)} slots, then {max(asked)}", until_s

    def _begin_node_lost(self) -> tuple[str, float]:
        lasts_s = self.draws.uniform(120.0, 1200.0)
        self.job.lose_manager(self.now_s + lasts_s)
        return f"of {self.job.slots.managers + 1}, for {lasts_s / 60:.0f} min", self.now_s + lasts_s

    def _begin_no_slots(self) -> tuple[str, float]:
        lasts_s = self.draws.uniform(1.0, 3.0) * HOUR_S
        self.job.slots.none_before_s = max(self.job.slots.none_before_s, self.now_s + lasts_s)
        return f"none comes for {lasts_s / 60:.0f} min", self.now_s + lasts_s

    def _begin_person(self) -> tuple[str, float]:
        job, before = self.job, max(self.job.asked)
        count = self.draws.choice([one for one in range(1, self.slots_max + 1) if one != before])
        bounds = dict.fromkeys(job.vertices, count)
        asked = Asked(self.now_s, time.time(), "person", job.job_id, bounds)
        self.asked.append(asked)
        self.changed_s.append(self.now_s)
        self._put_in_force(asked, dict.fromkeys(bounds, 1), self.now_s)
        return f"asks for {count} slots instead of {before}", self.now_s

    def _begin_controller_killed(self) -> tuple[str, float]:
        moment = self.draws.choice(KILLS)
        if moment == KILLS[0]:
            self.kill(moment)
        elif moment == KILLS[1]:
            self._killed_in = self.draws.randint(1, _QUESTIONS)
        else:
            self._killed_at = moment
        return moment, self.now_s

    @property
    def _is_armed(self) -> bool:
        return self._killed_in is not None or bool(self._killed_at)

    def kill(self, moment: str) -> None:
        """Kill the controller."""
        self._killed_in, self._killed_at = None, ""
        if self.controller is not None and self.controller.poll() is None:
            self.controller.kill()
            self.lives[-1].killed = moment

    def is_killed_by_question(self) -> bool:
        """Note a question of the controller; returns whether it is killed at it."""
        if self._killed_in is not None:
            self._killed_in -= 1
            if self._killed_in == 0:
                self.kill(KILLS[1])
        return bool(self.lives and self.lives[-1].killed)

    def put(self, job_id: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Take a request of the controller; returns status and reply, a status of 0 for none."""
        bounds = {one: requirement["parallelism"] for one, requirement in body.items()}
        upper, lower = ({one: int(b[key]) for one, b in bounds.items()} for key in ("upperBound", "lowerBound"))
        asked = Asked(self.now_s, time.time(), "controller", job_id, upper, draw_trouble(self.draws))
        self.asked.append(asked)
        is_killed, moment = self._killed_at in KILLS[2:], self._killed_at
        if moment == KILLS[2]:
            self.kill(moment)
            return 0, None
        if asked.trouble in {"409", "500"}:
            return int(asked.trouble), {"errors": ["The double refuses this request."]}
        if asked.trouble == "delayed":
            self._delayed.append((self.now_s + self.draws.uniform(60, 400), asked, lower))
        elif asked.trouble != "dropped":
            status, error = self._put_in_force(asked, lower, self.now_s)
            if status != 200:
                return status, error
        if is_killed:
            self.kill(moment)
        return (0, None) if is_killed or asked.trouble else (200, {})

    def _put_in_force(self, asked: Asked, lower: dict[str, int], at_s: float) -> tuple[int, Any]:
        job = self.job
        if asked.job_id != job.job_id or not job.is_listed:
            return 404, {"errors": [f"Job {asked.job_id} not found"]}
        if set(asked.bounds) != set(job.vertices) or any(not 1 <= lower[one] <= asked.bounds[one] for one in lower):
            return 400, {"errors": ["The request is incomplete or its bounds contradict each other."]}
        job.ask(asked.bounds, lower)
        asked.in_force_s = at_s
        return 200, {}


@contextmanager
def serving(run: Run) -> Iterator[None]:
    """Answer for a run on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, _, query = self.path.partition("?")
            with run.lock, suppress(OSError):
                status, reply = _answer(run, f"{self.command} {path}", parse_qs(query), body)
                self.close_connection = status == 0
                if status:
                    content = json.dumps(reply).encode()
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

        do_GET = do_PUT = do_POST = answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, *arguments: object) -> None:
            """Write no line."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    run.url = f"http://127.0.0.1:{listener.server_address[1]}"
    try:
        yield
    finally:
        listener.shutdown()
        listener.server_close()


def _answer(run: Run, request: str, asked: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
    """Return status and reply; a status of 0 closes the connection without one."""
    if run.lives and run.lives[-1].killed:  # what was under way when the controller was killed
        return 0, None
    if request == "POST /clock":
        until_s = float(body)
        return (200, run.now_s) if run.go_to(until_s) else (0, None)
    method, _, path = request.partition(" ")
    if path == "/jobs/metrics":
        run.polls_s.append(run.now_s)
    if run.is_killed_by_question():
        return 0, None
    match method, path.strip("/").split("/"):
        case "PUT", ["jobs", job_id, "resource-requirements"]:
            return run.put(job_id, json.loads(body))
        case "POST", ["jobs", _, "checkpoints"]:
            run.job.trigger_checkpoint()
            return 202, {"request-id": "f" * 32}
    reply = run.replies.reply(path, asked, run.now_s)
    return (404, {"errors": [f"Not found: {path}"]}) if reply is None else (200, reply)
