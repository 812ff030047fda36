"""Policies of five papers and of peers, each a package; one entry each in entries.py."""
