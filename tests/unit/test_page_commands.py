"""Commands that the documents name: those for a cluster and for whoever is on call are run, all others parsed."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from controlled_cluster import controlled_cluster
from page_commands import find_commands, read_page
from pretended_server import answer_from, flink_answers, serve

from cli.console import VERBS
from include.lake_table import LakeTable
from include.settings import SETTINGS_FILE_VARIABLE
from include.tables import PLANS
from tools.commands_doc import find_parser

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ["try_it", "connect", "on_call", "models_review", "backfill", "runbook", "policies", "upgrading", "doctor"]
PAGES += ["kubernetes", "sources", "limits", "advise", "page", "controller", "gate", "reasons", "metrics", "tables"]
NAMES = {"cluster/job": "live/orders", "cluster": "live", "step_id": "step-4"}
AT_NIGHT = read_page("on_call").split("## At 3 am")[1].split("\n## ")[0]
ROWS = [row for row in AT_NIGHT.splitlines() if row.startswith("| ") and not row.startswith("| symptom")]


@pytest.mark.parametrize("page", PAGES)
def test_a_command_has_the_arguments_that_a_page_gives_it(page: str) -> None:
    for one in find_commands(read_page(page)):
        if one.verb == "airflow":
            assert_airflow_command(one.arguments)
        elif one.arguments and "..." not in one.arguments:
            words = VERBS[one.verb].words
            parser = find_parser(one.module, words)
            assert parser is not None, one.verb
            parser.parse_args([*words, *(NAMES.get(word, word) for word in one.arguments)])


def assert_airflow_command(arguments: tuple[str, ...]) -> None:
    """Check the DAG and its parameters; tests/dags tries them."""
    if not arguments or arguments[-1] == "...":
        return  # the page says which kind of command, and has it whole elsewhere
    dags = {path.stem for path in (REPOSITORY / "dags").glob("tidewise_*.py")}
    assert next(word for word in arguments if word.startswith("tidewise_")) in dags
    for option, value in itertools.pairwise(arguments):
        if option == "--conf":
            assert isinstance(json.loads(value), dict)


def test_the_way_to_a_cluster_is_walked(tmp_path, monkeypatch, capsys) -> None:
    way = list(find_commands(read_page("connect").split("\n## ")[0]))[:5]
    assert [one.verb for one in way] == ["init", "doctor", "control", "status", "log"]
    file = tmp_path / "tidewise.toml"
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(file))
    for name in ("LAKE", "RAW", "OUT"):
        monkeypatch.setenv(f"TIDEWISE__PATHS__{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("TIDEWISE__MLFLOW__TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    with serve(answer_from(flink_answers())) as url:
        further = {"init": ("--file", str(file))}
        codes = [one.run({"http://jobmanager:8081": url}, *further.get(one.verb, ())) for one in way]
    shown = capsys.readouterr()
    assert codes == [0, 0, 0, 1, 0], shown
    assert 'mode = "dry-run"' in file.read_text()
    assert "cluster prod" in shown.out
    assert "1 job" in shown.out


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "tidewise models" not in row], ids=lambda row: row.split("|")[1]
)
def test_a_row_of_the_table_for_the_night_is_walked(row: str, tmp_path, monkeypatch, capsys) -> None:
    mode = "approve" if "waits for a yes" in row else "auto"
    with controlled_cluster(tmp_path, monkeypatch, mode=mode) as world:
        world.want(4)
        world.want(4)
        names = dict(NAMES)
        if "give it slots in Flink" in row:
            world.job.requested = dict.fromkeys(world.job.requested or {}, 6)
            assert world.want(4) == "refuse foreign_change"
        for one in find_commands(row):
            if one.verb == "lift" and "--list" not in one.arguments:
                continue  # nothing is blocked here: tests/unit/test_lift_command.py
            if "--lift" in one.arguments:  # takes a no back: to the step that waits after the yes
                names["step_id"] = "step-8"
                assert world.want(8) == "wait needs_approval"
                assert replace(one, arguments=("cluster/job", "step_id", "--deny")).run(names) == 0
            assert one.run(names) == (one.verb == "status"), (one, capsys.readouterr())


def test_a_table_is_read_in_three_lines(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    row = dict.fromkeys(PLANS.columns)
    at = datetime(2026, 11, 20, 20, tzinfo=UTC)
    own = {"as_of": at, "step_id": "s", "cluster": "eu", "job": "orders", "status": "planned", "apply_at": at}
    LakeTable("out/lake", PLANS).append([row | own | {"slots": 7, "reason": "load rises", "date": at.date()}])
    (block,) = re.findall(r"```python\n(.*?)```", read_page("tables"), re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 3
    exec(compile(block, "docs/tables.md", "exec"), {})
    shown = capsys.readouterr().out
    assert re.search(r"eu +orders .* 7 +load rises", shown)
