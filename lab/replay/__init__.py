"""Policies replayed on one load, side by side: a simulated job for each, its pipeline, its costs."""
