"""Dhalion, the baseline of DS2's and Dragster's evaluations: rules that scale one operator at a time."""
