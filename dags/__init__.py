"""Schedules and wiring; see docs/architecture.md."""
