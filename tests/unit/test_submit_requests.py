"""Whatever a submission holds is in the request of every service once, as it is; the real classes: tests/long."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from services import SERVICES, list_leaves, open_service

from include.submitting.refusal import SubmitError
from include.submitting.spark_operator import SPARK_VERSION
from include.submitting.submitter import FETCHING, LAUNCHING, ShippedSubmission

REPOSITORY = Path(__file__).resolve().parents[2]
WITHIN_S = 7200.0
SHIPPED = ShippedSubmission(
    name="tidewise-plan",
    application="s3://b/a.py",
    package="s3://b/c.zip",
    settings="s3://b/s.json",
    jars=(),
    conf={"spark.team": "2"},
    environment={},
    arguments=(),
)
# Spaces, quotes, equal signs and dollars are what a command line would break.
TEXTS = st.lists(st.text("ab \"'=$\\{}-é", max_size=8), max_size=5)


@st.composite
def submissions(draw: st.DrawFn, scheme: str = "s3") -> ShippedSubmission:
    """Draw a submission in which each part has a mark of its own at its end."""

    def mark(kind: str) -> list[str]:
        return [f"{text}<{kind}{index}>" for index, text in enumerate(draw(TEXTS))]

    root = f"{scheme}://bucket/out/submitted"
    return ShippedSubmission(
        name="tidewise-plan",
        application=f"{root}/1/launch.py",
        package=f"{root}/2/tidewise-0123.zip",
        settings=f"{root}/3/tidewise-settings-0123.json",
        jars=tuple(f"{root}/4/own-{index}.jar" for index in range(draw(st.integers(0, 3)))),
        conf={f"spark.own.{index}": value for index, value in enumerate(mark("conf"))},
        environment={f"OWN_{index}": value for index, value in enumerate(mark("variable"))},
        arguments=tuple(mark("argument")),
    )


@pytest.mark.parametrize("service", SERVICES)
@settings(max_examples=25)
@given(shipped=submissions())
def test_every_part_is_in_the_request_once(service: str, shipped: ShippedSubmission) -> None:
    submitter = open_service(service)
    leaves = list(list_leaves(submitter.form_options(shipped, "spark_default", WITHIN_S)))
    of_settings = [shipped.settings]
    if submitter.application == LAUNCHING:  # it is told which of the files beside it the settings are
        of_settings += ["--settings", PurePosixPath(shipped.settings).name]
    for one in [*shipped.arguments, shipped.package, *shipped.jars, *of_settings]:
        assert leaves.count(one) == 1, one
    assert sum(one.endswith(shipped.application) for one in leaves) == 1
    for name, value in {**shipped.conf, **shipped.environment}.items():
        assert sum(one.endswith(f"{name}={value}") for one in leaves) == 1, name
    # In the order in which the stages read them.
    assert [one for one in leaves if one in shipped.arguments] == list(shipped.arguments)


@pytest.mark.parametrize("service", SERVICES)
@settings(max_examples=25)
@given(shipped=submissions())
def test_nothing_is_taken_from_the_submission_or_the_connection(service: str, shipped: ShippedSubmission) -> None:
    submitter = open_service(service)
    first = submitter.form_options(shipped, "spark_default", WITHIN_S)
    assert submitter == open_service(service)
    assert submitter.form_options(shipped, "spark_default", WITHIN_S) == first
    assert [value for name, value in first.items() if name.endswith("_conn_id")] == ["spark_default"]


@pytest.mark.parametrize("service", ["emr_serverless", "emr_steps"])
def test_the_operator_waits_for_as_long_as_the_stages_may_take(service: str) -> None:
    options = open_service(service).form_options(SHIPPED, "spark_default", WITHIN_S)
    assert options["waiter_delay"] * options["waiter_max_attempts"] >= WITHIN_S
    assert options["deferrable"] is False


def test_what_the_connection_says_otherwise_is_refused_by_name() -> None:
    with pytest.raises(SubmitError, match=r"new_cluster.spark_conf of the connection names spark.team, which Tidewise"):
        open_service("databricks").form_options(SHIPPED, "spark_default", WITHIN_S)
    operator = type(open_service("spark_operator"))(image="i", driver={"env": []})
    with pytest.raises(SubmitError, match=r"driver.env of the connection is set by Tidewise"):
        operator.form_options(SHIPPED, "spark_default", WITHIN_S)


def test_what_the_services_are_told_is_there() -> None:
    for script in (FETCHING, LAUNCHING):
        assert (REPOSITORY / "spark_jobs" / script).is_file()
    assert f"pyspark=={SPARK_VERSION}\n" in (REPOSITORY / "requirements.in").read_text()
