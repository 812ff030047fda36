"""Copies of what cannot be made again: records of the lake, what persons have set, the registry of models."""
