"""`tidewise doctor` and `tidewise init` as commands: exit codes, JSON, no secrets, and files that are never lost."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from pretended_server import answer_from, flink_answers, serve
from rich.console import Console

from cli import init
from cli.arguments import CommandParser
from cli.doctor import __main__ as doctor
from cli.doctor import settings_file
from cli.doctor.brokers import check_brokers
from cli.doctor.checkup import CheckOptions, _run, run_checks
from cli.doctor.findings import Finding, Level, error, hide_credentials, list_names, warning
from cli.doctor.machine import check_disk, check_interpreter, check_jars, check_java, check_shared_libraries
from include.settings import SETTINGS_FILE_VARIABLE, Paths, Settings, Spark, check_settings


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    """A settings file to be, with every path below a folder of its own."""
    for name in ("LAKE", "RAW", "OUT"):
        monkeypatch.setenv(f"TIDEWISE__PATHS__{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("TIDEWISE__MLFLOW__TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "tidewise.toml"))
    return tmp_path / "tidewise.toml"


def test_init_writes_what_the_doctor_accepts(file, capsys):
    with serve(answer_from(flink_answers())) as url:
        assert init.main(["--rest-url", url, "--name", "prod", "--yes", "--file", str(file)]) == 0
        written = tomllib.loads(file.read_text())
        assert written["clusters"]["prod"] == {"rest_url": url, "slots_max": 64}
        assert written["limits"] == {"mode": "dry-run"}
        assert check_settings(written)
        assert len(file.read_text().splitlines()) == 10
        capsys.readouterr()
        code = doctor.main(["--json", "--no-airflow"])
        result = json.loads(capsys.readouterr().out)
    assert result["counts"]["error"] == 0, result
    assert code == 0
    assert {"Python", "Java", "settings", "lake", "MLflow", "cluster prod"} <= {
        one["part"] for one in result["findings"]
    }


@pytest.mark.parametrize(
    ("overview", "paid"),
    [
        ({"taskmanagers": 3, "jobs-running": 1}, {"taskmanager_slots": 4}),
        ({"taskmanagers": 3, "jobs-running": 2}, {}),  # another job may take what is left of a TaskManager
        ({"taskmanagers": 5, "jobs-running": 1}, {}),  # they are not alike
        ({"taskmanagers": 12, "jobs-running": 1}, {}),
        ({"taskmanagers": 0, "jobs-running": 1}, {}),
        ({"jobs-running": 1}, {}),
    ],
)
def test_init_says_where_a_job_pays_whole_taskmanagers(file, overview, paid):
    answers = flink_answers() | {"/overview": (200, {"slots-total": 12, "slots-available": 2, **overview})}
    with serve(answer_from(answers)) as url:
        assert init.main(["--rest-url", url, "--name", "prod", "--yes", "--file", str(file)]) == 0
    written = tomllib.loads(file.read_text())
    assert written["clusters"]["prod"] == {"rest_url": url, "slots_max": 12, **paid}
    assert check_settings(written)


def test_init_asks_a_person(file):
    answers = iter(["", "orders-prod"])
    asked = []

    def ask(question: str) -> str:
        asked.append(question)
        return next(answers)

    with serve(answer_from(flink_answers())) as url:
        parser = CommandParser()
        init._add_arguments(parser)
        options = parser.parse_args(["--file", str(file)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(init, "DEFAULT_URL", url)
            assert init.run(options, Console(), ask) == 0
    assert url in asked[0]
    assert next(iter(tomllib.loads(file.read_text())["clusters"])) == "orders-prod"


MINE = '# mine\n[limits]\nmode = "auto"  # tried for a month\n[clusters.old]\nrest_url = "http://old:8081"'


def test_init_adds_a_cluster_in_dry_run_to_settings_that_are_there(file, capsys):
    file.write_text(MINE)
    assert init.main(["--offline", "--yes", "--name", "new", "--file", str(file)]) == 0
    assert file.read_text().startswith(f"{MINE}\n")
    assert file.with_name("tidewise.toml.before").read_text() == MINE
    settings = check_settings(tomllib.loads(file.read_text()))
    assert (settings.mode_of("old"), settings.mode_of("new")) == ("auto", "dry-run")
    assert settings.cluster("new").rest_url == "http://localhost:8081"
    capsys.readouterr()
    before = file.read_text()
    assert init.main(["--offline", "--yes", "--name", "new", "--file", str(file)]) == 1
    assert "has a cluster new already" in capsys.readouterr().err
    assert file.read_text() == before


def test_init_replaces_a_file_only_where_it_is_asked_to(file, capsys):
    file.write_text("clusters = 3 ?")
    assert init.main(["--offline", "--yes", "--file", str(file)]) == 1
    assert "--force" in capsys.readouterr().err
    assert init.main(["--offline", "--yes", "--force", "--file", str(file)]) == 0
    assert file.with_name("tidewise.toml.before").read_text() == "clusters = 3 ?"
    assert "[clusters.flink]" in file.read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rest-url", "ftp://x"], "must begin with http://"),
        (["--rest-url", "http://user:planted@host:8081"], "must not hold credentials"),
        (["--rest-url", "http://127.0.0.1:9"], "nothing listens"),
        (["--name", "no/such", "--offline"], "cannot name a cluster"),
    ],
)
def test_init_refuses_what_cannot_work(file, capsys, options, says):
    assert init.main([*options, "--yes", "--file", str(file)]) == 1
    reported = capsys.readouterr().err
    assert says in reported
    assert "planted" not in reported
    assert not file.exists()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://orders-rest.flink.svc:8081", "orders"),
        ("http://localhost:8081", "flink"),
        ("http://10.0.0.7:8081", "flink"),
        ("https://prod-jobmanager:443/x", "prod"),
    ],
)
def test_a_cluster_is_named_after_its_host(url, name):
    assert init.suggest_name(url) == name


def test_every_key_at_fault_has_a_line(file, capsys):
    file.write_text('[limits]\nmode = "yes"\n[spark]\nmaster = "mesos"\nmemory = 3\n')
    assert doctor.main(["--json", "--no-airflow"]) == 1
    result = json.loads(capsys.readouterr().out)["findings"]
    faults = [one for one in result if one["part"] == "settings"]
    assert [fault["text"].split(" ")[0] for fault in faults] == ["spark.master", "spark.memory", "limits.mode"]
    assert all(fault["level"] == "error" and fault["remedy"] for fault in faults)


def test_a_file_that_is_no_toml_is_one_fault(file):
    file.write_text("[apply\n")
    settings, findings = settings_file.read_settings()
    assert settings is None
    assert [one.level for one in findings] == [Level.ERROR]


def test_the_table_shows_faults_and_remedies(file, capsys):
    file.write_text('[clusters.prod]\nrest_url = "http://127.0.0.1:9"\n')
    assert doctor.main(["--no-airflow", "--cluster", "prod", "--cluster", "gone", "--kafka", "127.0.0.1:9"]) == 1
    reported = capsys.readouterr().out
    for text in ("nothing listens at 127.0.0.1:9", "->", "cluster gone", "Kafka", "3 errors"):
        assert text in reported


@pytest.mark.parametrize("place", ["postgresql://mlflow:planted@db/mlflow", "http://mlflow:planted@127.0.0.1:9"])
def test_no_secret_is_shown(file, monkeypatch, capsys, place):
    monkeypatch.setenv("TIDEWISE__MLFLOW__TRACKING_URI", place)
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", "s3a://key:planted@bucket/lake")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for options in (["--json"], []):
        doctor.main([*options, "--no-airflow"])  # refused where the jars for S3 are not installed
        reported = capsys.readouterr()
        assert "planted" not in reported.out + reported.err
    monkeypatch.delenv("TIDEWISE__PATHS__LAKE")
    for options in (["--json"], []):
        doctor.main([*options, "--no-airflow"])
        reported = capsys.readouterr()
        assert "planted" not in reported.out + reported.err
        assert place.partition(":")[0] in reported.out
    assert hide_credentials("at http://a:b@c/d\nx") == "at http://...@c/d x"


def test_a_check_that_fails_itself_hides_no_other():
    def broken() -> Finding:
        raise KeyError("no such thing")

    reported = []
    result = _run("lake", broken, lambda name, findings: reported.append((name, len(findings))))
    assert result[0].level is Level.ERROR
    assert "KeyError" in result[0].text
    assert reported == [("lake", 1)]


def test_the_machine(tmp_path):
    assert check_interpreter((3, 11, 7)).level is Level.OK
    assert check_interpreter((3, 13, 5)).level is Level.OK
    assert check_interpreter((3, 10, 12)).level is check_interpreter((3, 14, 0)).level is Level.ERROR
    assert check_java().level is check_shared_libraries().level is Level.OK
    no_java = check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert (no_java.level, "a JDK 17 or 21 is needed" in no_java.text) == (Level.ERROR, True)
    assert "JAVA_HOME" in no_java.remedy
    no_jars = check_jars(Settings(spark=Spark(jars_dir=str(tmp_path))))
    assert (no_jars.level, no_jars.remedy) == (Level.ERROR, "run `make setup`")
    below = Paths(lake=str(tmp_path / "a" / "b"), raw=str(tmp_path / "raw"), out=str(tmp_path))
    assert all(one.check == "space" for one in check_disk(Settings(paths=below)))


def test_brokers():
    with serve(lambda *_: (200, {})) as url:
        here = url.removeprefix("http://")
        assert check_brokers(here).level is Level.OK
        assert check_brokers(f"{here},127.0.0.1:9").level is Level.WARNING
    assert check_brokers("127.0.0.1:9").level is Level.ERROR
    assert check_brokers("nonsense").level is Level.ERROR


def test_findings_follow_the_order_of_the_parts(file):
    file.write_text("")
    observed = []
    findings = run_checks(CheckOptions(with_airflow=False), lambda name, _: observed.append(name))
    parts = list(dict.fromkeys(one.part for one in findings))
    assert parts == ["Python", "Java", "settings", "Spark", "disk", "lake", "tables", "MLflow"]
    assert observed[0] == "machine"


def test_wording():
    assert list_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert warning("p", "c", "t", "r").to_json()["level"] == "warning"
    assert error("p", "c", "t http://u:p@h", "r").to_json()["text"] == "t http://...@h"
