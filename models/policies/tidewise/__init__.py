"""Tidewise's own policy: a schedule by optimisation over forecast and capacity, and a reactive controller."""
