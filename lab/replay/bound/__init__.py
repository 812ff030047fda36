"""A lower bound of what any policy costs in a replay, by dynamic programming with everything known."""
