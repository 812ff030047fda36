"""The report's small tables: DataFrame in, a header and rows of text out."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TextTable = tuple[Sequence[str], Sequence[Sequence[str]]]
ROWS_SHOWN = 60


def text_table(frame: DataFrame) -> TextTable:
    """Collect at most :data:`ROWS_SHOWN` rows as text; the columns' names become the header."""
    rows = frame.limit(ROWS_SHOWN).collect()
    header = [name.replace("_", " ") for name in frame.columns]
    return header, [["" if cell is None else str(cell) for cell in row] for row in rows]


def _share(column: str) -> Column:
    return F.format_string("%.1f%%", F.col(column) * 100).alias(column)


def quality_rows(quality: DataFrame) -> TextTable:
    """The newest ingestion of each cluster."""
    newest = quality.groupBy("cluster").agg(F.max("interval_end").alias("interval_end"))
    columns = ("cluster", "interval_start", "interval_end", "files", "rows", "metric_values", "late", "duplicate")
    latest = quality.join(newest, ["cluster", "interval_end"], "left_semi")
    return text_table(latest.select(*columns, "missing_windows", "not_measured", "quarantined").orderBy("cluster"))


def quarantine_rows(quarantine: DataFrame) -> TextTable:
    """Number of quarantined rows for each reason, with one example."""
    example = F.substring(F.min("detail"), 1, 120).alias("example")
    counted = quarantine.groupBy("cluster", "reason").agg(F.count("*").alias("rows"), example)
    return text_table(counted.orderBy("cluster", F.desc("rows")))


def model_rows(versions: DataFrame, as_of: Column) -> TextTable:
    """The newest trainings: what they learnt from, their held-back errors, the gate."""
    shares = [_share(name) for name in ("capacity_mape", "recovery_mape", "latency_mape")]
    columns: list[Column | str] = [
        "as_of",
        "model_version",
        "jobs",
        "operators",
        "observations",
        *shares,
        "gate",
        "gate_detail",
        "champion_before",
    ]
    return text_table(versions.where(F.col("as_of") <= as_of).orderBy(F.desc("as_of")).select(*columns).limit(10))


def certificate_rows(certificates: DataFrame, as_of: Column) -> TextTable:
    """The newest certificates, the jobs with most regret first, then those without one and why."""
    made = certificates.where(F.col("as_of") <= as_of)
    newest = made.agg(F.max("as_of").alias("as_of"))
    interval = F.format_string("%.2f (%.2f to %.2f)", "ratio", "ratio_low", "ratio_high")
    columns: list[Column | str] = [
        "cluster",
        "job",
        F.coalesce(interval, F.lit("")).alias("cost_over_the_least"),
        F.format_string("%.1f", "regret").alias("regret_a_day"),
        F.format_string("%.1f", "slot_hours").alias("slot_hours_a_day"),
        F.format_string("%.1f", "late_minutes").alias("late_minutes_a_day"),
        F.coalesce("reason", "skipped", F.lit("")).alias("why"),
    ]
    ranked = made.join(F.broadcast(newest), "as_of", "left_semi").orderBy(F.desc_nulls_last("regret"), "cluster", "job")
    return text_table(ranked.select(*columns))


def forecast_rows(scores: DataFrame, as_of: Column) -> TextTable:
    """The champion of each series with its backtest scores."""
    made = scores.where((F.col("as_of") <= as_of) & F.col("champion"))
    newest = made.agg(F.max("as_of").alias("as_of"))
    rounded = [F.format_string("%.3f", name).alias(name) for name in ("mase", "pinball_q90")]
    columns: list[Column | str] = ["cluster", "job", "operator", "method", "origins", *rounded, _share("coverage_q90")]
    return text_table(
        made.join(F.broadcast(newest), "as_of", "left_semi").select(*columns).orderBy("cluster", "job", "operator")
    )
