"""Ends of jobs beside deployments: what Flink shows alike."""

from __future__ import annotations

import pytest

from models.observing.job_ends import JobLifetime, goes_on

RAN_MS = 1_000_000
ENDED_MS = RAN_MS + 3_600_000
UNKNOWN = JobLifetime()


def went_on(former: JobLifetime, later: JobLifetime = UNKNOWN, pause_s: float = 60.0) -> bool:
    return goes_on(former, later, ran_since_ms=RAN_MS, running_ms=ENDED_MS + round(1000 * pause_s))


def ended(state: str = "FINISHED", **more: object) -> JobLifetime:
    return JobLifetime(end_state=state, ended_ms=ENDED_MS, **more)


def test_a_run_without_an_end_was_interrupted():
    assert went_on(JobLifetime(), pause_s=1e6)


@pytest.mark.parametrize(("pause_s", "is_deployment"), [(900, True), (901, False)])
def test_a_cancelled_job_that_soon_ran_again_was_deployed(pause_s, is_deployment):
    assert went_on(ended("CANCELED"), pause_s=pause_s) is is_deployment


@pytest.mark.parametrize(("before_end_s", "is_deployment"), [(60, True), (61, False), (-60, True)])
def test_a_job_that_finished_with_a_savepoint_goes_on(before_end_s, is_deployment):
    former = ended(savepoint_ms=ENDED_MS - 1000 * before_end_s)
    assert went_on(former, JobLifetime(is_restored=False)) is is_deployment


@pytest.mark.parametrize("is_restored", [True, False])
def test_a_job_that_finished_goes_on_where_the_next_was_restored(is_restored):
    assert went_on(ended(), JobLifetime(is_restored=is_restored)) is is_restored


@pytest.mark.parametrize(("ran_s", "is_deployment"), [(240, True), (239, False)])
def test_where_nothing_tells_of_its_state_it_has_to_have_run_for_longer_than_the_pause(ran_s, is_deployment):
    former = JobLifetime(end_state="FINISHED", ended_ms=RAN_MS + 1000 * ran_s)
    running_ms = RAN_MS + 1000 * (ran_s + 60)
    assert goes_on(former, JobLifetime(), ran_since_ms=RAN_MS, running_ms=running_ms) is is_deployment


def test_a_batch_job_never_goes_on():
    assert not went_on(ended("CANCELED", is_batch=True))
