"""What stages read of each job: newest rows, windows, state and policy memory."""
