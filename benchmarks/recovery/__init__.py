"""Recovery models on the simulated history, beside what really happened."""
