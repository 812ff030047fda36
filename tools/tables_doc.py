"""``make docs``: docs/tables.md, from the tables' definitions and the comments beside their columns."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from include.tables import BY_PERSONS, CONTROLLED, INGESTED, TABLES, Table, plan_row
from tools.markdown import format_list
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "tables.md"
FOLDER = PROJECT / "include" / "tables"
MARKS = ("<!-- tables: written by `make docs` from include/tables -->", "<!-- end of tables -->")
_DAY = ("date", "hour")
"""Columns that stand in most tables, for reading some days or hours alone."""
_OF_KEYS = ("STRING", "TIMESTAMP")
"""Types of columns that a table's first sentence names as its key and that need no other word."""
LAYERS = {
    "bronze": "raw replies of Flink, parsed",
    "silver": "measurements of each job",
    "gold": "models, forecasts, plans, and what became of them",
    "ops": "the pipeline itself: quarantine, files, decisions, what persons did",
}


def read_meanings() -> tuple[Mapping[str, str], Mapping[tuple[str, str], str]]:
    """Return what the comments say of each table, and of each column by the names of table and column."""
    tables: dict[str, str] = {}
    columns: dict[tuple[str, str], str] = {}
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text()
        comments = read_comments(text)
        for call in find_calls(ast.parse(text)):
            name, written = call.args[0], call.args[1]
            assert isinstance(name, ast.Constant)
            table = str(name.value)
            assert isinstance(written, ast.Dict)
            own = (comments.get(line, "") for line in range(call.lineno, name.lineno + 1))
            tables[table] = " ".join(filter(None, own))
            for key in written.keys:
                if isinstance(key, ast.Constant):
                    columns[table, str(key.value)] = comments.get(key.lineno, "")
    return tables, columns | {("gold.plans", name): meaning for name, meaning in read_plan_meanings().items()}


def read_plan_meanings() -> dict[str, str]:
    """Return the comments beside the fields of a plan's row, by the names of the columns."""
    text = Path(plan_row.__file__).read_text()
    comments = read_comments(text)
    (row,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == "PlanRow")
    fields = [node for node in row.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    named = {str(ast.unparse(node.target)): comments.get(node.lineno, "") for node in fields}
    return {name if name in plan_row.PLAN_COLUMNS else name.removesuffix("_s"): text for name, text in named.items()}


def read_comments(text: str) -> dict[int, str]:
    """Return the comments of a module by line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {one.start[0]: one.string.lstrip("# ").strip() for one in tokens if one.type == tokenize.COMMENT}


def find_calls(module: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that define tables."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "Table":
                yield call


def describe_table(table: Table, meaning: str, writer: str, columns: Mapping[tuple[str, str], str]) -> str:
    """Return the section of a table."""
    keys, parts = ([f"`{one}`" for one in names] for names in (table.keys, table.partition_by))
    day_of = columns.get((table.name, "date"), "")
    row = f"By {writer}; keys {', '.join(keys)}"
    partition = "" if table.partition_by == (_DAY[0],) else f"; partitioned by {', '.join(parts)}" if parts else ""
    lines = [f"### {table.name}", "", f"{meaning[0].upper()}{meaning[1:].rstrip('.')}.", ""]
    lines += [f"{row}{partition}{f'; `date` is {day_of}' if day_of else ''}.", ""]
    explained = {name: columns[table.name, name] for name in table.columns if columns.get((table.name, name))}
    by_type: dict[str, list[str]] = {}
    for name, kind in table.columns.items():
        if name not in explained and name not in _DAY and not (name in table.keys and kind in _OF_KEYS):
            by_type.setdefault(kind, []).append(f"`{name}`")
    rows = [(f"`{name}` `{table.columns[name]}`", text) for name, text in explained.items() if name != "date"]
    if rows:
        lines += [format_list(rows), ""]
    if by_type:
        others = "; ".join(f"`{kind}` {', '.join(names)}" for kind, names in by_type.items())
        lines += [f"{'Besides: ' if rows else 'Columns: '}{others}.", ""]
    return "\n".join(lines).rstrip()


def describe_tables() -> str:
    """Return the sections of all tables, layer by layer."""
    meanings, columns = read_meanings()
    writers = {one.name: "ingestion" for one in INGESTED} | {one.name: "the controller" for one in CONTROLLED}
    writers |= {one.name: "commands of persons" for one in BY_PERSONS}
    tables = (*TABLES, *CONTROLLED, *BY_PERSONS)
    parts = []
    for layer, content in LAYERS.items():
        own = sorted((one for one in tables if one.name.startswith(f"{layer}.")), key=lambda one: one.name)
        parts += [f"## {layer.title()}: {content}"]
        parts += [describe_table(one, meanings[one.name], writers.get(one.name, "a stage"), columns) for one in own]
    return "\n\n".join(parts)


def update_page(page: str) -> str:
    """Return the page with its tables replaced."""
    return put_between_marks(page, MARKS, f"\n{describe_tables()}\n")


def main(argv: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    CommandParser(prog="tables_doc", description=__doc__).parse_args(argv)
    write_text(PAGE, update_page(PAGE.read_text()))
    print(f"written: {PAGE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
