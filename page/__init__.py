"""The page of the fleet: one server-rendered application, alone (``tidewise page``) or within Airflow."""

PREFIX = "/tidewise"
"""Below which Airflow serves it."""
