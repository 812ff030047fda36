"""`make mutate`: which mutants there are and how scores are told; mutmut itself is run by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.mutate import Module, Score, configure, format_scores, list_mutants, main, read_modules

REPOSITORY = Path(__file__).resolve().parents[2]


def test_modules_name_files_and_tests_that_exist() -> None:
    modules = read_modules()
    assert {"capacity", "calibration", "scheduling", "reconcile", "value_rules", "protocol"} <= {
        m.name for m in modules
    }
    for module in modules:
        assert module.files(REPOSITORY), module.name
        assert module.existing_tests(REPOSITORY), module.name


def test_mutants_are_those_of_the_files_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "sums.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (folder / "other.py").write_text("def take(a: int, b: int) -> int:\n    return a - b\n")
    module = Module("sums", ("models/sums.py", "models/gone.py"), ())
    configure(tmp_path, module.files(tmp_path), ["tests/test_sums.py"])
    found = list_mutants(tmp_path, module.files(tmp_path))
    assert found == ["models.sums.x_add__mutmut_1"]
    assert "models/other.py" not in (tmp_path / "setup.cfg").read_text()


def test_scores_are_shares_of_what_was_tried() -> None:
    text = format_scores([Score("guard", 131, 50, 43, {}, 47.0), Score("protocol", 0, 0, 0, {}, 0.0)])
    assert text.splitlines()[1].split() == ["guard", "131", "50", "43", "86%", "47"]
    assert text.splitlines()[2].split() == ["protocol", "0", "0", "0", "-", "0"]
    assert text.splitlines()[-1] == "mutate: 43 of 50 mutants noticed"


def test_an_unknown_module_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--module", "nothing"])
    assert stopped.value.code == 2
    assert "reconcile" in capsys.readouterr().err
