"""History in, one page out: what the last days cost, and what they would have cost otherwise."""
