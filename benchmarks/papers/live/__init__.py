"""One experiment per paper on a real Flink cluster: rates in steps, decided by the paper's policy from real metrics."""
