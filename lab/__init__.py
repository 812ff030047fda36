"""What compares and tries: simulators, replays, backtests, advice, and the policies of papers and peers.

A distribution of its own, found through the entry points in its pyproject.toml. It imports the product; no part of the
product imports it.
"""
