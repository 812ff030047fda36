"""Certificates of the simulated jobs of the shipped history."""
