"""Kinds of faults, by what they befall."""
