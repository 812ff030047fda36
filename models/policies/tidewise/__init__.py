"""Tidewise's own policy: a programme over slots, load and backlog, and its schedule."""
