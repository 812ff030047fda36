"""The picture of all jobs at a tick: their polls, windows, newest plans, forecasts and models."""
