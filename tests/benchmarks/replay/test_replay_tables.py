"""The tables of the replay: what the command writes, and in which order."""

from __future__ import annotations

from benchmarks.replay.cost_rows import compare_costs, is_rival
from benchmarks.replay.replay_candidates import list_names
from benchmarks.replay.tables import PAGE, format_page


def test_tables_of_the_replay_are_what_the_command_writes() -> None:
    assert PAGE.read_text() == format_page(), "run python -m benchmarks.replay.tables"


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
    assert not is_rival("conttune_a3_best@+10%")


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
