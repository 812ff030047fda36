"""Forecasts beside other methods on real traces."""
