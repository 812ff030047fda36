"""What ``tidewise advise`` said, beside what the simulator shows."""
