"""The page of the fleet: one server-rendered application, alone on this machine (``make page``) or within Airflow."""

PREFIX = "/tidewise"
"""Below which Airflow serves it."""
