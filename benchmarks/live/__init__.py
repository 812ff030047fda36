"""Policies one after the other on one real Flink cluster and the same load, measured by instruments of the job."""
