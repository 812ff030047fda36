"""The tables of the replay: what the command writes, and in which order."""

from __future__ import annotations

from pathlib import Path

from benchmarks.replay import bound_table
from benchmarks.replay.cost_rows import compare_costs, is_rival, merge_costs, read_costs
from benchmarks.replay.replay_candidates import list_names
from benchmarks.replay.replay_cases import Row
from benchmarks.replay.tables import PAGE, PUBLISHED, format_page, summarise


def test_tables_of_the_replay_are_what_the_command_writes() -> None:
    assert PAGE.read_text() == format_page(), "run python -m benchmarks.replay.tables"


def test_table_of_a_replay_has_the_cheapest_policy_first() -> None:
    def row(policy: str, trace: str, seed: int, cost: float) -> dict[str, str | int | float | None]:
        where = {"trace": trace, "job": "wordcount", "segment": "last_third", "seed": seed}
        rates = {"rescales_per_day": 2.0 * seed, "late_minutes_per_day": 1.5}
        return {"policy": policy, **where, **rates, "cost_vs_clairvoyant": cost}

    rows = [row("ds2", "taxi", 0, 2.0), row("ds2", "taxi", 1, 3.0), row("ds2", "avazu", 0, 4.0)]
    rows += [row("planner", "taxi", 0, 1.0), row("planner", "avazu", 0, 1.1)]
    assert summarise(rows, "last_third") == [
        ["policy", "wordcount: avazu", "wordcount: taxi", "mean", "rescales / day", "late min / day"],
        ["planner", "1.100", "1.000", "1.050", "0.0", "1.5"],
        ["ds2", "4.000", "2.500", "3.250", "0.7", "1.5"],
    ]


def test_rivals_are_neither_ours_nor_know_anything_in_hindsight() -> None:
    others = {name for name in list_names() if not is_rival(name)}
    assert others == {
        "planner",
        "controller_alone",
        "programme",
        "best_constant",
        "static_max",
        "static_mean",
        "clairvoyant",
        "bound",
    }
    assert not is_rival("planner_no_lead")
    assert not is_rival("controller_alone_best")


def test_the_best_rival_is_of_the_same_trace_seed_and_segment() -> None:
    costs = {("a", 0): {"planner": 4.0, "ds2": 5.0, "mdp": 8.0}, ("a", 1): {"planner": 4.0, "ds2": 5.0, "mdp": 2.0}}
    costs |= {("b", 0): {"planner": 4.0, "bound": 3.0}}
    rows: list[dict[str, str | int | float | None]] = [
        {"trace": trace, "job": "j", "segment": "all", "seed": seed, "policy": policy, "cost": cost}
        for (trace, seed), of_policies in costs.items()
        for policy, cost in of_policies.items()
    ]
    planner = [row for row in compare_costs(rows) if row["policy"] == "planner"]
    assert [row["best_rival"] for row in planner] == ["ds2", "mdp", None]
    assert [row["cost_vs_best_rival"] for row in planner] == [0.8, 2.0, None]
    assert planner[0]["bound"] is None


def build_row(trace: str, policy: str, cost: float, bound: float | None = None, days: float = 8.0) -> Row:
    """Return a row of a replay."""
    rates: Row = {"slot_hours": 1.0, "late_minutes_per_day": 0.0, "rescales_per_day": 0.0}
    ratios: Row = {"bound": bound, "cost_vs_bound": None, "cost_vs_clairvoyant": None}
    where: Row = {"trace": trace, "job": "wordcount", "policy": policy, "seed": 100, "segment": "after_first_day"}
    return {**where, "days": days, "cost": cost, **rates, **ratios}


def test_a_later_run_of_one_policy_is_measured_by_the_bound_of_an_earlier_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bound_table.BEGIN}\n{bound_table.END}\nafter\n")
    first = [build_row("a", "bound", 10.1, 10.0), build_row("a", "clairvoyant", 12.0), build_row("a", "planner", 15.0)]
    first += [build_row("a", "controller_alone", 14.0), build_row("b", "planner", 3.0)]
    bound_table.publish(first, page, tmp_path)
    bound_table.publish([build_row("a", "programme", 99.0)], page, tmp_path)
    bound_table.publish([build_row("a", "programme", 13.0)], page, tmp_path)
    rows = read_costs([tmp_path / bound_table.COSTS])
    assert len(rows) == len(first) + 1
    own = next(row for row in rows if row["policy"] == "programme")
    assert (own["cost_vs_bound"], own["cost_vs_clairvoyant"]) == (1.3, 13 / 12)
    written = page.read_text()
    assert "| a | 100 | 0.929 |" in written  # over the controller alone, the cheaper of the two
    assert "The bound's own policy costs 1.0100 of it" in written
    bound_table.publish([], page, tmp_path)
    assert page.read_text() == written


def test_a_run_of_another_length_leaves_no_row_of_the_trace_that_it_cannot_be_compared_with() -> None:
    before = [build_row("a", "bound", 10.1, 10.0, 6.0), build_row("a", "planner", 12.0, days=6.0)]
    before += [build_row("b", "planner", 3.0, days=6.0)]
    rows = merge_costs(before, [build_row("a", "programme", 13.0)])
    assert [(row["trace"], row["policy"]) for row in rows] == [("a", "programme"), ("b", "planner")]
    assert rows[0]["cost_vs_bound"] is None


def test_the_published_tables_over_the_bound_are_those_of_the_costs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(bound_table.PAGE.read_text())
    (tmp_path / bound_table.COSTS).write_bytes((PUBLISHED / bound_table.COSTS).read_bytes())
    bound_table.publish([], page, tmp_path)
    assert page.read_text() == bound_table.PAGE.read_text(), "run python -m benchmarks.replay.bound_table --publish"
    assert (tmp_path / bound_table.COSTS).read_bytes() == (PUBLISHED / bound_table.COSTS).read_bytes()
