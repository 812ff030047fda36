"""The conformance command on the shipped cases, on cases made wrong, and on files that hold none."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.conformance.__main__ import main
from benchmarks.conformance.kinds import KINDS, check_case, run

CASES = Path(__file__).resolve().parents[3] / "data" / "cases"
FILES = {
    "ds2": CASES / "ds2.json",
    "flink_autoscaler": CASES / "flink_autoscaler.json",
    "phoebe": CASES / "phoebe.jsonl",
}
FLINK = json.loads(FILES["flink_autoscaler"].read_text())["cases"]
DS2 = json.loads(FILES["ds2"].read_text())
PHOEBE = [json.loads(line) for line in FILES["phoebe"].read_text().splitlines()]


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(("kind", "count"), [("ds2", 15), ("flink_autoscaler", 56), ("phoebe", 144)])
def test_all_shipped_cases_agree(kind: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", kind, "--cases", str(FILES[kind])]) == 0
    assert capsys.readouterr().out == f"{count} of {count} agree\n"


def test_every_kind_of_flink_case_is_shipped() -> None:
    from benchmarks.conformance.flink_autoscaler import KINDS as FLINK_KINDS

    assert {case["kind"] for case in FLINK} == set(FLINK_KINDS)


def test_disagreements_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = copy.deepcopy(DS2[:3])
    cases[1]["expected"]["Op1"] = 21
    out = tmp_path / "deep" / "result.json"
    assert main(["--kind", "ds2", "--cases", str(write(tmp_path / "c.json", cases)), "--json", str(out)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "one-source-e7 (expected.Op1)"
    assert '"Op1": 21' in printed[1]
    assert '"Op1": 20' in printed[2]
    assert printed[-1] == "2 of 3 agree"
    written = json.loads(out.read_text())
    assert (written["agree"], written["total"], written["kind"]) == (2, 3, "ds2")
    assert written["disagreements"][0]["case"] == "one-source-e7"


def perturb(value: Any) -> Any:
    """Return an expectation that differs in every plain value."""
    if isinstance(value, dict):
        return {key: perturb(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [perturb(inside) for inside in value]
    if value is None or isinstance(value, (bool, str)):
        return "something else"
    return value + 1


@pytest.mark.parametrize("case", FLINK, ids=lambda case: case["id"])
def test_each_expectation_of_a_flink_case_is_looked_at(case: dict[str, Any]) -> None:
    for key, wanted in case["expected"].items():
        changed = copy.deepcopy(case)
        # a higher upper limit would hold as well
        changed["expected"][key] = -1.0 if key == "lt" else perturb(wanted)
        outcome = KINDS["flink_autoscaler"].check(changed)
        assert outcome.differing, key
        assert all(where.startswith(key) for where in outcome.differing)


@pytest.mark.parametrize("key", ["raw", "target_rate"])
def test_ds2_compares_to_the_digits_given(key: str) -> None:
    case = next(case for case in copy.deepcopy(DS2) if case["name"] == "espa-nexmark-q3")
    name = next(name for name, value in case[key].items() if value)
    exact = case[key][name]
    case[key][name] = round(exact, 3)
    assert KINDS["ds2"].check(case).agrees
    case[key][name] = round(exact, 3) + 0.001
    assert KINDS["ds2"].check(case).differing == (f"{key}.{name}",)


def test_unknown_kinds_and_faulty_cases_disagree_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = FLINK[0]
    cases = [
        {**good, "id": "A", "kind": "memory"},
        {**good, "id": "B", "inputs": {}},
        {**good, "id": "C", "config": {"no.such.key": 1}},
        {**good, "id": "D", "config": {"utilization.target": "high"}},
        {"id": "E"},
        {**good, "id": "F", "expected": None},
    ]
    assert main(["--kind", "flink_autoscaler", "--cases", str(write(tmp_path / "c.json", cases))]) == 1
    printed = capsys.readouterr().out
    for part in (
        "unknown kind 'memory'; known are",
        "lacks 'target'",
        "no option 'no.such.key'",
        "'high' is not a double",
    ):
        assert part in printed
    assert printed.splitlines()[-1] == "0 of 6 agree"


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("ds2", "{", "is not JSON"),
        ("ds2", [], "holds no list of cases"),
        ("ds2", {"cases": {}}, "holds no list of cases"),
        ("ds2", 3, "holds no list of cases"),
        ("ds2", [DS2[0], 4], "case 2 is not an object"),
        ("phoebe", '{"a": 1}\n{', "line 2, is not JSON"),
        ("phoebe", "", "holds no list of cases"),
        ("flink_autoscaler", "\x00", "is not JSON"),
    ],
)
def test_files_without_cases_exit_with_2(
    kind: str, content: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kind", kind, "--cases", str(write(tmp_path / "c", content))]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("path", [Path("missing.json"), Path(), Path("binary")])
def test_unreadable_paths_exit_with_2(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["--kind", "ds2", "--cases", str(tmp_path / path)]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", "ds2", "--cases", str(FILES["ds2"]), "--json", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    printed = capsys.readouterr().out
    assert all(option in printed for option in ("--kind", "--cases", "--json", "ds2,flink_autoscaler,phoebe"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_value_in_a_case_makes_the_command_crash(data: st.DataObject) -> None:
    """Whatever stands in one place of a good case, the case agrees or disagrees."""
    kind, cases = data.draw(st.sampled_from([("ds2", DS2), ("flink_autoscaler", FLINK), ("phoebe", PHOEBE[:5])]))
    case = copy.deepcopy(data.draw(st.sampled_from(cases)))
    place: Any = case
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inside = place[key]
        if not isinstance(inside, (dict, list)) or not inside or data.draw(st.booleans()):
            break
        place = inside
    place[key] = data.draw(ANYTHING)
    outcome = check_case(KINDS[kind], case)
    assert outcome.agrees or outcome.differing


def test_run_gives_an_outcome_for_each_case_in_order() -> None:
    outcomes = run("flink_autoscaler", FILES["flink_autoscaler"])
    assert [outcome.name for outcome in outcomes] == [case["id"] for case in FLINK]
