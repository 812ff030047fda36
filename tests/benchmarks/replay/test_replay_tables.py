"""The tables of the replay: what the command writes, and in which order."""

from __future__ import annotations

from benchmarks.replay.tables import PAGE, format_page, summarise


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
