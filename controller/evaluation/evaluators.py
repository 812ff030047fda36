"""Evaluates the jobs of a tick, each by itself: the controller's own process a share, other processes the rest."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from controller.view.job_view import EvaluationState, JobView
from include.settings import Settings

Decide = Callable[[JobView, EvaluationState, Settings, int], EvaluationState]
Job = tuple[JobView, EvaluationState]
"""A job, and what is kept of it."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
log = logging.getLogger(__name__)


class Evaluators:
    """Decides about jobs in several processes: the controller's own, and others that begin with the first jobs."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._others = self._open()

    def decide(
        self, decide: Decide, jobs: Sequence[Job], settings: Settings, now_s: int
    ) -> list[EvaluationState | None]:
        """Return what is to be kept of each job, None where that is what was; the same with any number of processes."""
        parts = [jobs[first :: self._processes] for first in range(self._processes)]
        work = partial(decide_each, decide, settings=settings, now_s=now_s)
        try:
            others = [self._others.submit(work, part) for part in parts[1:]]
            decided = [work(parts[0]), *(one.result() for one in others)]
        except BrokenExecutor:
            log.exception("a process that evaluates jobs has ended: the controller's own evaluates them all")
            self.close()
            self._others = self._open()
            decided = [work(part) for part in parts]
        return [decided[place % self._processes][place // self._processes] for place in range(len(jobs))]

    def close(self) -> None:
        """End the other processes."""
        self._others.shutdown(wait=False, cancel_futures=True)

    def _open(self) -> ProcessPoolExecutor:
        begin = multiprocessing.get_context("spawn")  # a fork of a process with threads may wait for ever
        return ProcessPoolExecutor(max(self._processes - 1, 1), begin, _begin)


def decide_each(decide: Decide, jobs: Sequence[Job], settings: Settings, now_s: int) -> list[EvaluationState | None]:
    """Return what is to be kept of each job, None where that is what was; a job that fails is left as it is."""
    result = []
    with _without_collections():
        for view, before in jobs:
            try:
                after = decide(view, before, settings, now_s)
            except Exception:  # a job's trouble is its own
                log.exception("%s/%s is not evaluated", view.cluster, view.job)
                after = replace(before, standing=None)
            result.append(None if after is before else after)
    return result


@contextmanager
def _without_collections() -> Iterator[None]:
    """What a decision makes is freed with it: collections, a twentieth of the time, would look through the fleet."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _begin() -> None:
    """Begin a process: it logs as the controller does, and ends with it whatever ends that."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stdout)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_controller, daemon=True).start()


def _end_with_controller() -> None:
    controller = multiprocessing.parent_process()
    if controller is not None:
        controller.join()
        os._exit(0)
