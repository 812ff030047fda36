"""Capacity models: which windows tell a capacity, and how wrong fits are."""
