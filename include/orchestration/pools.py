"""Airflow's pools: how many tasks of each kind run at the same time."""

from __future__ import annotations

SPARK_POOL = "tidewise_spark"
CONTROL_POOL = "tidewise_control"
UPKEEP_POOL = "tidewise_upkeep"
IMPORT_POOL = "tidewise_import"
# Name -> (slots, description). A Spark application takes a driver of its own: two at a time fit a small machine.
POOLS = {
    SPARK_POOL: (2, "Spark applications of Tidewise that run at the same time"),
    UPKEEP_POOL: (1, "Upkeep of the tables"),
    CONTROL_POOL: (1, "Controllers; a second one finds the leases of the clusters taken"),
    IMPORT_POOL: (1, "Readers of past hours: one at a time asks a Prometheus server"),
}
