"""What a job's last days would have cost under each policy, beside what they cost: pure functions."""
