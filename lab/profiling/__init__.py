"""The profiling phase: deployments of a job at several parallelisms that measure latency and capacity (Phoebe)."""
