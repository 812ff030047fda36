"""Forecasts and models -> timed steps."""
