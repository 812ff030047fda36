"""Flink's REST API: its client, what is polled, and the form of raw files."""
