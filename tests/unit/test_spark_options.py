"""Executors and a team's own options of Spark: what reaches Spark's configuration, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.own_python import find_python
from include.settings import Settings, SettingsError, check_settings
from include.settings.storage import KEYS
from include.spark.conf import spark_conf
from include.spark.jars import spark_jars

JARS = spark_jars(Path(__file__).resolve().parents[2] / ".cache" / "jars")
MASTERS = ("local[2]", "spark://host:7077", "yarn")
EXECUTORS = {"executors": 2, "executor_cores": 1, "executor_memory": "1g", "executor_python": "/opt/python"}


def conf_of(master: str, **spark: object) -> dict[str, str]:
    return spark_conf(Settings.model_validate({"spark": spark}), JARS, master)


def test_executors_are_as_the_settings_say() -> None:
    conf = conf_of("spark://host:7077", **EXECUTORS)
    assert (
        conf.items()
        >= {
            "spark.executor.instances": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "1g",
            "spark.pyspark.python": "/opt/python",
            "spark.pyspark.driver.python": find_python(),
        }.items()
    )
    assert not [name for name in conf_of("spark://host:7077") if name.startswith(("spark.executor.", "spark.pyspark"))]


@pytest.mark.parametrize("master", MASTERS)
def test_own_jars_and_java_options_are_added_to_ours_and_other_options_win(master: str) -> None:
    own = {"spark.jars": "/team/own.jar", "spark.driver.extraJavaOptions": "-Dteam=1", "spark.ui.enabled": "true"}
    ours, conf = conf_of(master), conf_of(master, options=own)
    assert conf["spark.driver.extraJavaOptions"] == f"{ours['spark.driver.extraJavaOptions']} -Dteam=1"
    assert conf["spark.ui.enabled"] == "true"
    before = [ours["spark.jars"]] if "spark.jars" in ours else []
    assert conf["spark.jars"] == ",".join([*before, "/team/own.jar"])
    unchanged = ours.keys() - own.keys()
    assert {name: conf[name] for name in unchanged} == {name: ours[name] for name in unchanged}


@pytest.mark.parametrize("name", KEYS)
def test_what_has_a_key_of_its_own_is_refused_with_it(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"is set by spark\.{KEYS[name]}"):
        check_settings({"spark": {"options": {name: "1"}}})


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.extensions",
        "spark.sql.session.timeZone",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.delta.logStore.s3a.impl",
    ],
)
def test_what_tables_depend_on_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="set by Tidewise"):
        check_settings({"spark": {"options": {name: "1"}}})


@pytest.mark.parametrize("name", ["executor.memory", "spark", "spark.", "spark.a b", "spark.a=b"])
def test_what_is_no_name_of_an_option_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="is no name of Spark's configuration"):
        check_settings({"spark": {"options": {name: "1"}}})
