"""Whatever loads can be written down, loaded again, and started with: in every stage's own task object."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin

from examples import TIMES
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from controller.view.recent_files import polls_kept
from include.policy_catalogue import catalogue
from include.settings import Cluster, Planner, Settings, SettingsError, check_settings
from include.settings.refusals import model_in
from include.spark.submission import anchor_paths
from include.stage_names import Stage
from include.stage_request import StageRequest
from lab.profiling.profiling import profiling_options
from lab.replay.candidate_policies import check_names
from lab.stages.inputs.subjects import history_frame
from lab.stages.learn.job_learning import PolicyLearnTask
from lab.stages.profiling.job_profile import ProfileTask
from models.policies.registry import policy
from spark_jobs.forecast.stage import forecast_task
from spark_jobs.plan.build_plan import dump_plan_settings
from spark_jobs.plan.job_plan import PlanTask
from spark_jobs.plan.slot_budget import list_budgets

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
POLICIES = sorted(catalogue())
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,12}", fullmatch=True)
JOBS = st.builds("{}/{}".format, NAMES, st.text("abcXYZ 0/-_é", min_size=1).filter(str.strip))
# Keys whose values are words of a kind of their own.
WORDS: dict[str, st.SearchStrategy[Any]] = {
    "master": st.sampled_from(["local", "local[1]", "local[*]", "spark://h:7077", "yarn", "k8s://https://h:443"]),
    "driver_memory": st.builds("{}g".format, st.integers(1, 99)),
    "tracking_uri": st.sampled_from(
        ["sqlite:///out/mlflow.db", "http://mlflow:5000", "mlruns", "postgresql://u:p@h/d"]
    ),
    "rest_url": st.sampled_from(["http://jobmanager:8081", "https://flink.example.com/one", "http://[::1]:8081"]),
    "policy": st.sampled_from(POLICIES),
    "planner.policies": st.dictionaries(JOBS, st.sampled_from(POLICIES), max_size=3),
    "backtest.policies": st.lists(
        st.sampled_from([*POLICIES, "clairvoyant", "planner_no_lead"]), min_size=1, max_size=3
    ),
    "advise.policies": st.lists(st.sampled_from(POLICIES), min_size=1, max_size=3),
    "currency": st.sampled_from(["USD", "EUR"]),
    "jobs": st.sampled_from([".*", "prod/", "[a-z]+/orders"]),
    "time_zones": st.dictionaries(NAMES | JOBS, st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]), max_size=2),
    "holidays": st.dictionaries(NAMES, st.lists(st.dates().map(str), max_size=2), max_size=2),
    "adapter": st.sampled_from(["simulated", "mine.adapters:cluster"]),
    "connection_id": st.just("spark_default"),
    "registered_model": NAMES,
    "looser_jobs": st.nothing(),  # names what other sections have
    "time_zone": st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    "cron": st.sampled_from(["0 22 * * *", "30 8 * * 1-5", "0 0 1 * *"]),
    "duration_s": st.integers(1, 40_000),
    "pin": st.integers(1, 99) | st.dictionaries(st.text(min_size=1), st.integers(1, 99), min_size=1, max_size=2),
    "pin_until": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    "slots_min": st.integers(1, 4),
    # Keys that go with others, mostly drawn so that they do.
    "planner.bin_s": st.sampled_from([60, 300, 600, 3600, 7000]),
    "forecast.bin_s": st.sampled_from([10, 300, 900, 3600, 700]),
    "planner.horizon_h": st.integers(1, 26),
    "forecast.horizon_h": st.integers(22, 168),
    "window_s": st.sampled_from([15, 60, 300, 3600]),
    "clusters.poll_every_s": st.floats(1.0, 20.0),
    "rate_steps": st.integers(2, 70),
    "confirm_timeout_s": st.floats(4.0, 1000.0),
    **dict.fromkeys(
        ("collect", "train", "plan", "apply"), st.sampled_from(["*/5 * * * *", "0 9-17 * * 1-5", "7 3 * * *"])
    ),
    **dict.fromkeys(("ingest", "backtest"), st.sampled_from(["5 * * * *", "0 4 * * 0"])),
}


def values_of(path: str, annotation: Any, limits: dict[str, float]) -> st.SearchStrategy[Any]:
    """Draw a value of a key from its type and bounds."""
    for name in (path, path.rpartition(".")[2]):
        if name in WORDS:
            return WORDS[name]
    kinds = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    kind = kinds[0]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(int(low or 0), int(high or 0))
    if kind is float:
        return st.floats(low, high, exclude_min="gt" in limits, exclude_max="lt" in limits)
    return st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).filter(str.strip)


def section(model: type[BaseModel], path: str = "") -> st.SearchStrategy[dict[str, Any]]:
    """Draw some keys of a section."""
    optional: dict[str, st.SearchStrategy[Any]] = {}
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    for name, field in model.model_fields.items():
        if field.frozen:  # a constant
            continue
        inside, at = model_in(field.annotation), f"{path}.{name}".lstrip(".")
        limits = {
            limit: getattr(one, limit)
            for one in field.metadata
            for limit in ("ge", "gt", "le", "lt")
            if hasattr(one, limit)
        }
        if at == "policies":
            optional[name] = st.fixed_dictionaries(
                {}, optional={"conttune_a3": st.fixed_dictionaries({}, optional={"alpha": st.integers(0, 9)})}
            )
        elif inside is None:
            optional[name] = values_of(at, field.annotation, limits)
        elif inside is field.annotation:
            optional[name] = section(inside, at)
        else:
            optional[name] = st.dictionaries(NAMES, section(inside, at), max_size=2)
    drawn = {name: one for name, one in optional.items() if not one.is_empty}
    always = {name: drawn.pop(name) for name in required}
    return st.fixed_dictionaries(always, optional=drawn)


def named_jobs(values: dict[str, Any]) -> dict[str, Any]:
    """Give the drawn jobs of the limits to the drawn clusters."""
    limits, clusters = values.get("limits", {}), sorted(values.get("clusters", {}))
    if "jobs" not in limits:
        return values
    of_cluster = {f"{clusters[0]}/{job}": one for job, one in limits["jobs"].items()} if clusters else {}
    return values | {"limits": limits | {"jobs": of_cluster}}


def loaded(values: dict[str, Any]) -> Settings | None:
    """Return settings; None for those that are refused, in one line."""
    try:
        return check_settings(values)
    except SettingsError as error:
        refused = str(error)
    assert "\n" not in refused
    return None


@given(section(Settings).map(named_jobs))
@settings(
    max_examples=25 * TIMES,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_what_loads_is_dumped_reloaded_and_starts_every_stage(values: dict[str, Any]) -> None:
    made = loaded(values)
    assume(made is not None)
    assert made is not None
    assert check_settings(json.loads(made.model_dump_json())) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert anchor_paths(made)
    starts_every_stage(made)


def starts_every_stage(made: Settings) -> None:
    """Build what each stage builds before it reads a table."""
    request = StageRequest(Stage.FORECAST, AS_OF)
    frame = forecast_task(made, request)
    assert frame.horizon_bins * frame.bin_s == made.forecast.horizon_h * 3600
    task = PlanTask(made, AS_OF, None)
    assert json.loads(dump_plan_settings(made))["planner"]
    assert all(total >= 1 for total in list_budgets(task).values())
    assert history_frame(made, AS_OF).history_bins > 0
    assert PolicyLearnTask(made, AS_OF, SimpleNamespace()).settings is made  # type: ignore[arg-type]
    assert ProfileTask(made, AS_OF, SimpleNamespace()).settings is made  # type: ignore[arg-type]
    assert polls_kept(made) >= 2
    assert profiling_options(made.profiling, 64, 100.0).rate_step_per_s > 0
    check_names(made.backtest.policies)
    for name in made.planner.policies_in_use:
        assert policy(name, made.parameters_of(name)).first_memory() is not NotImplemented
    planner = Planner(**json.loads(made.planner.model_dump_json()))
    assert planner == made.planner
    assert {name: Cluster(**one.model_dump(mode="json")) for name, one in made.clusters.items()} == made.clusters


def test_every_number_has_bounds() -> None:
    """Without them 1e308 would be accepted, and could not work."""

    def check(model: type[BaseModel]) -> int:
        result = 0
        for name, field in model.model_fields.items():
            inside = model_in(field.annotation)
            if field.frozen:  # a constant
                continue
            if inside is not None:
                result += check(inside)
            elif field.annotation in {int, float} or {int, float} & {*get_args(field.annotation)}:
                limits = {one for part in field.metadata for one in ("ge", "gt", "le", "lt") if hasattr(part, one)}
                assert limits & {"ge", "gt"}, name
                assert limits & {"le", "lt"}, name
                result += 1
        return result

    assert check(Settings) > 60
