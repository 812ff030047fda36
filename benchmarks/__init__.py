"""Measurements anyone can rerun."""
