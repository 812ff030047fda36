"""Phoebe's evaluation in simulation: Table II, savings, latencies and the error of predicted recoveries."""

from benchmarks.papers.phoebe.phoebe_tables import tables

__all__ = ["tables"]
