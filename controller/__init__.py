"""The controller between plans: one process without Spark that observes jobs, decides and sends."""
