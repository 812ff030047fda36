"""`python -m tools.mutate`: which mutants there are and how scores are told; mutmut itself is run by the command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from tools.mutate import Module, Score, configure, format_scores, list_mutants, main, read_modules

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
    result = list_mutants(tmp_path, module.files(tmp_path))
    assert result == ["models.sums.x_add__mutmut_1"]
    assert "models/other.py" not in (tmp_path / "setup.cfg").read_text()


def imported_files(file: Path) -> Iterator[Path]:
    """The project's files that a file imports, support files of the tests among them."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            for folder in (REPOSITORY, REPOSITORY / "tests" / "support"):
                path = folder.joinpath(*name.split("."))
                yield from filter(Path.is_file, (path.with_suffix(".py"), path / "__init__.py"))


@pytest.mark.parametrize("module", read_modules(), ids=lambda module: module.name)
def test_every_package_that_the_tests_of_a_module_import_is_copied(module: Module, tmp_path: Path) -> None:
    files = {REPOSITORY / name for name in module.existing_tests(REPOSITORY)}
    waiting = list(files)
    while waiting:
        new = set(imported_files(waiting.pop())) - files
        files |= new
        waiting += new
    needed = {file.relative_to(REPOSITORY).parts[0] for file in files}
    assert len(needed) > 1
    for name in needed:
        (tmp_path / name).mkdir()
    configure(tmp_path, module.files(REPOSITORY), module.existing_tests(REPOSITORY))
    written = ConfigParser()
    written.read(tmp_path / "setup.cfg")
    copied = {*written["mutmut"]["source_paths"].split(), *written["mutmut"]["also_copy"].split()}
    assert needed <= copied | {"tests"}  # mutmut copies the tests by itself


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
