"""What ``make advise`` said, beside what the simulator shows."""
