"""Flink's REST replies about a simulated fleet, field by field as a real cluster gives them (no I/O)."""
