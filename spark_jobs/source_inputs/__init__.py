"""Loads of sources as several stages read them."""
