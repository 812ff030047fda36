"""The Flink Kubernetes Operator's autoscaler, the reactive policy that a Flink user runs today.

Its rules are numbered in the order in which they are used: 1-3 what must be
processed, 4-5 what can be, 6-8 what is needed, 9-11 and 13 one vertex's new parallelism, 12 the whole job.  Source:
apache/flink-kubernetes-operator (Apache-2.0), flink-autoscaler, release 1.15.0 and main 6e9caeb; the code is our own.
"""
