"""Policies are one entry each, built in or brought by a distribution of somebody else; both are planned with alike."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.entry_points import EntryPointError
from include.policy_catalogue import catalogue, entry_of, names_where
from include.policy_parameters import parameters_class, read_parameters
from include.settings import PROJECT, Settings, SettingsError, check_settings
from lab.replay.candidate_policies import list_names
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.registry import memory_codec, policy
from models.scheduling.demand import LEVELS
from spark_jobs.newest_rows import QUANTILES
from spark_jobs.plan.job_plan import PlanTask, plan_job
from spark_jobs.plan_inputs.job_state import JobState

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
POLICY = '''
    """Runs every operator with a fixed parallelism, and counts its decisions."""
    from dataclasses import dataclass, replace
    from typing import Annotated

    from pydantic import Field

    from models.policies.immediate_change import rescale_now

    @dataclass(frozen=True)
    class Options:
        workers: Annotated[int, Field(ge=1, le=64, description="parallelism of every operator")] = 2

    @dataclass(frozen=True)
    class Memory:
        decisions: int = 0

    class Fixed:
        def __init__(self, options: Options) -> None:
            self._options = options

        def first_memory(self) -> Memory:
            return Memory()

        def decide(self, situation, memory):
            wanted = dict.fromkeys(situation.graph.names, self._options.workers)
            after = replace(memory, decisions=memory.decisions + 1)
            return rescale_now(situation, wanted, f"{self._options.workers} workers, decision {after.decisions}"), after
'''
ENTRY = '''
    """What Tidewise has to know of it."""
    from include.policy_catalogue import PolicyEntry

    FIXED = PolicyEntry(
        "fixed_size.policy:Fixed", "a fixed size", observes=False, parameters="fixed_size.policy:Options"
    )
    NONE = "no entry"
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a distribution with a policy, and return a function that names its entry points."""
    package = tmp_path / "fixed_size"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "policy.py").write_text(textwrap.dedent(POLICY))
    (package / "entry.py").write_text(textwrap.dedent(ENTRY))
    about = tmp_path / "fixed_size-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-size\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def named(*points: str) -> None:
        (about / "entry_points.txt").write_text("[tidewise.policies]\n" + "\n".join(points) + "\n")
        catalogue.cache_clear()

    yield named
    catalogue.cache_clear()
    for module in [name for name in sys.modules if name.partition(".")[0] == "fixed_size"]:
        del sys.modules[module]


def plan(settings: Settings, memory: str | None = None, memory_policy: str | None = None) -> list[dict[str, object]]:
    """Plan a job ``src -> map`` of 10,000 records/s per instance that runs with 3 and gets 20,000 records/s."""
    grid = np.arange(1, 33)
    curve = CapacityCurve(grid, 10_000.0 * grid, 0.0 * grid, grid.copy(), 10_000.0 * grid, 10_000.0)
    silent = LatencyModel(np.zeros(0), np.zeros(0))
    models = JobModels({"map": curve}, {"src": 1.0, "map": 1.0}, RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5), silent)
    bundle = pack_models("v1", {("c", "orders"): models})
    as_of_s = int(AS_OF.timestamp())
    starts = as_of_s + 600 * np.arange(144)
    bins = {
        "operator": np.full(144, "src", object),
        "bin_start_s": starts,
        "bin_s": np.full(144, 600),
        "fallback": np.full(144, None, object),
        **{name: np.full(144, 20_000.0) for name in QUANTILES},
    }
    operators = [
        {"operator": "src", "upstream": [], "parallelism": 3},
        {"operator": "map", "upstream": ["src"], "parallelism": 3},
    ]
    state = JobState(
        cluster="c",
        job="orders",
        job_id="0" * 32,
        operators=operators,
        seen_at_s=as_of_s,
        observed_until_s=as_of_s,
        observed_after_s=None,
        windows=None,
        memory=memory,
        memory_policy=memory_policy,
        bins=bins,
        forecast_as_of_s=as_of_s,
        forecast_version="f0",
    )
    return plan_job(PlanTask(settings, AS_OF, SimpleNamespace(value=bundle)), state)  # type: ignore[arg-type]


def test_a_policy_of_another_project_is_planned_with(install) -> None:
    install("fixed_size = fixed_size.entry:FIXED")
    assert len(LEVELS) == len(QUANTILES)
    settings = check_settings({"planner": {"policy": "fixed_size"}, "policies": {"fixed_size": {"workers": 5}}})
    (row,) = plan(settings)
    assert (row["policy"], row["status"], row.get("refusal")) == (
        "fixed_size",
        "planned",
        None,
    )
    assert row["parallelism_to"] == {"src": 5, "map": 5}
    assert row["reason"] == "5 workers, decision 1"
    (again,) = plan(settings, str(row["memory"]), "fixed_size")  # what it remembers comes back
    assert again["reason"] == "5 workers, decision 2"
    (default,) = plan(check_settings({"planner": {"policies": {"c/orders": "fixed_size"}}}))
    assert default["parallelism_to"] == {"src": 2, "map": 2}
    assert "fixed_size" in names_where(catalogue(), observes=False)
    assert "fixed_size" in list_names()  # replays and backtests can have it, too
    assert check_settings({"backtest": {"policies": ["fixed_size"]}})


def test_what_its_entry_says_is_checked(install) -> None:
    install("fixed_size = fixed_size.entry:FIXED")
    for values, reported in (
        ({"policies": {"fixed_size": {"workers": 0}}}, "policies.fixed_size.workers = 0"),
        ({"policies": {"fixed_size": {"worker": 3}}}, "write policies.fixed_size.workers"),
        ({"planner": {"policy": "fixd_size"}}, "write fixed_size"),
    ):
        with pytest.raises(SettingsError, match=reported):
            check_settings(values)


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (["ds2 = fixed_size.entry:FIXED"], "'ds2' is of tidewise-lab and of fixed-size"),
        (["programme = fixed_size.entry:FIXED"], "'programme' is of Tidewise and of fixed-size"),
        (["Other-one = fixed_size.entry:FIXED"], "small letters"),
    ],
)
def test_a_name_that_no_entry_point_can_have_is_refused(install, points: list[str], told: str) -> None:
    install(*points)
    with pytest.raises(EntryPointError, match=told):
        catalogue()
    with pytest.raises(SettingsError, match=told):
        check_settings({})


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (["other = fixed_size.entry:NONE"], "is not a PolicyEntry"),
        (["other = fixed_size.entry:GONE"], "cannot be loaded"),
        (["other = fixed_size.gone:FIXED"], "cannot be loaded"),
    ],
)
def test_an_entry_point_that_is_no_policy_is_refused_where_it_is_named(install, points: list[str], told: str) -> None:
    install(*points)
    assert check_settings({})
    with pytest.raises(EntryPointError, match=told):
        entry_of("other")
    with pytest.raises(SettingsError, match=told):
        check_settings({"policies": {"other": {}}})


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_an_entry_describes_its_policy(name: str) -> None:
    entry, made = entry_of(name), policy(name)
    assert entry.title
    assert made.first_memory() == policy(name, {}).first_memory()
    codec = memory_codec(name)
    first = made.first_memory()
    assert first is None or codec.load(type(first), codec.dump(first)) == first
    assert hasattr(made, "learn") == entry.learns_nightly
    assert hasattr(first, "profile") == entry.needs_profile
    kind = parameters_class(name)
    if kind is not None:
        assert read_parameters(name, {}) == kind(
            **{key: getattr(read_parameters(name, {}), key) for key in entry.preset}
        )


@pytest.mark.parametrize("name", sorted(name for name, entry in catalogue().items() if entry.parameters))
def test_every_parameter_reaches_the_policy(name: str) -> None:
    """A parameter that differs from its default makes the constructor's options differ."""
    default = read_parameters(name, {})
    for key, value in _others(default).items():
        options = read_parameters(name, {key: value})
        assert getattr(options, key) == value
        assert options != default
        assert _options_of(policy(name, {key: value})) == options


def _others(options: object) -> dict[str, object]:
    """Return another allowed value for every number and switch."""
    result: dict[str, object] = {}
    for key in options.__dataclass_fields__:  # type: ignore[attr-defined]
        value = getattr(options, key)
        if not options.__dataclass_fields__[key].metadata.get("setting", True) or key == "weights":  # type: ignore[attr-defined]
            continue
        if isinstance(value, bool):
            result[key] = not value
        elif isinstance(value, int):
            result[key] = value + 1
        elif isinstance(value, float) and 0 < value < 1:
            result[key] = value * 0.9
        elif isinstance(value, float) and value < 1e6:
            rises = value > 1 or key == "target_rate_ratio"
            result[key] = value + 1.0 if rises else value / 2 + 0.25
    return result


def _options_of(made: object) -> object:
    for attribute in ("options", "_options", "config"):
        if hasattr(made, attribute):
            return getattr(made, attribute)
    raise AssertionError(f"{made} keeps no options")


def test_settings_of_every_policy_load_without_anything_heavy(tmp_path: Path) -> None:
    """DAG files load the settings each time that Airflow reads them."""
    file = tmp_path / "settings.toml"
    file.write_text("".join(f"[policies.{name}]\n" for name, entry in catalogue().items() if entry.parameters))
    code = """
import sys
from include.settings import load_settings
heavy = {"numpy", "scipy", "sklearn", "pandas", "pyspark", "mlflow"}
print(len(load_settings().policies), sorted(heavy & {*sys.modules}))
"""
    environment = os.environ | {"TIDEWISE_SETTINGS": str(file), "PYTHONPATH": str(PROJECT)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    with_parameters = [name for name, entry in catalogue().items() if entry.parameters]
    assert len(with_parameters) == len(catalogue()) - 3  # the forms of the planner and the programme have none
    assert result.stdout.split(maxsplit=1) == [str(len(with_parameters)), "[]\n"]
