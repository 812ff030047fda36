"""Silver -> quantiles of every source's rate."""
