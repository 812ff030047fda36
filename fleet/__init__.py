"""What people ask of the fleet, answered from the lake without Spark: one layer for commands, page and metrics.

``fleet_reader`` reads the tables and keeps what has not changed; the other modules are functions from rows to facts.
"""
