"""A Flink cluster of two Java processes on this machine, and the load job on it."""
