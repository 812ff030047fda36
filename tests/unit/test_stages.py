from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from include.settings import PROJECT
from include.stage_names import Stage
from include.stage_request import StageRequest, parse_requests
from include.utc import IntervalError
from lab.commands.spark_application import form_argv

AS_OF = datetime(2026, 11, 20, 19, tzinfo=UTC)


@pytest.mark.parametrize("stage", Stage)
def test_a_request_survives_the_command_line(stage):
    request = StageRequest(stage, AS_OF, datetime(2026, 11, 20, 18, tzinfo=UTC), AS_OF, "prod/word count")
    assert parse_requests(request.to_argv()) == (request,)


def test_the_jobs_to_train_survive_the_command_line():
    request = StageRequest(Stage.TRAIN, AS_OF, jobs="prod/(orders|word count)$")
    assert parse_requests(request.to_argv()) == (request,)
    assert "--jobs" not in " ".join(StageRequest(Stage.TRAIN, AS_OF).to_argv())


def test_only_ingest_asks_for_an_interval():
    (request,) = parse_requests(["ingest", "--as-of", "2026-11-20T19:00:00Z"])
    with pytest.raises(IntervalError, match="needs --start and --end"):
        _ = request.interval


def test_several_stages_are_asked_for_the_same_moment_in_their_order():
    argv = ["forecast", "plan", "report", "--as-of", "2026-11-20T19:00:00Z"]
    made = parse_requests(argv)
    assert made == tuple(StageRequest(stage, AS_OF) for stage in (Stage.FORECAST, Stage.PLAN, Stage.REPORT))
    assert form_argv(made) == argv


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["ingest"],
        ["plan", "cook", "--as-of", "2026-11-20T19:00:00Z"],
        ["cook", "--as-of", "2026-11-20T19:00:00Z"],
        ["plan", "--as-of", "x"],
    ],
)
def test_wrong_arguments_are_refused(argv, capsys):
    with pytest.raises((SystemExit, IntervalError)):
        parse_requests(argv)


@pytest.mark.parametrize("stage", Stage)
def test_no_stage_hides_a_module_of_python(stage):
    # Python puts the directory of launch.py, where the stages' folders lie, before its own modules.
    assert str(stage) not in sys.stdlib_module_names


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_has_a_module_of_its_name(stage):
    assert (PROJECT / "spark_jobs" / stage / "stage.py").is_file()
