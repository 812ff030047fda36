"""Policies run on one history, side by side: a simulated job per contender, what each would have seen, what it cost."""
